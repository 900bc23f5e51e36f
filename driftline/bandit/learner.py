r"""A learner that sees only whether its prediction was right.

Several policies (:class:`~driftline.bandit.Policy`) have weights of their own and one draw in
common: see :mod:`driftline.bandit.kernel`. For *every* unbiased policy i, whatever its weight in
the draw is, labels and comparators that do not depend on the draws, and steps :math:`\eta` that
never grow,

.. math:: \mathbb E \sum_t \ell_t \le F_T + \frac{D}{\eta_T} \Bigl(\frac D2 + P_T\Bigr)
    + \mathbb E \sum_t s^i_t, \qquad
    s^i_t = \max_y \Bigl[1 - p_t(y) + \frac{c^i_y}{p_t(y)} - L^i_y\Bigr],

with p the probabilities of the draw and c as in :mod:`driftline.decoders.exploring`: on average a
gradient over :math:`p_y` is the gradient, and half a step times its square is :math:`c_y / p_y`.
The slack is known before any feedback, and is in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn

import numpy as np

from driftline.bandit.base import AT_ONCE, TOLD, Mixed, Schedule, are_chances
from driftline.bandit.kernel import bandit
from driftline.bandit.policy import DEFAULT, Policy
from driftline.engines import Asked
from driftline.errors import InputError
from driftline.features import Map, Standardise
from driftline.inputs import Rows, refuse
from driftline.kernels import Kernel
from driftline.learner import Ticket
from driftline.losses import Logistic
from driftline.members.base import dense
from driftline.tasks import Distribution, Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Bandit"]

#: By how much weights of policies follow estimates of their hits; the share of all weights that is
#: spread evenly after a hit; and the least probability that estimates are divided by.
RATE, SHARE, FLOOR = 0.3, 0.0002, 0.02

NO_LABELS, NO_TABLE = np.zeros((0, 1), np.int64), np.zeros((0, 0))


class Bandit(Mixed):
    """Classes from bandit feedback: after a miss the label stays unknown.

    ``run`` and ``step`` take labels, and use of each only whether the prediction was right.
    ``tell(ticket, loss=1.0)`` says that it was wrong. Two classes need no such learner, since a
    miss names the label: any other learner of two classes takes losses, too.

    Parameters
    ----------
    task
        Three classes or more.
    policies
        What is mixed; with one policy nothing is. Default: :data:`driftline.bandit.DEFAULT`.
    features
        A map of inputs. Default: every feature is standardised.
    seed
        The seed of the random numbers that predictions are drawn by.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.DigitTriples(rounds=4000, flips=3, seed=0)
    >>> learner = Bandit(stream.task)
    >>> trace = learner.run(stream)
    >>> bool(trace.target_loss.mean() < 0.15)
    True
    >>> ticket = learner.ask(stream.inputs[0])
    >>> learner.tell(ticket, loss=1.0)
    """

    kernel: ClassVar[Kernel] = bandit
    feedback: ClassVar[str] = "bandit"

    def __init__(
        self,
        task: Task,
        policies: Sequence[Policy] = DEFAULT,
        *,
        features: Map | None = Standardise(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        if not isinstance(task, Task) or task.answers is not task or task.geometry.classes < 3:
            raise InputError(
                "bandit feedback is for three classes or more, such as dl.tasks.Multiclass(3), not "
                f"for {task!r:.80}: with two, a miss names the label, and every learner takes "
                "tell(ticket, loss=...); tags, sets and lists have feedback='clicks'"
            )
        if not task.zero_one:
            raise InputError(f"a bandit sees hits and misses, but {task!r:.80} has other losses")
        super().__init__(task, policies, features, seed)
        self.loss = Logistic(task)
        #: The policies that the theorem holds for.
        self.carriers = [i for i, policy in enumerate(policies) if policy.unbiased]

    # -- the memory

    def constants(self, width: int) -> list[float]:
        """Return sizes, what weights of policies follow, and what the kernel needs of policies."""
        own = [number for policy in self.policies for number in policy.constants]
        return [self._classes, len(self.policies), RATE, SHARE, FLOOR, *own]

    def space(self, width: int) -> int:
        """Return room for five numbers of every policy and class, and two of every class."""
        return (5 * len(self.policies) + 2) * self._classes

    # -- facts

    @property
    def no_theorem(self) -> str:
        """Why nothing is known beforehand."""
        return "what exploring costs is known when predictions are made, not before"

    @property
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""
        return "" if self.carriers else "every policy is biased (clip, or steps after misses)"

    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the logistic losses of scores, in one column."""
        shifted = theta - theta.max(axis=1, keepdims=True)
        true = np.take_along_axis(shifted, np.asarray(labels), axis=1)
        made: np.ndarray = np.log2(np.exp(shifted).sum(axis=1, keepdims=True)) - true / np.log(2.0)
        return made

    def describe(self) -> str:
        """Say what is learned from, and which bound there is."""
        count = len(self.carriers)
        lines = [
            f"bandit feedback: {len(self.policies)} policies with one draw, {self.task!r}",
            "learns from  whether the prediction was right; after a miss the label stays unknown",
        ]
        if count:
            lines += [
                f"bound        of the expected loss, by each of {count} unbiased policies: F_T + "
                "D (D/2 + P_T) / step + the slack in the trace",
                "             for labels and comparators that do not depend on the draws",
            ]
        else:
            lines.append(f"bound        none: {self.no_bound}")
        lines += self._words_of_policies()
        if self.map is not None:
            lines.append(f"features {self.map!r}: bounds hold for mapped inputs")
        return "\n".join(lines)

    # -- scores

    def _class_scores(self, rows: Rows) -> np.ndarray:
        """Return logarithms of probabilities: means of the policies' own, without exploring."""
        (inputs,) = dense(rows).arrays(0, rows.rounds)
        if not np.isfinite(inputs).all():
            refuse(rows, int(np.argmax(~np.isfinite(inputs).all(axis=1))))
        if self._width is None:
            return np.full((rows.rounds, self._classes), -np.log(self._classes))
        learned = self.views
        theta = np.einsum("ikj,tj->itk", learned.weights, inputs)
        theta -= theta.max(axis=2, keepdims=True)
        chances = np.exp(theta)
        chances /= chances.sum(axis=2, keepdims=True)
        made: np.ndarray = np.log(np.maximum(np.tensordot(learned.shares, chances, axes=1), 1e-300))
        return made

    def draw(self, theta: np.ndarray, uniforms: np.ndarray) -> Prediction:
        """Refuse: what is drawn depends on the input, not on scores alone."""
        self._refuse_scores()

    def mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Refuse: what is drawn depends on the input, not on scores alone."""
        self._refuse_scores()

    def drawn_from(self, theta: np.ndarray) -> Distribution:
        """Refuse: what is drawn depends on the input, not on scores alone."""
        self._refuse_scores()

    def _refuse_scores(self) -> NoReturn:
        raise InputError("what a bandit draws depends on the input: ask(x).mean has its chances")

    # -- rounds

    def _room(self, labels: CheckedLabels) -> Batch:
        own = super()._room(labels)
        columns = {"chance": np.empty(len(labels))}
        if self.carriers:
            columns["slack"] = np.empty((len(labels), len(self.carriers)))
        return Batch(own.columns | columns, table=own.table)

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        (inputs,) = dense(rows).arrays(start, stop)
        self._begin(rows)
        events = self._schedule(room, labels, number)
        own = [room.columns.get(name, NO_TABLE) for name in ("slack", "noise", "inverse")]
        written = (room.table, room["chance"], *own, room["prediction"])
        played = self._advance_drawn(inputs, np.asarray(labels), events, written)
        if played < stop - start:
            refuse(rows, start + played)

    def _advance_drawn(
        self,
        inputs: np.ndarray,
        labels: np.ndarray,
        events: Schedule,
        written: tuple[np.ndarray, ...],
    ) -> int:
        """Play rounds up to the first row that is refused; return how many were played."""
        given = (inputs, labels, events.uniforms, *events[:3])
        constants, space = self._ready()
        state = (constants, self.memory, space, True)
        return int(self.kernel.compiled(*given, *state, *written))

    def _learn_one(self, row: Rows, label: Label, number: int) -> tuple[np.ndarray, np.ndarray]:
        return self._round(row, None, lambda row: self._learn_one_mapped(row, label, number))

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs, slack = self._one(row), np.empty((1, len(self.carriers)))
        events = Schedule(*AT_ONCE, self._draws.uniform(number), 1)
        written = (self._column, np.empty(1), slack, NO_TABLE, NO_TABLE, self._prediction)
        if not self._advance_drawn(inputs, label[np.newaxis], events, written):
            refuse(row, 0)
        return self._prediction[0], self._column[:, 0]

    def _one(self, row: Rows) -> np.ndarray:
        """Return the input of one round, with memory allocated for it."""
        (inputs,) = dense(row).arrays(0, 1)
        if self._width is None and not np.isfinite(inputs).all():
            refuse(row, 0)  # before memory is allocated for it
        self._begin(row)
        return inputs

    def _look_one(self, row: Rows, number: int) -> Asked:
        mapped = self._mapped(row)
        (inputs,) = dense(mapped).arrays(0, 1)
        memory, width, (constants, _) = self.memory, self._width, self._ready()
        if width is None:
            width = mapped.features
            memory, constants = self.started(width), np.array(self.constants(width))
        room, prediction = np.empty(self.space(width)), np.empty((1, 1), np.int64)
        uniform, nothing = self._draws.uniform(number), np.zeros(0)
        given = (inputs, NO_LABELS, uniform, *AT_ONCE, constants, memory, room, False, NO_TABLE)
        if not self.kernel.compiled(*given, nothing, NO_TABLE, NO_TABLE, NO_TABLE, prediction):
            refuse(mapped, 0)
        start, size = 4 * len(self.policies) * self._classes, len(self.policies) * self._classes
        chances = room[start : start + size].reshape(-1, self._classes)
        mixed = room[start + size : start + size + self._classes]
        return self._asked(int(prediction[0, 0]), 1.0 - mixed, mapped, np.vstack([mixed, chances]))

    # -- tickets

    def _feedback(self, ticket: Ticket, label: Label, loss: float | None) -> np.ndarray:
        """Return the label after a hit, and -1 after a miss."""
        predicted = self.task.labels.check(ticket.prediction)
        hit = loss == 0.0
        if loss is None:
            hit = bool((self.task.labels.check(label) == predicted).all())
        elif loss not in (0.0, 1.0):
            raise InputError(f"the loss is 0 for a hit and 1 for a miss, but is {loss!r:.80}")
        return predicted if hit else np.array([-1])

    def _learn_ticket(self, row: Rows, label: Label, ticket: Ticket, paid: object) -> None:
        """Learn from a prediction with the probabilities that it was drawn by."""
        means = ticket.checked_means(1 + len(self.policies))
        predicted = int(self.task.labels.check(ticket.prediction)[0])
        if not predicted < means.shape[1] <= self._classes:
            raise InputError(f"the ticket has no probability of its prediction, {predicted}")
        kept = np.zeros(self._kept_size([label]))
        own = np.r_[predicted, means[1:, predicted], means[0]]
        kept[: len(own)] = own  # the ticket may be from before there were new classes
        self._check_kept(kept, label)
        events = Schedule(*TOLD, kept[np.newaxis], np.zeros((1, 1)), 1)
        written = (np.zeros((5, 0)), np.zeros(0), NO_TABLE, NO_TABLE, NO_TABLE, self._prediction)

        def play(mapped: Rows) -> None:
            if not self._advance_drawn(self._one(mapped), label[np.newaxis], events, written):
                refuse(mapped, 0)

        self._round(row, None, play)

    # -- labels that come late

    def _kept_size(self, labels: CheckedLabels) -> int:
        """Return room for a prediction, its chance by each policy, and those of all classes."""
        return 1 + len(self.policies) + self._classes

    def _check_kept(self, kept: np.ndarray, label: Label) -> None:
        predicted, chances = kept[0], kept[1:]
        good = predicted in range(self._classes) and are_chances(chances)
        if not good or not chances[len(self.policies) + int(predicted)] > 0.0:
            raise InputError("there are no probabilities with which the prediction was drawn")
