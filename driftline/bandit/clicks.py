"""A learner that sees clicks: judgements of what was shown, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from driftline.bandit.base import AT_ONCE, TOLD, Mixed, Schedule, are_chances
from driftline.bandit.clicks_kernel import clicks
from driftline.bandit.learner import FLOOR, RATE, SHARE
from driftline.bandit.policy import Policy
from driftline.engines import Asked
from driftline.errors import InputError
from driftline.features import Map, Standardise
from driftline.inputs import Rows, refuse
from driftline.kernels import Kernel, round_table
from driftline.learner import Ticket
from driftline.members.base import dense
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label, Prediction

__all__ = ["Clicks"]

NO_TABLE, NO_STARTS = np.zeros((0, 0)), np.zeros(0, np.int64)


def _quick(step: float, decaying: bool = False) -> Policy:
    return Policy(step, decaying, 0.02, clip=3.0, diameter=100.0)


#: What is mixed by default: policies that explore little, and some that a theorem holds for.
POLICIES = (
    _quick(0.3),
    _quick(1.0),
    _quick(3.0, decaying=True),
    _quick(10.0, decaying=True),
    Policy(0.03),
    Policy(0.3),
    Policy(1.0, decaying=True),
)


class Called(NamedTuple):
    """How many rounds were played, the places of shown items, and their chances.

    ``own`` are the chances by each policy, of the last round.
    """

    played: int
    shown: np.ndarray
    chances: np.ndarray
    own: np.ndarray


class Clicks(Mixed):
    r"""Tags, sets and ranked lists, from judgements of the items that were shown.

    - Tags (:class:`~driftline.tasks.Multilabel`): each tag is shown or not, and a shown one is said
      to be right or wrong. The target loss is that of the task. For every policy without a clip,
      in expectation,

      .. math:: \mathbb E \sum_t \ell_t \le F_T + \frac{D}{d\, \eta_T} \Bigl(\frac D2 + P_T\Bigr)
          + \mathbb E \sum_t s_t

      for d tags, with F_T in the mean logistic loss of all tags, D times the root of d in place of
      the policy's diameter, and the slack s in the trace.
    - Sets of k (:class:`~driftline.tasks.PrecisionAtK`) and lists of which the first ``cutoff``
      places are seen (:class:`~driftline.tasks.NDCG`): shown items have their relevance said. How
      many others were relevant is not seen, and the target loss that is recorded does not need it:
      one minus the gain of what was shown, over the largest that there could be. No bound is stated.

    Labels have an entry for every item; those of items that were not shown are not read, and may be
    anything, such as 0 for "no click".

    Parameters
    ----------
    task
        What is shown.
    policies
        What is mixed; ``misses`` have no meaning here. Default: seven of different steps.
    features
        A map of inputs. Default: every feature is standardised. Documents of queries have this
        default, or None.
    seed
        The seed of the random numbers that items are shown by.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.Planted(dl.tasks.Multilabel(4), rounds=4000, flips=1, seed=0)
    >>> trace = Clicks(stream.task).run(stream)
    >>> bool(trace.target_loss.mean() < 0.15)
    True
    """  # noqa: E501

    kernel: ClassVar[Kernel] = clicks
    feedback: ClassVar[str] = "clicks"

    def __init__(
        self,
        task: Task,
        policies: Sequence[Policy] = POLICIES,
        *,
        features: Map | None = Standardise(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        if not isinstance(task, Task) or not self._suits(task):
            raise InputError(
                "clicks are for tags, sets and lists, such as dl.tasks.Multilabel(5), "
                f"dl.tasks.PrecisionAtK(3) or dl.tasks.NDCG(1, cutoff=5), not for {task!r:.80}"
            )
        self._most = 0 if task.geometry.tags else _shown(task)
        self._several = task.layout.ragged
        if self._several and features is not None and not isinstance(features, Standardise):
            raise InputError("documents are standardised, or left as they are: give no other map")
        super().__init__(task, policies, None if self._several else features, seed)
        if self._several and features is not None:
            self.map, self.mapper = features, features.mapper()
        self._side = math.sqrt(self._tables)
        self._top = float(getattr(task, "highest", 1))
        #: The policies that the theorem holds for.
        self.carriers = [i for i, policy in enumerate(policies) if policy.clip is None]
        if task.geometry.tags:
            self.parts = self._tables
        else:
            self.carriers = []

    def _suits(self, task: Task) -> bool:
        graded = task.labels.graded and not getattr(task, "exponential", False)
        return bool(task.geometry.tags or graded)

    # -- the memory

    def constants(self, width: int) -> list[float]:
        """Return sizes, what weights of policies follow, and what the kernel needs of policies."""
        own = [[*policy.constants[:5], 0.5 * self.diameter(policy)] for policy in self.policies]
        sizes = [len(self.policies), self._tables, self._most, self._top]
        return [*sizes, RATE, SHARE, FLOOR, *(number for row in own for number in row)]

    def space(self, width: int) -> int:
        """Return room for a round of as many items as there are scores; see :meth:`_room_for`."""
        return self._room_for(self._tables).size

    def _room_for(self, items: int) -> np.ndarray:
        return np.empty((2 * len(self.policies) + 6) * items)

    # -- facts

    @property
    def no_theorem(self) -> str:
        """Why nothing is known beforehand."""
        return "what exploring costs is known when items are shown, not before"

    @property
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""
        if self._most:
            return "none is stated for sets and lists"
        return "" if self.carriers else "every policy is biased (clip)"

    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the logistic losses of scores, of every tag."""
        made: np.ndarray = np.logaddexp2(0.0, np.where(labels, -theta, theta) / np.log(2.0))
        return made

    def guess_loss(self, labels: CheckedLabels) -> float:
        """Return the mean target loss of a guess; of sets and lists, of any items in any order."""
        if not self._most:
            return super().guess_loss(labels)
        return float(np.mean([1.0 - np.mean(label) / self._top for label in labels]))

    def describe(self) -> str:
        """Say what is learned from, and which bound there is."""
        bound = self.no_bound
        if self.carriers:
            bound = (
                f"of the expected loss, by each of {len(self.carriers)} policies without a clip: "
                "F_T + D (D/2 + P_T) / (tags x step) + the slack in the trace"
            )
        lines = [
            f"clicks: {len(self.policies)} policies with one draw, {self.task!r}",
            "learns from  judgements of the items that were shown; others stay unknown",
            f"bound        {bound}",
        ]
        return "\n".join([*lines, *self._words_of_policies()])

    # -- scores

    def _class_scores(self, rows: Rows) -> np.ndarray:
        if self._several:
            raise InputError("queries have as many scores as documents: ask for one at a time")
        (inputs,) = dense(rows).arrays(0, rows.rounds)
        if not np.isfinite(inputs).all():
            refuse(rows, int(np.argmax(~np.isfinite(inputs).all(axis=1))))
        if self._width is None:
            return np.zeros((rows.rounds, self._tables))
        learned = self.views
        theta = np.einsum("ikj,tj->itk", learned.weights, inputs)
        made: np.ndarray = np.tensordot(learned.shares, theta, axes=1)
        return made

    # -- rounds

    def _room(self, labels: CheckedLabels) -> Batch:
        count, (table, columns) = len(labels), round_table(len(labels))
        width = self.task.predictions.width(labels)
        columns["prediction"] = self.task.predictions.rows(count, width)
        if self.carriers:
            columns["slack"] = np.empty((count, len(self.carriers)))
        return Batch(columns, table=table)

    def _mapped(self, rows: Any, start: int = 0, stop: int | None = None) -> Any:
        if not self._several or self.mapper is None:
            return super()._mapped(rows, start, stop)
        mapper: Any = self.mapper
        mapped = mapper.look_at(rows)
        self.check_mapped(mapped)
        return mapped

    def _piece(self, rows: Rows, start: int, stop: int) -> tuple[Rows, int, int]:
        if not self._several or self.mapper is None:
            return super()._piece(rows, start, stop)
        mapper: Any = self.mapper
        mapped = mapper.piece(rows, start, stop)
        mapped.before = start
        self.check_mapped(mapped)
        return mapped, 0, stop - start

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        assert room.table is not None
        self._begin(rows)
        events = self._schedule(room, labels, number)
        own = [room.columns.get(name, NO_TABLE) for name in ("slack", "noise", "inverse")]
        made = self._call(rows, start, stop, _flat(labels), events, (room.table, *own))
        if made.played < stop - start:
            refuse(rows, start + made.played)
        sizes = [len(label) for label in labels]
        ends = np.cumsum(sizes)
        for t, end in enumerate(ends.tolist()):
            prediction = self._prediction_of(made.shown[end - sizes[t] : end])
            room["prediction"][t, : len(prediction)] = prediction

    def _call(
        self,
        rows: Rows,
        start: int,
        stop: int,
        labels: np.ndarray,
        events: Schedule,
        written: tuple[np.ndarray, ...],
        memory: np.ndarray | None = None,
    ) -> Called:
        """Call the kernel, which learns if there are labels."""
        if self._several:
            inputs, starts = rows.arrays(start, stop)
            items, largest = int(starts[-1]), int(np.diff(starts).max())
        else:
            (inputs,), starts = dense(rows).arrays(start, stop), NO_STARTS
            items, largest = (stop - start) * self._tables, self._tables
        task: Any = self.task
        discounts = task.discounts(largest) if self._most else np.zeros(1)
        shown, chances = np.zeros(items, np.int64), np.empty(items)
        memory = self.memory if memory is None else memory
        constants = np.array(self.constants(inputs.shape[1]))
        given = (inputs, starts, labels, events.uniforms, *events[:3], constants)
        room, count, learning = self._room_for(largest), len(self.policies), len(labels) > 0
        rest = (np.array(discounts), memory, room, learning, *written, shown, chances)
        played = self.kernel.compiled(*given, *rest)
        own = room[count * largest : 2 * count * largest].reshape(count, largest)
        return Called(int(played), shown, chances, own)

    def _prediction_of(self, shown: np.ndarray) -> np.ndarray:
        """Return a prediction as the task has it, from the places of shown items."""
        if not self._most:
            return shown
        places = np.where(shown > 0, len(shown) + 1 - shown, 0)
        return np.asarray(self.task.best_prediction(places))

    def _learn_one(self, row: Rows, label: Label, number: int) -> tuple[np.ndarray, np.ndarray]:
        table, slack = np.empty((5, 1)), np.empty((1, len(self.carriers)))
        events = Schedule(*AT_ONCE, self._draws.uniform(number), 1)
        made = self._one(row, label, events, (table, slack, NO_TABLE, NO_TABLE))
        return self._prediction_of(made.shown), table[:, 0]

    def _one(
        self, row: Rows, label: Label, events: Schedule, written: tuple[np.ndarray, ...]
    ) -> Called:
        """Play one round."""

        def play(mapped: Rows) -> Called:
            self._check_size(mapped, label)
            self._first(mapped)
            made = self._call(mapped, 0, 1, _flat([label]), events, written)
            if not made.played:
                refuse(mapped, 0)
            return made

        return self._round(row, None, play)

    def _learn_one_mapped(self, row: Rows, label: Label, number: int) -> NoReturn:
        raise NotImplementedError  # no committee asks for it

    def _first(self, mapped: Rows) -> None:
        """Allocate memory for the first row, if it is finite."""
        if self._width is None:
            if mapped.first_bad_row() is not None:
                refuse(mapped, 0)
            self._begin(mapped)

    def _check_size(self, row: Rows, label: Label) -> None:
        if self._several:
            row.check_labels([label])

    def _look_one(self, row: Rows, number: int) -> Asked:
        mapped = self._mapped(row)
        memory = self.memory if self._width is not None else self.started(mapped.features)
        events = Schedule(*AT_ONCE, self._draws.uniform(number), 0)
        made = self._call(mapped, 0, 1, NO_STARTS, events, (NO_TABLE,) * 4, memory)
        if not made.played:
            refuse(mapped, 0)
        prediction: Prediction = self._prediction_of(made.shown)
        means = np.vstack([made.chances, made.shown.astype(np.float64), made.own])
        return self._asked(prediction, made.chances, mapped, means)

    # -- tickets

    def _learn_ticket(self, row: Rows, label: Label, ticket: Ticket, paid: object) -> None:
        """Learn from what was shown, by the probabilities with which it was."""
        means = ticket.checked_means(2 + len(self.policies))
        self._check_size(row, label)
        if means.shape[1] != len(label):
            raise InputError(f"the ticket is for {means.shape[1]} items, not {len(label)}")
        kept = np.vstack([means[1], means[0], means[2:]]).T.ravel()
        self._check_kept(kept, label)
        events = Schedule(*TOLD, kept[np.newaxis], np.zeros((1, 1)), 1)
        self._one(row, label, events, (np.zeros((5, 0)), NO_TABLE, NO_TABLE, NO_TABLE))

    # -- labels that come late

    def _kept_size(self, labels: CheckedLabels) -> int:
        """Return room for the place of every item, and its chances by all and by each policy."""
        return (2 + len(self.policies)) * max(len(label) for label in labels)

    def _check_kept(self, kept: np.ndarray, label: Label) -> None:
        shown, *chances = kept.reshape(len(label), -1).T
        places = shown.astype(np.int64)
        good = (places == shown).all() and ((places >= 0) & (places <= len(label))).all()
        if not good or not are_chances(np.array(chances)):
            raise InputError("it is not said which items were shown, by which probability")


def _flat(labels: CheckedLabels) -> np.ndarray:
    """Return labels one after the other."""
    return np.ascontiguousarray(np.concatenate([np.ravel(label) for label in labels]), np.int64)


def _shown(task: Any) -> int:
    """Return how many items of a list are shown."""
    if task.shown is None:
        raise InputError(
            f"all items of {task!r:.80} are shown, so that nothing is hidden: give a cutoff, or "
            "learn from labels"
        )
    return int(task.shown)
