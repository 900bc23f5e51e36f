import pytest
from hypothesis import settings

# A first call compiles, so examples have no deadline.
settings.register_profile("driftline", deadline=None, derandomize=True)
settings.load_profile("driftline")

#: Laws for parts with more labels than these take long, and find what those with fewer find.
MANY = 50


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave laws for parts with very many labels to ``make test-all``."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        for value in () if callspec is None else callspec.params.values():
            loss = getattr(value, "loss", value)
            if getattr(getattr(loss, "task", None), "classes", 0) > MANY:
                item.add_marker(pytest.mark.slow)
