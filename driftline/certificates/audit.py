"""Audit a run: replay its steps, and hold its total to every bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

import numpy as np

from driftline import models
from driftline.accounts import Tally, Watch, Watched, settled
from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_certificate import CommitteeCertificate
from driftline.certificates.premises import premises_of
from driftline.committee import CommitteeTrace
from driftline.engines import Block, CompiledEngine, Parts, PlainEngine
from driftline.errors import InputError
from driftline.kernels import program as at
from driftline.learner import OGD
from driftline.parts import from_config
from driftline.rates import Polyak
from driftline.tasks import RelevanceTask
from driftline.trace import Trace

__all__ = ["certify", "parts_of"]


@overload
def certify(
    trace: CommitteeTrace,
    comparator: Any = None,
    inputs: Any = None,
    labels: Any = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
) -> CommitteeCertificate: ...


@overload
def certify(
    trace: Trace | OGD,
    comparator: Any = None,
    inputs: Any = None,
    labels: Any = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Certificate: ...


def certify(
    trace: Trace | OGD | CommitteeTrace,
    comparator: Any = None,
    inputs: Any = None,
    labels: Any = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Certificate | CommitteeCertificate:
    """Return the certificate of a run against a comparator.

    The weights are replayed from the steps in the trace, and losses, risks and gradients are
    computed anew: nothing but the steps and the sampled losses is taken from the trace, and what
    differs from it is reported.

    Parameters
    ----------
    trace
        The record of a run by :meth:`~driftline.OGD.run`. Or a learner that was given a
        comparator by :meth:`~driftline.OGD.watch`: then the certificate comes from its sums, and
        nothing else is needed. Or the record of a committee's run, all members of which are
        audited: see :class:`~driftline.certificates.CommitteeCertificate`.
    comparator
        Weights to compare with: :class:`~driftline.comparators.Fixed`,
        :class:`~driftline.comparators.Piecewise`, :class:`~driftline.comparators.Sequence`. For a
        committee one for all, shrunk into the ball of each member, or a list with one each; it
        acts on the inputs as members saw them. Without one, members are held to weights of 0.
    inputs, labels
        The stream that was played, or a stream object alone.
    chance
        With which the statement on sampled losses may be false.
    keep
        Whether the certificate keeps ten numbers of every round, so that it can be asked for
        intervals and drawn. Without them it takes no memory that grows with the run.
    progress
        Called with the number of rounds just replayed.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> trace = dl.OGD(dl.losses.Logistic(stream.task)).run(stream)
    >>> certificate = certify(trace, stream.comparator.scaled(5.0), stream)
    >>> certificate.valid, bool(certificate.expected <= certificate.exact)
    (True, True)
    """
    if isinstance(trace, OGD):
        tally = replace(trace.tally)
        made = premises_of(trace.parts, trace.largest_input**2)
        return Certificate(trace.rounds - tally.rounds, trace.rounds, tally, made, (), chance)
    if not isinstance(trace, (Trace, CommitteeTrace)):
        raise InputError(f"expected a trace, or a learner under watch, but got {trace!r}")
    if labels is None:
        if not hasattr(inputs, "labels"):
            raise InputError("expected inputs and labels, or a stream that has both")
        inputs, labels = inputs.inputs, inputs.labels
    if isinstance(trace, CommitteeTrace):
        from driftline.certificates.committee_audit import certify_committee

        return certify_committee(trace, comparator, inputs, labels, chance, keep, progress)
    parts = parts_of(trace)
    task: Any = parts.loss.task
    rows, labels = task.rows_of(inputs), task.check_labels(labels)
    if not rows.rounds == len(labels) == len(trace):
        raise InputError(
            f"the trace has {len(trace)} rounds, but there are {rows.rounds} inputs and "
            f"{len(labels)} labels"
        )
    if trace.first_weights is None:
        raise InputError(
            "the trace has no first weights, so it cannot be replayed: run with audit=True"
        )
    engine = (CompiledEngine if parts.have_kernels else PlainEngine)(parts, replay=True)
    engine.start(np.array(trace.first_weights, order="C"))
    if engine.features != rows.features:
        raise InputError(
            f"inputs have {rows.features} features, but the learner had {engine.features}"
        )
    engine.hold(rows)
    watch, tally = Watch(engine, comparator), Tally(task.largest_loss)
    parts_seen: list[Watched] = []
    worst: dict[str, tuple[float, int]] = {}
    for start in range(0, rows.rounds, rows.block):
        stop = min(start + rows.block, rows.rounds)
        seen = _replay(watch, rows, labels, trace, start, stop)
        _compare(trace, seen, start, worst)
        seen = settled(seen, parts)
        tally.add(seen)
        if keep:
            parts_seen.append(seen)
        if progress is not None:
            progress(stop - start)
    findings = _findings(trace, worst, tally.inadmissible, parts)
    if trace.digest and trace.digest != models.fingerprint(rows, labels):
        findings += ("the stream is not the one of the trace: its fingerprint differs",)
    made = premises_of(parts, float(engine.state[at.LARGEST_INPUT_SQ]))
    if isinstance(task, RelevanceTask):  # what guessing costs depends on the grades
        guess = float(np.mean([task.guess_of(label) for label in labels]))
        made = replace(made, guess_loss=guess)
    return Certificate(
        0,
        len(trace),
        tally,
        made,
        findings,
        chance,
        Watched.join(parts_seen) if keep else None,
    )


def parts_of(trace: Trace) -> Parts:
    """Return the parts of the learner that made a trace."""
    config = trace.config
    if not config:
        raise InputError("the trace does not say which learner made it")
    names = ("loss", "decoder", "rate", "domain", "restart")
    made: Any = {name: from_config(config.get(name)) for name in names}
    return Parts(**made, intercept=bool(config["intercept"]))


def _replay(watch: Watch, rows: Any, labels: Any, trace: Trace, start: int, stop: int) -> Watched:
    count, loss = stop - start, watch.engine.parts.loss
    columns = np.empty((len(at.WATCHED_COLUMNS), count))
    columns[3] = trace.eta[start:stop]
    part = labels[start:stop]
    played, seen = watch.play(
        Block(
            rows,
            start,
            stop,
            part,
            np.full((count, 1), 0.5),
            columns,
            np.empty((count, loss.task.prediction_width(part)), dtype=np.int64),
            restarted=None if trace.restarted is None else trace.restarted[start:stop],
        )
    )
    if played < count:
        models.refuse(rows, start + played)
    return replace(seen, target_loss=trace.target_loss[start:stop])


def _compare(trace: Trace, seen: Watched, start: int, worst: dict[str, tuple[float, int]]) -> None:
    """Remember the largest differences between what was recorded and what was replayed."""
    for name in ("loss", "risk", "grad_sq"):
        recorded = getattr(trace, name)[start : start + len(seen)]
        off = np.abs(recorded - getattr(seen, name)) / (1e-6 + np.abs(recorded))
        t = int(np.argmax(off))
        if off[t] > worst.get(name, (0.0, 0))[0]:
            worst[name] = float(off[t]), start + t


def _findings(
    trace: Trace, worst: dict[str, tuple[float, int]], inadmissible: int, parts: Parts
) -> tuple[str, ...]:
    found = [
        f"the replayed {name} differs from the recorded one by a share of {off:.2g} in round {t}"
        for name, (off, t) in worst.items()
        if off > 1e-4
    ]
    if inadmissible and isinstance(parts.rate, Polyak):  # others promise nothing
        first = int(np.argmax(~trace.admissible))
        found.append(
            f"{inadmissible} steps lie above the admissible range, the first in round "
            f"{first}: {trace.eta[first]:.4g} > {trace.largest_eta[first]:.4g}"
        )
    return tuple(found)
