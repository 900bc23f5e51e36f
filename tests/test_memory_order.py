"""Equal inputs give equal bits, however they lie in memory."""

import dataclasses
import functools

import numpy as np
import pytest
from howmany import chosen
from test_check_learner import GOOD

import driftline as dl
from driftline.checks.learner_stream import planted, saved
from driftline.inputs import DenseRows, Items

pytestmark = pytest.mark.usefixtures("no_ids")


def backwards(array):
    return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]


def spread(array):
    """A view of every second row and third column of something larger."""
    wide = np.full((2 * array.shape[0], 3 * array.shape[1]), np.nan)
    wide[::2, 1::3] = array
    return wide[::2, 1::3]


def unaligned(array):
    """A view that begins one byte after a number could."""
    made = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    made[:] = array
    return made


LAYOUTS = [np.asfortranarray, backwards, spread, unaligned]


def laid_out(inputs, layout):
    return layout(inputs) if isinstance(inputs, np.ndarray) else [layout(x) for x in inputs]


def played(make, inputs, labels):
    """All bits that a learner makes of a stream: its trace, states, predictions and scores."""
    ran, stepped = make(), make()
    trace = ran.run(inputs, labels)
    for x, label in zip(inputs, labels, strict=True):
        stepped.step(x, label)
    names = ("loss", "risk", "target_loss", "eta", "grad_sq")
    bits = {name: np.array(getattr(trace, name)).tobytes() for name in names if name in vars(trace)}
    bits |= {"run": saved(ran), "steps": saved(stepped)}
    bits["tickets"] = [ran.ask(x).to_bytes() for x in inputs]
    if isinstance(ran, dl.OGD):
        bits["scores"] = [ran.scores(x).tobytes() for x in inputs]
    if hasattr(ran, "score_rows") and not ran.task.layout.ragged:
        bits["score_rows"] = ran.score_rows(inputs).tobytes()
        bits["one row"] = ran.score_rows(inputs[:1]).tobytes()
    return bits


@functools.cache
def in_order(make):
    """A stream that lies in order, and what a learner makes of it."""
    inputs, labels = planted(make(), 24, 0)
    return inputs, labels, played(make, inputs, labels)


@pytest.mark.parametrize("layout", chosen(list(LAYOUTS)[::2], list(LAYOUTS)))
@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD)
def test_bits_do_not_depend_on_the_layout_of_inputs(make, layout):
    inputs, labels, expected = in_order(make)
    assert played(make, laid_out(inputs, layout), labels) == expected


@pytest.mark.parametrize("name", ["tags", "ranking", "auto tags"])
def test_bits_do_not_depend_on_the_layout_of_labels(name):
    make = GOOD[name]
    inputs, labels, expected = in_order(make)
    for layout in (np.asfortranarray, backwards):
        assert played(make, inputs, layout(labels)) == expected


@dataclasses.dataclass(frozen=True)
class ByColumns(dl.domains.Domain):
    """Returns weights that lie column by column."""

    diameter: float = 20.0

    def project(self, weights):
        return np.asfortranarray(dl.domains.Ball(self.diameter).project(weights))


def test_bits_do_not_depend_on_how_a_domain_returns_weights():
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), domain=ByColumns())
    inputs, labels = planted(learner, 60, 0)
    learner.run(inputs[:30], labels[:30])
    restored = learner.copy()
    for one in (learner, restored):
        one.run(inputs[30:], labels[30:])
    assert saved(learner) == saved(restored)


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_certificates_do_not_depend_on_the_layout_of_a_comparator(layout):
    learner = GOOD["plain"]()
    inputs, labels = planted(learner, 40, 0)
    weights = np.random.default_rng(0).standard_normal((2, 3, 10))
    trace = learner.run(inputs, labels)
    made = []
    for given in (weights, np.stack([layout(w) for w in weights]), np.asfortranarray(weights)):
        comparator = dl.comparators.Piecewise([0, 20], given)
        made.append(str(dl.certify(trace, comparator, inputs, labels)))
    assert made[0] == made[1] == made[2]


def test_rows_in_order_are_not_copied():
    array = np.random.default_rng(0).standard_normal((5, 4))
    rows = DenseRows(array)
    for view in (rows.row(2), rows.entries(2)[1], rows.whole, *rows.arrays(1, 3)):
        assert np.shares_memory(view, array)
    assert np.shares_memory(Items([array]).matrix(0, False), array)
