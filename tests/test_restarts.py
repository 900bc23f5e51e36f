"""Learners that start again when a detector gives an alarm."""

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.detectors import Cusum, Detector
from driftline.errors import InputError

EAGER = Cusum(threshold=0.3, factor=1.5, more=0.05, patience=5)


def learner(task, restart=EAGER, rate=None, **options):
    if isinstance(task, dl.tasks.Sequence):
        loss = dl.losses.Scaled(dl.losses.CRF(task), 2.0)
    elif isinstance(task, dl.tasks.NDCG):
        loss = dl.losses.ConvolutionalFenchelYoung(task)
    else:
        loss = dl.losses.Scaled(dl.losses.Logistic(task), 2.0)
    rate = rate or dl.rates.Polyak()
    decoder = None if isinstance(task, dl.tasks.NDCG) else dl.decoders.Argmax(loss)
    return dl.OGD(loss, decoder, rate, dl.domains.Ball(20.0), restart=restart, **options)


def flips(rounds=600, flips=5, seed=0):
    return dl.streams.LabelFlips(rounds=rounds, flips=flips, seed=seed, form="matrix")


def streams():
    generator = np.random.default_rng(1)
    stream = flips()
    yield "dense", stream.task, stream.inputs, stream.labels
    yield "sparse", stream.task, sparse.csr_array(stream.inputs), stream.labels
    tags = (stream.inputs @ generator.standard_normal((2, 4)) > 0).astype(int)
    tags[300:] = 1 - tags[300:]
    yield "tags", dl.tasks.Multilabel(4), stream.inputs, tags
    docs = [generator.standard_normal((6, 3)) for _ in range(300)]
    signs = np.where(np.arange(300) < 150, 1, -1)
    ranks = [np.argsort(np.argsort(d[:, 0] * sign)) for d, sign in zip(docs, signs, strict=True)]
    grades = [rank // 2 for rank in ranks]
    yield "items", dl.tasks.NDCG(max_relevance=2), docs, grades
    words = [generator.standard_normal((3, 4)) for _ in range(120)]
    sequences = [(w[:, 0] * (1 if t < 60 else -1) > 0).astype(int) for t, w in enumerate(words)]
    yield "sequences", dl.tasks.Sequence(2), words, sequences


@pytest.mark.parametrize("rate", [dl.rates.Polyak(), dl.rates.AdaGrad(), dl.rates.Decaying(2.0)])
@pytest.mark.parametrize("case", list(streams()), ids=lambda case: case[0])
def test_a_learner_that_restarts_is_fresh_learners_one_after_another(case, rate):
    name, task, inputs, labels = case
    trace = learner(task, rate=rate).run(inputs, labels)
    alarms = EAGER.alarms(np.clip(trace.risk / task.largest_loss, 0.0, 1.0))
    assert len(alarms) >= 1 or name == "items"
    np.testing.assert_array_equal(
        np.flatnonzero(trace.restarted), alarms[alarms < len(trace) - 1] + 1
    )
    starts = [0, *(alarms + 1), len(trace)]
    for start, stop in zip(starts[:-1], starts[1:], strict=True):
        if start < stop:
            alone = learner(task, None, rate).run(inputs[start:stop], labels[start:stop])
            for name in ("loss", "risk", "eta", "grad_sq"):
                np.testing.assert_array_equal(
                    getattr(trace, name)[start:stop], getattr(alone, name)
                )


@pytest.mark.parametrize("case", list(streams()), ids=lambda case: case[0])
def test_step_run_and_pieces_give_the_same_bits(case):
    _, task, inputs, labels = case
    whole, pieces, steps = learner(task), learner(task), learner(task)
    trace = whole.run(inputs, labels)
    cuts = [0, 1, 17, 90, len(trace)]
    parts = [pieces.run(inputs[a:b], labels[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    for name in ("loss", "risk", "eta", "restarted"):
        joined = np.concatenate([getattr(p, name) for p in parts])
        np.testing.assert_array_equal(joined, getattr(trace, name))
    for t in range(len(trace)):
        x = inputs[t : t + 1] if sparse.issparse(inputs) else inputs[t]
        seen = steps.predict(x)
        made = steps.step(x, labels[t])
        np.testing.assert_array_equal(seen, made.prediction)
        assert made.loss == trace.loss[t]
        assert made.eta == trace.eta[t]
    np.testing.assert_array_equal(whole.weights, pieces.weights)
    np.testing.assert_array_equal(whole.weights, steps.weights)


@pytest.mark.parametrize("rate", [dl.rates.Polyak(), dl.rates.Decaying(2.0)])
@pytest.mark.parametrize("seed", range(3))
def test_certificates_hold_over_restarts(seed, rate):
    stream = flips(seed=seed)
    one = learner(stream.task, rate=rate)
    tally = one.watch(stream.comparator.scaled(4.0))
    trace = one.run(stream)
    certificate = dl.certify(trace, stream.comparator.scaled(4.0), stream)
    assert certificate.findings == ()
    assert certificate.tally.restarts == trace.restarted.sum() > 0
    for made in (certificate, dl.certify(one)):
        assert made.expected <= made.exact <= made.diameter * (1 + 1e-9)
        np.testing.assert_allclose(made.exact, certificate.exact)
        np.testing.assert_allclose(made.diameter, certificate.diameter)
    assert tally.restarts == certificate.tally.restarts
    if not certificate.premises.no_theorem:
        assert certificate.diameter <= certificate.worst_case
    generator = np.random.default_rng(seed)
    for start, stop in np.sort(generator.integers(0, 600, (20, 2))):
        if start < stop:
            over = certificate.over(int(start), int(stop))
            assert over.expected <= over.exact <= over.diameter * (1 + 1e-9)
            assert over.weighted_total <= over.weighted_bound + 1e-9


def test_the_worst_case_pays_for_every_start():
    stream = flips()
    made = dl.certify(learner(stream.task).run(stream), stream.comparator, stream)
    once = dl.certify(learner(stream.task, None).run(stream), stream.comparator, stream)
    price = 20.0**2 / 2 / once.premises.floor
    np.testing.assert_allclose(made.worst_case, once.worst_case + made.tally.restarts * price)


def test_a_detector_of_ones_own_runs_in_plain_python():
    class Every(Detector):
        """An alarm every tenth round."""

        def memory(self):
            return (0.0,)

        def sees(self, loss, memory):
            memory[0] += 1.0
            return memory[0] == 10.0

    stream = flips(rounds=45, flips=1)
    one = learner(stream.task, Every())
    trace = one.run(stream)
    np.testing.assert_array_equal(np.flatnonzero(trace.restarted), [10, 20, 30, 40])
    assert "detector without kernels" in one.describe()


def test_restarts_are_part_of_the_configuration():
    stream = flips()
    one = learner(stream.task, Cusum(5.0))
    assert "Cusum(threshold=5.0" in repr(one)
    assert "starts again" in one.describe()
    assert one._config()["restart"]["threshold"] == 5.0
    assert learner(stream.task, None)._config()["restart"] is None
    with pytest.raises(InputError, match="restart must be a detector"):
        learner(stream.task, "often")


def test_first_weights_of_ones_own_are_for_the_first_start_alone():
    stream = flips(rounds=300, flips=1)
    one = learner(stream.task, initial=np.eye(2))
    trace = one.run(stream)
    starts = np.flatnonzero(trace.restarted)
    assert len(starts)
    np.testing.assert_allclose(trace.loss[starts], 2.0)  # of scores 0, twice one bit
    assert trace.loss[0] != 2.0


def test_a_later_piece_of_a_run_is_audited_by_its_record():
    stream = flips()
    one = learner(stream.task, rate=dl.rates.AdaGrad())
    one.run(stream.inputs[:130], stream.labels[:130])
    trace = one.run(stream.inputs[130:], stream.labels[130:])
    assert trace.restarted.any()
    zero = dl.comparators.Fixed(np.zeros((2, 2)))
    made = dl.certify(trace, zero, stream.inputs[130:], stream.labels[130:])
    assert made.findings == ()
    assert made.expected <= made.exact
