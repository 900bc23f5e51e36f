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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftline.bandit import Policy
from driftline.certificates.accounts import Account
from driftline.certificates.certificate import Delayed
from driftline.certificates.inside import Inside
from driftline.certificates.replay import Piece, Stream
from driftline.comparators import Fixed, check_comparator
from driftline.comparators.checking import Comparator
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.inputs.taking import take_labels
from driftline.members.remembering import dense
from driftline.regret import Watched
from driftline.trace import Batch, Trace
from driftline.typing import CheckedLabels

__all__ = ["BanditAccount", "BanditCertificate"]

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


class BanditAccount(Account):
    """The account of a learner that does not see labels, with sums for every policy."""

    def __init__(
        self,
        learner: Any,
        trace: Trace,
        comparator: Comparator | None,
        stream: Stream,
        chance: float,
        keep: bool,
    ):
        super().__init__(learner, trace, None, stream, chance, keep=False)
        if comparator is not None:
            check_comparator(comparator)
            comparator = stream.order.told(comparator)
        self.carriers = [learner.policies[i] for i in learner.feedback.carriers]
        self.against = [_Against(learner, policy, comparator) for policy in self.carriers]
        self.slack, self.noise = np.zeros(len(self.carriers)), np.zeros(len(self.carriers))
        #: Maps rows once more, for comparators.
        self.mapper = None if learner.mapper is None else learner.mapper.copy()

    def add(self, piece: Piece, member: Batch | None = None) -> Watched:
        """Add some events; return the rounds whose labels came in them."""
        before, seen, tells = self.tally.rounds, super().add(piece), piece.tells
        rows, start, count = piece.rows, piece.start, len(piece.rounds)
        if self.carriers and self.mapper is not None:
            rows, start = self.mapper.piece(rows, start, start + count), 0
        if not self.carriers or not len(tells):
            return seen
        (vectors,) = dense(rows).arrays(start, start + count)
        self.slack += piece.batch["slack"][tells].sum(axis=0)
        self.noise += piece.batch["noise"][tells].sum(axis=0)
        known, missed = take_labels(piece.labels, tells), 1.0 - piece.batch["inverse"][tells]
        for place, against in enumerate(self.against):
            theirs = against.losses(vectors[tells], known, before, self.tally.rounds)
            self.noise[place] -= (missed * theirs).mean(axis=1).sum()
        return seen

    def certificate(self) -> Any:
        """Return the certificate, by the policy with the smallest bound."""
        learner, tally = self.learner, self.tally
        made = BanditCertificate(
            tally.rounds,
            tally.risk,
            tally.sampled,
            learner.feedback.guess_loss(self.stream.told) * tally.rounds,
            findings=self.findings,
            no_bound=learner.feedback.no_bound,
            delayed=self.delayed,
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
