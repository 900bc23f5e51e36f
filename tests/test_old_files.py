"""Files that version 0.1.0 wrote are read, and what they hold goes on as it would have.

``files_0_1`` has models after 200 rounds, their traces, and in ``later.npz`` what version 0.1.0 did
in the next 100 rounds.
"""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import driftline as dl

FOLDER = Path(__file__).parent / "files_0_1"
LATER = dict(np.load(FOLDER / "later.npz"))
SINGLE = ("polyak", "restarting", "adagrad", "sparse")


def stream(name):
    """Return the inputs and labels that the files were made with."""
    generator = np.random.default_rng(7)
    weights = generator.normal(size=(3, 6))
    scales = np.array([1.0, 5.0, 0.2, 1.0, 1.0, 3.0])
    inputs = generator.normal(size=(300, 6)) * scales + 1.0
    labels = (inputs @ weights.T).argmax(axis=1)
    if "sparse" in name:
        inputs = sp.csr_array(np.where(generator.random(inputs.shape) < 0.4, inputs, 0.0))
    return inputs, labels


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_learner_goes_on_with_the_same_losses(name):
    inputs, labels = stream(name)
    learner = dl.load(FOLDER / f"{name}.driftline")
    assert learner.rounds == 200
    trace = learner.run(inputs[200:], labels[200:])
    for column in ("loss", "risk", "eta"):
        np.testing.assert_allclose(getattr(trace, column), LATER[f"{name}.{column}"], rtol=1e-9)
    if learner.decoder.deterministic:
        np.testing.assert_array_equal(trace.prediction, LATER[f"{name}.prediction"])


def test_a_committee_keeps_its_members():
    learner = dl.load(FOLDER / "drawing.driftline")
    made = np.stack([member.weights for member in learner.members])
    np.testing.assert_array_equal(made, LATER["drawing.member_weights"])


@pytest.mark.parametrize("name", SINGLE)
def test_a_trace_is_read_and_certified(name):
    inputs, labels = stream(name)
    trace = dl.Trace.load(FOLDER / f"{name}.npz")
    zeros = dl.comparators.Fixed(np.zeros(trace.first_weights.shape))
    made = dl.certify(trace, zeros, inputs[:200], labels[:200])
    assert made.valid and made.unchecked, str(made)


def test_the_trace_of_a_committee_is_read():
    inputs, labels = stream("drawing")
    trace = type(dl.auto(dl.tasks.Binary(), effort="fast").run([[1.0]], [1])).load(
        FOLDER / "drawing.npz"
    )
    assert len(trace) == 200
    assert dl.certify(trace, None, inputs[:200], labels[:200]).valid


@pytest.mark.parametrize("name", (*SINGLE, "drawing"))
def test_what_was_loaded_is_saved_as_files_are_today(name, tmp_path):
    inputs, labels = stream(name)
    one = dl.load(FOLDER / f"{name}.driftline")
    two = dl.load(one.save(tmp_path / "model"))
    rest = inputs[200:], labels[200:]
    np.testing.assert_array_equal(one.run(*rest).prediction, two.run(*rest).prediction)
