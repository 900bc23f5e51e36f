"""How many examples a law is tried on: few in ``make test``, more in the longer targets."""

import os

PROFILE = os.environ.get("DRIFTLINE_PROFILE", "test")


def examples(few, more):
    """Return numbers from 0 on, to draw an example by each."""
    return range(few if PROFILE == "test" else more)
