r"""Sums over the replayed rounds of a learner, and its certificate.

Where labels come late, a step is made at the weights :math:`W_\tau` of the arrival. So the
inequality of every bound holds in the order of arrival, with one change: the residual of a round is

.. math:: r_t = \frac{\eta_t}2 \|G_t\|^2 - (L_t(W_\tau) - \mathbb E \ell_t),

where loss and gradient belong to the arrival, and :math:`\mathbb E \ell_t` is what the prediction
cost. Exact, diameter and weighted bounds extend. The price of delay is a number that can be read:
the sum of :math:`\mathbb E \ell_t` minus what a prediction at the weights of the arrival would have
cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from driftline.certificates.certificate import Certificate, Delayed
from driftline.certificates.differences import Differences
from driftline.certificates.inside import Inside
from driftline.certificates.order import Order
from driftline.certificates.premises import premises_of, told_late
from driftline.certificates.replay import Piece, Stream
from driftline.comparators import Fixed, check_comparator
from driftline.comparators.checking import Comparator
from driftline.errors import InputError
from driftline.regret import Tally, Watched
from driftline.trace import Batch, Trace

__all__ = ["Account", "Asked"]


class Asked:
    """Columns of rounds from when these were asked for, until their labels come."""

    def __init__(self, order: Order):
        self._order, self._columns = order, dict[str, np.ndarray]()

    def told(self, piece: Piece, name: str, column: np.ndarray) -> np.ndarray:
        """Return what a column had of the rounds that are told in a piece."""
        if self._order.asked is None:
            return column
        shape = len(self._order.came), *column.shape[1:]
        whole = self._columns.setdefault(name, np.full(shape, np.nan))
        whole[piece.rounds[piece.asks]] = column[piece.asks]
        return whole[piece.rounds[piece.tells]]


class Account:
    """The account of a single learner, or of a ``member`` of a committee.

    The comparator of a member is projected on its domain, and None stands for weights of 0.
    """

    def __init__(
        self,
        learner: Any,
        trace: Trace,
        comparator: Comparator | None,
        stream: Stream,
        chance: float,
        keep: bool,
        member: str = "",
    ):
        self.learner, self.trace, self.stream = learner, trace, stream
        self.chance, self.keep = chance, keep
        self.differences = Differences(learner, trace, stream.labels)
        self.inside: Inside | None = None
        if learner._fixed.steps:
            own: Any = comparator
            if member and own is None:
                own = Fixed(np.zeros(learner.weights.shape))
            check_comparator(own)
            if member:
                own = self.inside = Inside(own, learner.domain)
            learner.follow(trace, stream.order, own, member)
        elif comparator is not None and not member:
            raise InputError("the learner has no weights, and nothing to compare: give None")
        self.tally, self.parts = Tally(learner.task.largest_loss), list[Watched]()
        self.asked, self.cost = Asked(stream.order), 0.0

    @property
    def shrunk(self) -> bool:
        """Whether the comparator was too large for the learner."""
        return self.inside is not None and self.inside.shrunk

    def add(self, piece: Piece, member: Batch | None = None) -> Watched:
        """Add some events; return the rounds whose labels came in them.

        ``member`` is the part of a member.
        """
        batch, tells = piece.batch if member is None else member, piece.tells
        target = self.differences.compare(piece, batch)
        steps = self.learner._fixed.steps
        seen = self.learner.seen if steps else Watched.alone(batch.columns, tells)
        risk = self.asked.told(piece, "risk", batch["risk"])
        self.cost += float((risk - batch["risk"][tells]).sum())
        seen = replace(seen, risk=risk, target_loss=self.asked.told(piece, "target", target))
        self.tally.add(seen)
        if self.keep and len(seen):
            self.parts.append(seen)
        return seen

    @property
    def findings(self) -> tuple[str, ...]:
        """What differs from the trace."""
        return (*self.differences.words, *self.stream.differs(self.trace.digest))

    @property
    def delayed(self) -> Delayed | None:
        """What late labels have cost; None where all came at once."""
        order = self.stream.order
        return Delayed(self.cost, len(order.came) - len(order.order)) if order.late else None

    def certificate(self) -> Certificate:
        """Return the certificate, once all events were added."""
        learner, trace, order = self.learner, self.trace, self.stream.order
        weights = self.stream.sample_weight
        weights = None if weights is None else weights[order.order]
        guess = learner.task.guess.mean(self.stream.told, weights)
        assert guess is not None  # None only without labels
        made = replace(premises_of(learner, trace.first_weights), guess_loss=guess)
        if order.waits and not made.no_theorem:
            made = told_late(made, learner, trace, order.order)
        return Certificate(
            0,
            len(order.order),
            self.tally,
            made,
            self.findings,
            self.chance,
            Watched.join(self.parts) if self.keep else None,
            delayed=self.delayed,
        )
