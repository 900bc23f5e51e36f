"""Thousands of simulated histories of the service, with crashes anywhere."""

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation import problems_of


def found(seeds, **options):
    return {seed: problems for seed in seeds if (problems := problems_of(seed, **options))}


def short(seeds):
    return found(seeds, steps=10)


def test_nothing_acknowledged_is_lost_or_doubled():
    assert found(range(1000)) == {}


def test_longer_histories():
    assert found(range(30), steps=80) == {}


def test_without_syncing_every_commit_labels_are_lost():
    """The control: what the simulator is for, it finds."""
    lost = found(range(100), synchronous="NORMAL")
    assert len(lost) > 25


def check(count):
    parts = [range(start, start + 5_000) for start in range(0, count, 5_000)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        assert [made for made in pool.map(short, parts) if made] == []


@pytest.mark.slow
def test_a_hundred_thousand_histories():
    check(100_000)


@pytest.mark.hard
def test_a_million_histories():
    check(1_000_000)
