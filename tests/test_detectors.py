"""What notices changes, and rates that need it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.detectors import Cusum
from driftline.errors import InputError
from driftline.rates import Decaying, Relative
from tests import naive


@given(
    st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), max_size=60),
    st.floats(0.5, 4),
    st.floats(1, 3),
    st.floats(0.05, 0.9),
    st.integers(1, 10),
)
def test_alarms_are_those_of_the_test_written_out(losses, threshold, factor, more, patience):
    setting = (threshold, factor, more, patience)
    found = Cusum(*setting).alarms(losses)
    assert found.tolist() == naive.cusum_alarms(losses, *setting)


def test_false_alarms_are_rare_and_changes_are_seen_soon():
    generator = np.random.default_rng(0)
    false, late = [], []
    for _ in range(20):
        losses = (generator.random(4000) < 0.1).astype(float)
        false.append(len(Cusum().alarms(losses)))
        losses[2000:] = generator.random(2000) < 0.8
        alarms = Cusum().alarms(losses)
        late.append(alarms[alarms >= 2000][0] - 2000)
    assert np.mean(false) <= 4000 * np.exp(-6.0)
    assert np.mean(late) < 20


def test_losses_that_fall_or_stay_at_the_top_give_no_alarm():
    assert Cusum().alarms(np.r_[np.ones(500), np.zeros(500)]).size == 0
    assert Cusum().alarms(np.ones(3000)).size == 0


@pytest.mark.parametrize(
    "setting", [{"threshold": 0.0}, {"factor": 0.5}, {"more": 1.0}, {"patience": 0}]
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        Cusum(**setting)


def test_losses_outside_their_range_are_refused():
    with pytest.raises(InputError, match="between 0 and 1"):
        Cusum().alarms([0.5, 2.0])


@pytest.mark.parametrize("setting", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("nan"))])
def test_decaying_rates_need_positive_numbers(setting):
    with pytest.raises(InputError, match="must be positive"):
        Decaying(*setting)
    with pytest.raises(InputError, match="must be positive"):
        Relative(*setting)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_relative_steps_are_the_same_for_every_multiple_of_a_loss(factor):
    """Queries of 3 and of 60 documents; a multiple of the loss divides all steps by itself."""
    task, rng = dl.tasks.NDCG(2), np.random.default_rng(0)
    inputs = [rng.standard_normal((size, 4)) for size in (3, 60) * 10]
    labels = [np.digitize(x[:, 0], [0.0, 1.0]) for x in inputs]
    made = []
    for scale in (2.0, 2.0 * factor):
        loss = dl.losses.Scaled(dl.losses.PairwiseLogistic(task), scale)
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), Relative(3.0, after=5.0), intercept=False)
        trace = learner.run(inputs, labels)
        moved = trace.loss > 0.0
        steps = (trace.eta * trace.loss)[moved]
        np.testing.assert_allclose(steps, 3.0 / (1.0 + np.arange(moved.sum()) / 5.0))
        made.append(learner.weights)
    np.testing.assert_allclose(*made, rtol=1e-9)


def test_steps_decay_as_stated():
    loss = dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Multiclass(2)), 2.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), Decaying(2.0, after=5.0, power=0.5))
    trace = learner.run(dl.streams.LabelFlips(rounds=50, flips=1, form="matrix"))
    np.testing.assert_allclose(trace.eta, 2.0 / np.sqrt(1.0 + np.arange(50) / 5.0))


def test_patience_ends_with_its_last_round():
    losses = np.r_[np.zeros(15), np.ones(30)]
    assert Cusum(threshold=0.5, patience=20).alarms(losses)[0] == 19
    with pytest.raises(dl.InputError, match="patience"):
        Cusum(patience=10**400)
