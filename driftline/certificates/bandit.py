r"""Certificates of runs that do not see labels: hits and misses, clicks, losses.

Bounds of :mod:`driftline.bandit` are those of an expectation. Where all labels are known
afterwards, as in a simulation, what chance has added in one run is a number. A label has d parts,
each of which is seen or not: tags that are shown, or the one label that is predicted. With
:math:`h_j = 1[j \text{ is seen}] / p_j`, which is 1 on average,

.. math:: \sum_t \mathbb E \ell_t \le F_T + \frac{D}{d\, \eta_T} \Bigl(\frac D2 + P_T\Bigr)
    + \sum_t s_t + \sum_t \nu_t

holds in every run for every comparator, where the *noise*

.. math:: \nu_t = \frac1d \sum_j (1 - h_j) \Bigl(L_j(W_t) - L_j(U_t)
    - \frac{\eta_t}2 \|G_j\|^2 / p_j\Bigr)

has mean 0 if the comparator does not depend on the draws: steps are made along
:math:`\sum_j h_j G_j`, whose terms are orthogonal, so that :math:`\sum h_j (L_j(W_t) - L_j(U_t))` is
at most d times the second term and :math:`\sum \frac{\eta_t}2 h_j^2 \|G_j\|^2`, where
:math:`h_j^2 = h_j / p_j`; and by definition of the slack
:math:`\mathbb E \ell_t \le s_t + \frac1d \sum_j (L_j(W_t) - \frac{\eta_t}2 \|G_j\|^2 / p_j)`.

Where labels come late, all this holds in the order of arrival, with the losses and gradients of the
arrival and the probabilities of the prediction: weights that a label meets depend on the draws of
other rounds alone, so that h is 1 on average there, too.
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftline import inputs
from driftline.bandit import Policy
from driftline.bandit.learner import Unseen
from driftline.certificates.certificate import Delayed
from driftline.certificates.events import Events
from driftline.certificates.inside import Inside
from driftline.certificates.late import InOrder
from driftline.certificates.recorded import as_rows, learner_of, stream_of
from driftline.comparators import Fixed, check_comparator
from driftline.comparators.checking import Comparator
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.inputs.taking import take_labels, view
from driftline.members.remembering import dense
from driftline.trace import Batch, Trace, joined
from driftline.typing import CheckedLabels, Inputs, Labels

__all__ = ["BanditCertificate", "certify_bandit"]

#: The relative error that rounding may cause in a recorded number, and in the terms of a sum.
ROUNDING, DIGITS = 1e-6, 1e-12


@dataclass(frozen=True)
class BanditCertificate:
    """Totals of a run that did not see labels, and the bound by one of its policies.

    ``expected`` is the sum of expected target losses given the past, ``sampled`` that of the
    predictions made; ``comparator_loss`` and ``path_length`` are F_T and P_T; ``price`` is
    D (D/2 + P_T) over the last step and the number of tags. ``noise`` is what chance has added in
    this run, 0 on average. ``policy`` is the one whose bound is smallest; None if there is none,
    and ``no_bound`` says why.
    """

    rounds: int
    expected: float
    sampled: float
    trivial: float
    policy: Policy | None = None
    comparator_loss: float = math.nan
    path_length: float = math.nan
    price: float = math.inf
    slack: float = math.inf
    noise: float = math.nan
    findings: tuple[str, ...] = ()
    no_bound: str = ""
    delayed: Delayed | None = None

    @property
    def bound(self) -> float:
        """The bound of the expected total, if the comparator does not depend on the draws."""
        return self.comparator_loss + self.price + self.slack if self.policy else math.inf

    @property
    def exact(self) -> float:
        """The bound of this very run, with its noise; it holds for every comparator."""
        return self.bound + self.noise if self.policy else math.inf

    @property
    def surrogate_regret(self) -> float:
        """The expected target loss minus the comparator's surrogate loss."""
        return self.expected - self.comparator_loss

    @property
    def vacuous(self) -> bool:
        """Whether guessing has a smaller bound."""
        return self.bound >= self.trivial

    @property
    def valid(self) -> bool:
        """Whether the run is the recorded one, and its total below its exact bound."""
        if self.findings or self.policy is None:
            return not self.findings
        terms = (self.comparator_loss, self.price, self.slack, self.noise)
        rounding = DIGITS * sum(map(abs, terms)) + ROUNDING * (1.0 + abs(self.exact))
        return self.expected <= self.exact + rounding

    def __str__(self) -> str:
        """Return a table."""
        lines = [f"{'rounds':34}{self.rounds:12d}"]
        rows = [
            ("expected target loss", self.expected),
            ("sampled target loss", self.sampled),
            ("guessing", self.trivial),
        ]
        if self.policy is not None:
            rows += [
                ("comparator's surrogate loss F_T", self.comparator_loss),
                ("path length P_T", self.path_length),
                ("price of start and path", self.price),
                ("slack, known without labels", self.slack),
                ("bound of the expectation", self.bound),
                ("noise of this run, 0 on average", self.noise),
                ("bound of this run", self.exact),
            ]
        lines += [f"{name:34}{value:12.1f}" for name, value in rows]
        if self.policy is None:
            lines.append(f"no bound: {self.no_bound}")
        else:
            words = ", vacuous: guessing has a smaller one" if self.vacuous else ""
            lines.append(f"the bound is that of {self.policy!r}{words}")
        if self.delayed is not None:
            cost, left = self.delayed
            words = f", which cost {cost:.5g}" if cost else ""
            lines.append(f"labels came late{words}; {left} have not come")
        lines += [f"! {finding}" for finding in self.findings]
        lines.append("valid" if self.valid else "NOT VALID")
        return "\n".join(lines)


def certify_bandit(
    trace: Trace,
    comparator: Any,
    given: Inputs,
    labels: Labels,
    progress: Callable[[int], None] | None,
) -> BanditCertificate:
    """Play the rounds again, and compare the total with the bound of every policy that has one."""
    if comparator is not None:
        check_comparator(comparator)
    trace = Trace.from_saved(*trace.to_saved())  # checked like one from a file
    learner: Unseen = learner_of(trace)
    rows, checked = stream_of(trace, learner.task, given, labels)
    audit = _Audit(learner, trace, comparator)
    codes = take_labels(checked, audit.rounds)
    played = view(rows, audit.rounds) if audit.events is not None else rows
    played.asked = None if audit.events is None else audit.events.asked
    size = learner._batch_size(rows)
    for start in range(0, played.rounds, size):
        stop = min(start + size, played.rounds)
        audit.play(played, codes, start, stop)
        if progress is not None:
            progress(stop - start)
    if trace.digest and trace.digest != inputs.fingerprint(rows, checked):
        audit.findings["the stream is not the one of the trace: its fingerprint differs"] = 0
    return audit.certificate(take_labels(checked, audit.order))


class _Audit:
    """Sums over the rounds of a run, which is played again.

    Where labels came late, its events are played: a round is asked for in one, and told in another.
    """

    def __init__(self, learner: Any, trace: Trace, comparator: Comparator | None):
        self.learner, self.trace = learner, trace
        self.findings: dict[str, int] = {}
        self.expected = self.sampled = 0.0
        self.events = None if trace.arrival is None else Events(trace)
        #: The round of every event, and the rounds in the order in which their labels came.
        self.rounds = self.order = np.arange(len(trace))
        if self.events is not None:
            self.rounds, self.order = self.events.rounds, self.events.order
            if comparator is not None:
                comparator = InOrder(comparator, self.order, len(trace))
        self.carriers = [learner.policies[i] for i in learner.feedback.carriers]
        self.against = [_Against(learner, policy, comparator) for policy in self.carriers]
        self.slack, self.noise = np.zeros(len(self.carriers)), np.zeros(len(self.carriers))
        self.asked, self.told = learner._tickets, 0

    def play(self, rows: Rows, labels: CheckedLabels, start: int, stop: int) -> None:
        """Play some events again, note where the trace differs from them, and add them up."""
        learner, part, here = self.learner, labels[start:stop], self.rounds[start:stop]
        learner._check_features(rows)
        room = learner._audit_room(part)
        asks = tells = np.arange(stop - start)
        if self.events is not None:
            room = room.delayed(self.events, start, stop)
            asks, tells = np.flatnonzero(room["asked"]), np.flatnonzero(~room["asked"])
        mapped, first, last = learner._piece(rows, start, stop)
        learner._play_mapped(mapped, first, last, part, self.asked, room)
        self._compare(room, "prediction", asks, here[asks])
        self._compare(room, "chance", asks, here[asks])
        came = asks[self.trace.arrived[here[asks]]]
        for name in ("risk", "target_loss"):
            self._compare(room, name, came, here[came])
        for name in ("loss", "slack"):
            self._compare(room, name, tells, here[tells])
        if self.events is not None:
            self._compare(room, "risk", tells, here[tells], "arrival_risk")
        self.expected += float(room["risk"][came].sum())
        self.sampled += float(room["target_loss"][came].sum())
        before, self.told = self.told, self.told + len(tells)
        self.asked += len(asks)
        if not self.carriers or not len(tells):
            return
        (vectors,) = dense(mapped).arrays(first, last)
        self.slack += room["slack"][tells].sum(axis=0)
        self.noise += room["noise"][tells].sum(axis=0)
        known = take_labels(part, tells)
        for place, against in enumerate(self.against):
            theirs = against.losses(vectors[tells], known, before, self.told)
            self.noise[place] -= ((1.0 - room["inverse"][tells]) * theirs).mean(axis=1).sum()

    def _compare(
        self, room: Batch, name: str, events: np.ndarray, rounds: np.ndarray, recorded: str = ""
    ) -> None:
        """Count where a column of the trace differs from that of the rounds in some events."""
        if name not in room.columns:
            return
        made, whole = room[name][events], getattr(self.trace, recorded or name)
        own = made[:0] if whole is None else whole[rounds]
        if name == "prediction":
            own = as_rows(own)
            made = joined([{name: own[:0]}, {name: made}])[name]  # padded to the same width
        if own.shape != made.shape:
            raise InputError(f"the trace has no column {name!r} of the learner's rounds")
        off = np.abs(own - made) > ROUNDING * (1.0 + np.abs(made))
        words = f"recorded numbers ({recorded or name}) are not those of the rounds"
        if off.any():
            self.findings[words] = self.findings.get(words, 0) + int(off.sum())

    def certificate(self, labels: CheckedLabels) -> BanditCertificate:
        """Return the certificate, by the policy with the smallest bound."""
        learner, rounds, trace = self.learner, len(self.order), self.trace
        delayed = None
        if trace.arrival_risk is not None:
            cost = float((trace.risk - trace.arrival_risk)[self.order].sum())
            delayed = Delayed(cost, len(trace) - rounds)
        words = tuple(f"{count} {text}" if count else text for text, count in self.findings.items())
        made = BanditCertificate(
            rounds,
            self.expected,
            self.sampled,
            learner.feedback.guess_loss(labels) * rounds,
            findings=words,
            no_bound=learner.feedback.no_bound,
            delayed=delayed,
        )
        last = np.array([learner.rounds - 1])
        options = []
        for place, policy in enumerate(self.carriers):
            against, diameter = self.against[place], learner.feedback.diameter(policy)
            path = 0.5 * diameter + against.path_length
            own = replace(
                made,
                policy=policy,
                comparator_loss=against.total,
                path_length=against.path_length,
                price=diameter * path / (learner.feedback.parts * float(policy.at(last)[0])),
                slack=float(self.slack[place]),
                noise=float(self.noise[place]),
            )
            options.append(own)
        return min(options, key=lambda option: option.bound, default=made)


class _Against:
    """The losses of a comparator on mapped rows, inside the ball of a policy."""

    def __init__(self, learner: Any, policy: Policy, comparator: Comparator | None):
        self.learner, self.domain = learner, Ball(learner.feedback.diameter(policy))
        self.comparator, self.last = comparator, np.zeros((0, 0))
        self.total = self.path_length = 0.0

    def losses(
        self, vectors: np.ndarray, labels: CheckedLabels, start: int, stop: int
    ) -> np.ndarray:
        """Return the comparator's losses of all parts, and add up how far it moves."""
        shape = self.learner.task.layout.weight_rows, vectors.shape[1]
        own = Fixed(np.zeros(shape)) if self.comparator is None else self.comparator
        losses, begin = np.empty((stop - start, self.learner.feedback.parts)), start
        for weights, end in Inside(own, self.domain).pieces(start, stop):
            if weights.shape != shape:
                raise InputError(
                    f"a comparator for these {shape[1]} features, as the learner's map makes "
                    f"them, has weights of shape {shape}, not {weights.shape}"
                )
            here = slice(begin - start, end - start)
            theta = vectors[here] @ weights.T
            losses[here] = self.learner.feedback.surrogate_losses(theta, np.asarray(labels[here]))
            if self.last.size:
                self.path_length += float(np.linalg.norm(weights - self.last))
            self.last, begin = weights, end
        self.total += float(losses.mean(axis=1).sum())
        return losses
