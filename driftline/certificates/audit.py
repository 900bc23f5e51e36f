"""Audit a run: replay its steps, and compare its total with every bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from driftline.certificates.accounts import Account
from driftline.certificates.bandit import BanditAccount, BanditCertificate
from driftline.certificates.certificate import Certificate
from driftline.certificates.committee_account import CommitteeAccount
from driftline.certificates.committee_certificate import CommitteeCertificate
from driftline.certificates.premises import premises_of
from driftline.certificates.replay import Stream, learner_of, replay
from driftline.committee import CommitteeTrace
from driftline.comparators.checking import Comparator
from driftline.errors import InputError
from driftline.learner import OGD, checked_weights
from driftline.parts import check_flag
from driftline.trace import Trace
from driftline.typing import Inputs, Labels

__all__ = ["certify"]


@overload
def certify(
    trace: CommitteeTrace,
    comparator: Comparator | Sequence[Comparator | None] | None = None,
    inputs: Inputs = None,
    labels: Labels = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> CommitteeCertificate: ...


@overload
def certify(
    trace: Trace | OGD,
    comparator: Comparator | None = None,
    inputs: Inputs = None,
    labels: Labels = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Certificate: ...


def certify(
    trace: Trace | OGD | CommitteeTrace,
    comparator: Comparator | Sequence[Comparator | None] | None = None,
    inputs: Inputs = None,
    labels: Labels = None,
    *,
    chance: float = 0.05,
    keep: bool = True,
    progress: Callable[[int], None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Certificate | CommitteeCertificate | BanditCertificate:
    """Return the certificate of a run against a comparator.

    The weights are replayed from the steps in the trace. All else is computed anew: losses, risks
    and gradients, predictions and their target losses, the steps of the rate and the alarms of the
    detector. Every difference from the trace is reported. A learner without gradient steps
    (:mod:`driftline.members`) is played again, and has totals but no bounds. For one that
    does not see labels see :class:`~driftline.certificates.BanditCertificate`.

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
        committee one for all members, shrunk into the ball of each, or a list with one for each; it
        acts on the inputs as members saw them. Without one, members are compared with weights of 0.
        Learners without weights take none.
    inputs, labels
        The stream that was played, or a stream object alone.
    chance
        The probability with which the bound of sampled losses may fail.
    keep
        Whether the certificate keeps ten numbers of every round, for plots and certificates of
        intervals. Without them it takes constant memory.
    progress
        A callback that is given the number of rounds just replayed.
    sample_weight
        The sample weights of the run, to check those in the trace.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> trace = dl.OGD(dl.losses.Logistic(stream.task)).run(stream)
    >>> certificate = certify(trace, stream.comparator.scaled(5.0), stream)
    >>> certificate.valid, bool(certificate.expected <= certificate.exact)
    (True, True)
    """
    _check_options(chance, keep, progress)
    if isinstance(trace, OGD):
        if sample_weight is not None:
            raise InputError("a learner that keeps account has its sums alone: give no weights")
        tally = replace(trace.tally)
        if not tally.rounds:
            raise InputError("no round was played since the learner was given a comparator")
        known = premises_of(trace)
        return Certificate(trace.rounds - tally.rounds, trace.rounds, tally, known, (), chance)
    if not isinstance(trace, (Trace, CommitteeTrace)):
        raise InputError(f"expected a trace, or a learner after watch(), but got {trace!r}")
    if labels is None:
        if not hasattr(inputs, "labels"):
            raise InputError("expected inputs and labels, or a stream that has both")
        if sample_weight is None:
            sample_weight = getattr(inputs, "sample_weight", None)
        inputs, labels = inputs.inputs, inputs.labels
    with np.errstate(all="ignore"):  # a bound that overflows counts as broken
        made = _certify(trace, comparator, inputs, labels, chance, keep, progress, sample_weight)
    if isinstance(made, BanditCertificate):
        return made
    return _with_weights(made, trace, sample_weight)


def _certify(
    trace: Trace | CommitteeTrace,
    comparator: Any,
    inputs: Inputs,
    labels: Labels,
    chance: float,
    keep: bool,
    progress: Callable[[int], None] | None,
    sample_weight: npt.ArrayLike | None,
) -> Any:
    """Replay a trace, find its differences from the replay, and add up what bounds need."""
    learner = learner_of(trace)
    if not learner.feedback.full and sample_weight is not None:
        words = f"rounds that are learned from {learner._fixed.feedback} count once each"
        raise InputError(f"{words}: give no sample weights")
    stream = Stream(trace, learner.task, inputs, labels)
    kind: Any = Account if learner.feedback.full else BanditAccount
    kind = CommitteeAccount if isinstance(trace, CommitteeTrace) else kind
    account = kind(learner, trace, comparator, stream, chance, keep)
    for piece in replay(learner, stream):
        account.add(piece)
        if progress is not None:
            progress(len(piece.tells))
    return account.certificate()


def _with_weights(
    certificate: Any, trace: Trace | CommitteeTrace, sample_weight: npt.ArrayLike | None
) -> Any:
    """Compare the sample weights of a trace with those that were given, or say that none were."""
    given, own = checked_weights(sample_weight, len(trace)), trace.sample_weight
    if given is None:
        if own is None:
            return certificate
        note = "the sample weights, which are those of the trace"
        return replace(certificate, unchecked=(*certificate.unchecked, note))
    wrong = np.flatnonzero(given != (1.0 if own is None else own))
    if not len(wrong):
        return certificate
    found = f"{len(wrong)} sample weights are not those of the trace, the first in round {wrong[0]}"
    return replace(certificate, findings=(*certificate.findings, found))


def _check_options(chance: float, keep: bool, progress: Callable[[int], None] | None) -> None:
    """Refuse invalid options."""
    number = isinstance(chance, (int, float, np.floating)) and not isinstance(chance, bool)
    if not (number and 0.0 < chance < 1.0):
        raise InputError(f"chance must lie between 0 and 1, but is {chance!r}")
    check_flag("keep", keep)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function of a number of rounds, not {progress!r}")
