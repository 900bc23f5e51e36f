r"""Certificates of runs with bandit feedback.

The bound of :mod:`driftline.bandit.learner` is one of an expectation. Where all labels are known
afterwards, as in a simulation, what chance has added in one run is a number. With
:math:`h_t = 1[\hat y_t = y_t] / p_t(y_t)`, which is 1 on average,

.. math:: \sum_t (1 - p_t(y_t)) \le F_T + \frac{D}{\eta_T} \Bigl(\frac D2 + P_T\Bigr)
    + \sum_t s_t + \sum_t \nu_t

holds in every run for every comparator, where the *noise*

.. math:: \nu_t = (1 - h_t) \Bigl(L_t(W_t) - L_t(U_t)
    - \frac{\eta_t}2 \|G_t\|^2 / p_t(y_t)\Bigr)

has mean 0 if the comparator does not depend on the draws: steps are made along
:math:`h_t G_t`, so that :math:`\sum h_t (L_t(W_t) - L_t(U_t))` is at most the second term and
:math:`\sum \frac{\eta_t}2 h_t^2 \|G_t\|^2`, where :math:`h_t^2 = h_t / p_t(y_t)`; and by
definition of the slack
:math:`1 - p_t(y_t) \le L_t(W_t) + s_t - \frac{\eta_t}2 \|G_t\|^2 / p_t(y_t)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftline import inputs
from driftline.bandit import Bandit, Policy
from driftline.certificates.inside import Inside
from driftline.certificates.recorded import as_rows, learner_of, stream_of
from driftline.comparators import Fixed, check_comparator
from driftline.comparators.checking import Comparator
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.inputs import Rows
from driftline.members.base import dense
from driftline.trace import Batch, Trace
from driftline.typing import Inputs, Labels

__all__ = ["BanditCertificate", "certify_bandit"]

#: The relative error that rounding may cause in a recorded number.
ROUNDING = 1e-6


@dataclass(frozen=True)
class BanditCertificate:
    """Totals of a run with bandit feedback, and the bound by one of its policies.

    ``expected`` is the sum of expected target losses given the past, ``sampled`` that of the
    predictions made; ``comparator_loss`` and ``path_length`` are F_T and P_T; ``price`` is
    D (D/2 + P_T) over the last step. ``noise`` is what chance has added in this run, 0 on average.
    ``policy`` is the one whose bound is smallest, None if all are biased.
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
        return not self.findings and self.expected <= self.exact + 1e-6 * (1.0 + abs(self.exact))

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
            lines.append("no bound: every policy is biased (clip, or steps after misses)")
        else:
            words = ", vacuous: guessing has a smaller one" if self.vacuous else ""
            lines.append(f"the bound is that of {self.policy!r}{words}")
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
    """Play the rounds again, and compare the total with the bound of every unbiased policy."""
    if comparator is not None:
        check_comparator(comparator)
    trace = Trace.from_saved(*trace.to_saved())  # checked like one from a file
    learner: Bandit = learner_of(trace)
    rows, checked = stream_of(trace, learner.task, given, labels)
    audit = _Audit(learner, trace, comparator)
    size = learner._batch_size(rows)
    for start in range(0, rows.rounds, size):
        stop = min(start + size, rows.rounds)
        audit.play(rows, checked, start, stop)
        if progress is not None:
            progress(stop - start)
    if trace.digest and trace.digest != inputs.fingerprint(rows, checked):
        audit.findings["the stream is not the one of the trace: its fingerprint differs"] = 0
    return audit.certificate(checked)


class _Audit:
    """Sums over the rounds of a run, which is played again."""

    def __init__(self, learner: Bandit, trace: Trace, comparator: Comparator | None):
        self.learner, self.trace = learner, trace
        self.findings: dict[str, int] = {}
        self.first = learner._tickets
        self.expected = self.sampled = 0.0
        self.carriers = [(i, learner.policies[i]) for i in learner.carriers]
        self.against = [_Against(learner, policy, comparator) for _, policy in self.carriers]
        self.slack, self.noise = np.zeros(len(self.carriers)), np.zeros(len(self.carriers))

    def play(self, rows: Rows, labels: Any, start: int, stop: int) -> None:
        """Play some rounds again, note where the trace differs from them, and add them up."""
        learner, before, part = self.learner, self.learner.rounds, labels[start:stop]
        learner._check_features(rows)
        room = learner._room(part)
        for name in ("policy_loss", "policy_square"):
            room = room.beside(name, np.empty((stop - start, len(learner.policies))))
        mapped, first = rows, start
        if learner.mapper is not None:
            mapped, first = learner.mapper.piece(rows, start, stop), 0
        learner.check_mapped(mapped)
        last = first + stop - start
        learner._play_mapped(mapped, first, last, part, self.first + start, room)
        self._compare(room, start, stop)
        (vectors,) = dense(mapped).arrays(first, last)
        label = np.asarray(part)[:, 0]
        self.expected += float(room["risk"].sum())
        self.sampled += float(room["target_loss"].sum())
        numbers = before + np.arange(stop - start)
        hits = np.where(room["target_loss"] == 0.0, 1.0 / room["chance"], 0.0)
        for place, (i, policy) in enumerate(self.carriers):
            theirs = self.against[place].losses(vectors, label, start, stop)
            half = 0.5 * policy.at(numbers) * room["policy_square"][:, i]
            noise = (1.0 - hits) * (room["policy_loss"][:, i] - theirs - half)
            self.noise[place] += noise.sum()
            self.slack[place] += room["slack"][:, place].sum()

    def _compare(self, room: Batch, start: int, stop: int) -> None:
        """Count where the trace differs from the rounds."""
        for name in ("loss", "risk", "target_loss", "chance", "slack", "prediction"):
            made = room.columns.get(name)
            if made is None:
                continue
            whole = getattr(self.trace, name)
            own = made[:0] if whole is None else whole[start:stop]
            own = as_rows(own) if name == "prediction" else own
            if own.shape != made.shape:
                raise InputError(f"the trace has no column {name!r} of the learner's rounds")
            off = np.abs(own - made) > ROUNDING * (1.0 + np.abs(made))
            words = f"recorded numbers ({name}) are not those of the rounds"
            if off.any():
                self.findings[words] = self.findings.get(words, 0) + int(off.sum())

    def certificate(self, labels: Any) -> BanditCertificate:
        """Return the certificate, by the policy with the smallest bound."""
        guess, rounds = self.learner.task.mean_guess(labels, None), len(self.trace)
        assert guess is not None  # None only without labels
        words = tuple(f"{count} {text}" if count else text for text, count in self.findings.items())
        made = BanditCertificate(
            rounds, self.expected, self.sampled, guess * rounds, findings=words
        )
        last = np.array([self.learner.rounds - 1])
        options = []
        for place, (_, policy) in enumerate(self.carriers):
            against, diameter = self.against[place], policy.diameter
            path = 0.5 * diameter + against.path_length
            own = replace(
                made,
                policy=policy,
                comparator_loss=against.total,
                path_length=against.path_length,
                price=diameter * path / float(policy.at(last)[0]),
                slack=float(self.slack[place]),
                noise=float(self.noise[place]),
            )
            options.append(own)
        return min(options, key=lambda option: option.bound, default=made)


class _Against:
    """The losses of a comparator on mapped rows, inside the ball of a policy."""

    def __init__(self, learner: Bandit, policy: Policy, comparator: Comparator | None):
        self.classes, self.domain = len(learner.task.all_labels), Ball(policy.diameter)
        self.comparator, self.last = comparator, np.zeros((0, 0))
        self.total = self.path_length = 0.0

    def losses(self, vectors: np.ndarray, labels: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return the comparator's losses of some rounds, and add up how far it moves."""
        shape = self.classes, vectors.shape[1]
        own = Fixed(np.zeros(shape)) if self.comparator is None else self.comparator
        losses, begin = np.empty(stop - start), start
        for weights, end in Inside(own, self.domain).pieces(start, stop):
            if weights.shape != shape:
                raise InputError(
                    f"a comparator for these {shape[1]} features, as the learner's map makes "
                    f"them, has weights of shape {shape}, not {weights.shape}"
                )
            here = slice(begin - start, end - start)
            theta = vectors[here] @ weights.T
            theta -= theta.max(axis=1, keepdims=True)
            true = np.take_along_axis(theta, labels[here, np.newaxis], axis=1)[:, 0]
            losses[here] = (np.log(np.exp(theta).sum(axis=1)) - true) / math.log(2.0)
            if self.last.size:
                self.path_length += float(np.linalg.norm(weights - self.last))
            self.last, begin = weights, end
        self.total += float(losses.sum())
        return losses
