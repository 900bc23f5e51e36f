"""Signals to a running service: it reads its tokens again, and it ends, whatever it is doing."""

import signal
import threading

import pytest

import driftline as dl
from tests.service import call, check_replay
from tests.service_process import Process

OLD, NEW = "token-of-long-ago", "token-of-today-1"
FOREVER = "lambda *_, **__: time.sleep(3600.0)"


def status(service, token):
    headers = {"authorization": f"Bearer {token}"}
    return call(service.address, "GET", "/models", None, headers)[0]


@pytest.mark.parametrize("prefix", [(), ("nohup",)], ids=["terminal", "nohup"])
def test_tokens_are_read_again(tmp_path, prefix):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin {OLD}\n")
    with Process(tmp_path / "data", "--tokens", str(tokens), prefix=prefix) as service:
        assert (status(service, OLD), status(service, NEW)) == (200, 401)
        tokens.write_text(f"admin {NEW}\n")
        service.send(signal.SIGHUP)
        service.wait_for("SIGHUP: 1 tokens were read from")
        assert (status(service, OLD), status(service, NEW)) == (401, 200)
        tokens.write_text("nobody short\n")
        service.send(signal.SIGHUP)
        service.wait_for("SIGHUP: the tokens stay as they were: ")
        service.wait_for("line 1: expected a role")
        tokens.unlink()
        service.send(signal.SIGHUP)
        service.wait_for("No such file")
        assert (status(service, OLD), status(service, NEW)) == (401, 200)
        assert service.stop() == 0
        service.wait_for("stopped; all is on the disk")


def test_without_tokens_there_is_nothing_to_read_again(tmp_path):
    with Process(tmp_path / "data") as service:
        service.send(signal.SIGHUP)
        service.wait_for("SIGHUP: there is no file of tokens to read again")
        assert call(service.address, "GET", "/health")[0] == 200
        assert service.stop(signal.SIGINT) == 0
        service.wait_for("stopped; all is on the disk")


def made(service):
    """Make a model, and let it learn a row."""
    with dl.Client(service.address) as own:
        own.create("m", "y", columns={"x": "number"}, learner="fast")
        own.learn("m", {"x": 1}, "yes")


def asked(service, path):
    """Ask for something that has no answer, in a thread; a moment later it is being answered."""

    def ask():
        try:
            call(service.address, "GET", path)
        except OSError:
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


def test_work_beside_the_event_loop_holds_up_no_end(tmp_path):
    hang = (
        "from driftline.app.service import routes\n"
        "def weights_of(*_):\n  print('weighing', flush=True)\n  time.sleep(3600.0)\n"
        "routes.weights_of = weights_of"
    )
    with Process(tmp_path / "data", before=hang) as service:
        made(service)
        asked(service, "/models/m/weights")
        service.wait_for("weighing")
        assert service.stop() == 0
        service.wait_for("stopped; all is on the disk")


HANGS = {
    "writer": f"from driftline.app.service.writer import Writer\nWriter.snapshot = {FOREVER}",
    "MainThread": f"from driftline.app.service.server import Server\nServer.__exit__ = {FOREVER}",
    "answering": "from driftline.app.service import routes\n"
    "def openapi():\n  print('hanging', flush=True)\n  time.sleep(3600.0)\n"
    "routes.openapi = openapi",
}


@pytest.mark.parametrize("name", HANGS)
def test_a_thread_that_hangs_is_named_and_the_process_ends(tmp_path, name):
    with Process(tmp_path / "data", "--grace", "1", before=HANGS[name]) as service:
        made(service)
        if name == "answering":
            asked(service, "/openapi.json")
            service.wait_for("hanging")
        assert service.stop() == 0
        service.wait_for("without its last snapshot, 1 seconds after it was told to")
        service.wait_for(f"{name} (")
        service.wait_for("all that was acknowledged is in the log")
    check_replay(tmp_path / "data")
    with Process(tmp_path / "data") as service:
        assert call(service.address, "GET", "/models/m")[1]["counts"]["learned"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_still_reads_its_log_ends(tmp_path, number):
    hang = (
        "from driftline.app.service.machine import Machine\n"
        "def recover(*_):\n  print('reading', flush=True)\n  time.sleep(3600.0)\n"
        "Machine.recover = recover"
    )
    with Process(tmp_path / "data", before=hang, wait=False) as service:
        service.wait_for("reading")
        assert service.stop(number) == 0
        service.wait_for("told to end before it answered requests; all that was acknowledged")


def test_children_do_not_inherit_how_signals_are_handled(tmp_path):
    """A child that a library starts ends by a signal, as any other program does."""
    child = (
        "import subprocess, threading\n"
        "def start():\n  time.sleep(3.0)\n  made = subprocess.Popen(['sleep', '3600'])\n"
        "  made.terminate()\n  print('child', made.wait(30.0), flush=True)\n"
        "threading.Thread(target=start, daemon=True).start()"
    )
    with Process(tmp_path / "data", before=child) as service:
        service.wait_for(f"child {-signal.SIGTERM}")
        assert service.stop() == 0
