"""Runs drawn at random: losses and decoders, rates and caps, norms, restarts, precisions."""

import dataclasses
import math

import numpy as np
from scipy import sparse

import driftline as dl
from driftline.detectors import Cusum

T, L, D, R = dl.tasks, dl.losses, dl.decoders, dl.rates
Q, E = dl.regularizers.Quadratic, dl.regularizers.Entropy


def _scaled(loss, factor):
    made = L.Scaled(loss, factor)
    return made, D.Argmax(made)


def pairs(classes):
    """Return losses of these classes with their decoders."""
    task = T.Multiclass(classes)
    return [
        (L.Logistic(task), D.GapOptimal(L.Logistic(task))),
        (L.Logistic(task), D.StepOptimal(L.Logistic(task))),
        (L.Logistic(task), D.Lazy(L.Logistic(task))),
        (L.Logistic(task), D.UniformMix(L.Logistic(task))),
        (L.Logistic(task), D.NearestVertex(L.Logistic(task))),
        (L.SmoothHinge(task), D.GapOptimal(L.SmoothHinge(task))),
        _scaled(L.Logistic(task), 2.0),
        _scaled(L.Logistic(task), 8.0),
        _scaled(L.SmoothHinge(task), 4.0),
        (L.ConvolutionalFenchelYoung(task, E(0.5)), None),
        (L.ConvolutionalFenchelYoung(task, Q(0.5)), None),
    ]


@dataclasses.dataclass
class Run:
    """A learner or a committee, what it has played, and weights to compare with."""

    learner: object
    trace: object
    inputs: object
    labels: np.ndarray
    comparator: object

    def certificate(self, trace=None):
        given = self.trace if trace is None else trace
        return dl.certify(given, self.comparator, self.inputs, self.labels)


def _rate(random, floor):
    kind = random.integers(9)
    cap = floor * float(random.choice([0.05, 0.7, 1.0, 2.0, 10.0, 1e3]))
    return [
        R.Polyak(),
        R.Polyak(cap=cap),
        R.Polyak(monotone=False, cap=cap),
        R.Polyak(monotone=False, cap=cap),
        R.Constant(),
        R.Constant(float(random.choice([0.01, 0.5, 3.0]))),
        R.AdaGrad(),
        R.Decaying(float(random.choice([0.3, 2.0])), float(random.choice([5.0, 50.0]))),
        R.Relative(float(random.choice([0.3, 2.0])), float(random.choice([5.0, np.inf]))),
    ][kind]


def _stream(random, classes, rounds, features):
    """Planted weights that move a few times, label noise or none, norms of all sizes."""
    inputs = random.standard_normal((rounds, features))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    pieces = int(random.integers(1, 4))
    planted = random.standard_normal((pieces, classes, features))
    starts = np.r_[0, np.sort(random.choice(np.arange(1, rounds), pieces - 1, replace=False))]
    piece = np.searchsorted(starts, np.arange(rounds), side="right") - 1
    labels = np.einsum("tkf,tf->tk", planted[piece], inputs).argmax(axis=1)
    if random.random() < 0.3:  # one class only: nothing is lost
        labels[:] = 0
        planted[:] = 0.0
        planted[:, 0] = 1.0
    noisy = random.random(rounds) < float(random.choice([0.0, 0.0, 0.1, 1.0]))
    labels[noisy] = random.integers(0, classes, int(noisy.sum()))
    scale = float(random.choice([1e-3, 0.1, 1.0, 1.0, 1.0, 30.0]))
    inputs *= scale
    if random.random() < 0.3:
        inputs *= random.exponential(1.0, (rounds, 1))
    return inputs, labels, starts, planted, piece


def _learner(random, classes, domain, dtype, intercept):
    choices = pairs(classes)
    loss, decoder = choices[random.integers(len(choices))]
    if decoder is None:
        decoder = D.Convolutional(loss)
    rate = _rate(random, decoder.rate_floor)
    if isinstance(rate, R.AdaGrad) and not math.isfinite(domain.diameter):
        rate = R.Polyak()
    restart = Cusum(float(random.choice([0.3, 2.0])), 1.5, 0.05, 5)
    restart = restart if random.random() < 0.3 else None
    given = {"domain": domain, "restart": restart, "dtype": dtype, "intercept": intercept}
    return dl.OGD(loss, decoder, rate, seed=int(random.integers(100)), **given)


def random_run(seed):
    """Return a run, which may be the second of its learner."""
    random = np.random.default_rng([7, seed])
    classes, features = int(random.integers(2, 5)), int(random.integers(1, 6))
    rounds = int(random.choice([3, 30, 120, 400]))
    inputs, labels, starts, planted, piece = _stream(random, classes, rounds, features)
    dtype = np.float32 if random.random() < 0.4 else np.float64
    intercept = bool(random.random() < 0.2)
    diameter = float(random.choice([0.2, 1.0, 6.0, 20.0, 300.0]))
    domain = dl.domains.Ball(diameter) if random.random() < 0.9 else dl.domains.Unbounded()
    together = random.random() < 0.15
    if together:
        members = [
            _learner(random, classes, dl.domains.Ball(float(d)), dtype, intercept)
            for d in random.choice([1.0, 6.0, 20.0], int(random.integers(1, 5)))
        ]
        if random.random() >= 0.5:
            scale = dl.features.Standardise(dtype=dtype)
            members = [
                dl.OGD(**one.parts._asdict(), features=scale, dtype=dtype) for one in members
            ]
        learner = dl.Committee(members, seed=seed)
    else:
        learner = _learner(random, classes, domain, dtype, intercept)
    if random.random() < 0.3:
        inputs = sparse.csr_array(np.where(random.random(inputs.shape) < 0.5, 0.0, inputs))
    if random.random() < 0.5:  # a second run, which goes on; what came before may be larger
        learner.run(inputs * float(random.choice([1.0, 5.0])), labels)
        if random.random() < 0.5 and not together:
            learner.predict(inputs[[0]] if sparse.issparse(inputs) else inputs[0])
    new = None if random.random() < 0.5 else int(random.integers(100))
    trace = learner.run(inputs, labels, seed=new, audit=True)
    if together:
        return Run(learner, trace, inputs, labels, None)
    width = trace.first_weights.shape[1]
    weights = np.pad(planted, ((0, 0), (0, 0), (0, width - features)))
    norms = np.linalg.norm(weights.reshape(len(starts), -1), axis=1)[:, None, None]
    size = min(diameter / 2.0, 150.0) * float(random.choice([0.0, 0.3, 1.0]))
    comparator = dl.comparators.Piecewise(starts, weights / np.maximum(norms, 1e-12) * size)
    return Run(learner, trace, inputs, labels, comparator)


def tampered(run, random):
    """Yield the name of every edit, and the trace after it: all of these must be found out."""
    trace = run.trace
    if hasattr(trace, "members"):
        yield from _tampered_committee(trace, random)
        return
    t = int(random.integers(len(trace)))
    wrong = trace.target_loss > 0.0
    if wrong.any():
        yield "no target loss", dataclasses.replace(trace, target_loss=np.zeros(len(trace)))
    classes = run.learner.task.dim
    other = trace.prediction.copy()
    other[t] = (other[t] + 1) % classes
    yield "another prediction", dataclasses.replace(trace, prediction=other)
    told = dataclasses.replace(trace, prediction=other)
    target = trace.target_loss.copy()
    target[t] = float(other[t] != run.labels[t])
    yield "another prediction and its loss", dataclasses.replace(told, target_loss=target)
    if trace.risk[t] > 1e-3:
        risk = trace.risk.copy()
        risk[t] *= 0.9
        yield "less risk", dataclasses.replace(trace, risk=risk)
    # a gap between loss and risk that is lost in rounding tells no step, and no audit can
    digits = np.finfo(np.float64).eps
    clear = trace.loss - trace.risk > 1e5 * digits * trace.loss
    clear |= not isinstance(run.learner.rate, R.Polyak)
    moved = np.flatnonzero((trace.grad_sq > 1e-100) & clear)
    if len(moved):
        eta = trace.eta.copy()
        eta[moved[int(random.integers(len(moved)))]] *= float(random.choice([0.5, 1.5]))
        yield "another step", dataclasses.replace(trace, eta=eta)
    used = len(moved) >= 3
    if used and not isinstance(run.learner.rate, R.Polyak):
        config = trace.config | {"rate": R.Polyak().config()}
        yield "another rate", dataclasses.replace(trace, config=config)
    if trace.restarted is not None:
        for first in (False, True):
            place = np.flatnonzero(trace.restarted == first)
            if len(place):
                flags = trace.restarted.copy()
                flags[place[int(random.integers(len(place)))]] = not first
                yield f"restarted {not first}", dataclasses.replace(trace, restarted=flags)
        config = trace.config | {"restart": Cusum(50.0).config()}
        if trace.restarted[1:].any():  # the first may be due to a round before the run
            yield "another detector", dataclasses.replace(trace, config=config)


def _tampered_committee(trace, random):
    t = int(random.integers(len(trace)))
    if trace.target_loss.any():
        yield "no target loss", dataclasses.replace(trace, target_loss=np.zeros(len(trace)))
    other = trace.prediction.copy()
    other[t] = 0 if other[t] else 1
    yield "another prediction", dataclasses.replace(trace, prediction=other)
    if trace.member_risk[t].max() > 1e-3:
        risks = trace.member_risk.copy()
        risks[t] *= 0.5
        yield "less risk of members", dataclasses.replace(trace, member_risk=risks)
    weights = np.roll(trace.weights, 1, axis=1)
    if np.abs(weights - trace.weights).max() > 1e-3:
        yield "other weights", dataclasses.replace(trace, weights=weights)
    j = int(random.integers(len(trace.members)))
    member = trace.members[j]
    if member.target_loss.any():
        fine = dataclasses.replace(member, target_loss=np.zeros(len(trace)))
        members = (*trace.members[:j], fine, *trace.members[j + 1 :])
        yield "no target loss of a member", dataclasses.replace(trace, members=members)
