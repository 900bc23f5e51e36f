"""Random runs: no bound is false, no honest run is refused, no edit of a record goes unseen."""

import numpy as np
import pytest
from random_runs import random_run, tampered
from seeds import fresh_seed

import driftline as dl
from tests.howmany import examples


def held(seed):
    """Play a run, hold it to its bounds, edit its record; return how often each was done."""
    run = random_run(seed)
    made = run.certificate()
    assert made.valid and not made.unchecked, (seed, str(made))
    if isinstance(run.trace, dl.Trace):
        # what was paid is added up from the record, not from the audit
        paid = float(run.trace.risk.sum())
        slack = made.tally.rounding(made.premises.precision)
        for form, bound in made.bounds().items():
            assert isinstance(bound, str) or paid <= bound + slack, (seed, form)
        total = float((run.trace.eta * run.trace.risk).sum())
        assert total <= made.weighted_bound + slack * run.trace.eta.max(), seed
        assert made.sampled == pytest.approx(run.trace.target_loss.sum())
    edits = 0
    for name, trace in tampered(run, np.random.default_rng(seed)):
        edits += 1
        try:
            found = run.certificate(trace)
        except dl.InputError:
            continue
        assert not found.valid, (seed, name)
        if isinstance(trace, dl.Trace):
            assert found.over(0, 1).findings == found.findings, (seed, name)
    return edits


def test_some_random_runs_are_held_to_their_bounds():
    assert sum(map(held, examples(12, 24))) > 30


@pytest.mark.hard
def test_two_thousand_random_runs_are_held_to_their_bounds():
    first = fresh_seed()
    edits = sum(held(first + j) for j in range(2000))
    print(f"2000 runs, {edits} edits")


def second_run(seed):
    """Return the second run in a small ball in single precision, and the audit of its trace."""
    random = np.random.default_rng(seed)
    inputs = random.standard_normal((60, 5)).astype(np.float32)
    labels = random.integers(0, 3, 60)
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    learner = dl.OGD(loss, domain=dl.domains.Ball(1.0), dtype=np.float32)
    learner.run(inputs, labels)
    trace = learner.run(inputs, labels)
    return dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 5))), inputs, labels)


def test_a_second_run_in_single_precision_is_valid():
    for seed in range(40):
        made = second_run(seed)
        assert made.valid, (seed, str(made))


@pytest.mark.hard
def test_three_thousand_second_runs_in_single_precision_are_valid():
    for seed in range(3000):
        assert second_run(seed).valid, seed
