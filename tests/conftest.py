import gc
import signal

import pytest
from _pytest.doctest import DoctestModule
from howmany import PROFILE, chosen
from hypothesis import settings

from driftline import files
from driftline.learner import shell

# A first call compiles, so examples have no deadline. They are few and always the same in
# ``make test``, more in ``make test-all``, and others every time in ``make test-hard``.
settings.register_profile("test", deadline=None, derandomize=True, max_examples=6)
settings.register_profile("all", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("hard", deadline=None, max_examples=100, print_blob=True)
settings.load_profile(PROFILE)


class Unsynced(files.Disk):
    """Waits for no disk. Tests of what is lost with the power bring a machine of their own."""

    def sync(self, handle):
        """Let the system write when it likes."""

    def sync_folder(self, folder):
        """Let the system write when it likes."""


#: Thousands of small files are saved; longer targets, and runs that are killed, wait for each.
files.disk = chosen(Unsynced(), files.disk)


@pytest.fixture
def no_ids(request, monkeypatch):
    """Leave learners without an id, which is part of their bytes, not of what makes them equal."""
    if not request.node.get_closest_marker("ids"):
        monkeypatch.setattr(shell.secrets, "token_hex", lambda size: "")


SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.fixture
def signals():
    """Handle signals as in a terminal, here and in children, whatever nohup or a shell ignores."""
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    kinds = signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL
    before = [signal.signal(*pair) for pair in zip(SIGNALS, kinds, strict=True)]
    yield
    for number, own in zip(SIGNALS, before, strict=True):
        signal.signal(number, own)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


#: Laws for parts with more labels than these take long, and find what those with fewer find.
MANY = 50


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no doctests in tests: there are none, and each file would be read twice."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule)]


def pytest_collection_finish():
    """Let the garbage collector pass over tests and modules, which stay to the end anyway."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave laws for parts with very many labels to ``make test-all``."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        for value in () if callspec is None else callspec.params.values():
            loss = getattr(value, "loss", value)
            if getattr(getattr(loss, "task", None), "classes", 0) > MANY:
                item.add_marker(pytest.mark.slow)
