"""Runs of every kind of learner have the bits that ``golden.json`` says.

Where bits are meant to change, ``make golden`` says what has changed, and writes them anew.
"""

import json

import golden
import pytest

KEPT = json.loads(golden.PATH.read_text())
CASES = golden.cases()


def test_every_case_is_kept():
    assert KEPT["cases"].keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_that_are_kept(name):
    kept, made = KEPT["cases"][name], golden.played_case(CASES[name])
    if golden.machine() == KEPT["machine"]:
        assert golden.changes(kept, made) == []
        return
    assert kept.keys() == made.keys()
    for column in (one for one in made if one.endswith("target_loss")):
        assert abs(made[column][0] - kept[column][0]) <= golden.ROOM * golden.ROUNDS, column
