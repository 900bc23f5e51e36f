"""Descriptions of the learners, in a module of their own so that ``--help`` imports little."""

from __future__ import annotations

__all__ = ["LEARNERS", "TABLE"]

LEARNERS = {
    "auto": "a committee of linear learners, curves, tables and neighbours; nothing to set",
    "fast": "its linear members only, over ten times as fast",
    "best": "more members of every kind, for whom mistakes cost more than time",
    "paper": "the learner of the paper: Polyak's rate, and a random decoder",
    "polyak": "Polyak's rate with certain predictions: its steps never grow again",
    "free": "Polyak's rate whose steps may grow again, for frequent changes",
    "adagrad": "steps that fall with the gradients so far",
    "constant": "plain SGD with a step of 1",
    "decaying": "steps that fall with their number, for quiet streams",
    "restart": "the same, and starts again when it errs more often than before",
}

#: For the end of a help text.
TABLE = "\b\nLearners:\n" + "\n".join(f"  {n:<10} {words}" for n, words in LEARNERS.items())
