"""How much a law is tried on: few examples or rounds in ``make test``, more in longer targets."""

import os

PROFILE = os.environ.get("DRIFTLINE_PROFILE", "test")


def number(few, more):
    """Return how many there are, of rounds or whatever it be."""
    return chosen(few, more)


def examples(few, more):
    """Return numbers from 0 on, to draw an example by each."""
    return range(number(few, more))


def chosen(some, all_of_them):
    """Return cases: in ``make test`` some in which every value comes up."""
    return some if PROFILE == "test" else all_of_them
