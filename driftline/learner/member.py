"""What a committee asks of a learner in it, on one page.

A committee is made of learners of any kind: :class:`~driftline.OGD`, which makes gradient steps and
has theorems, and others, which may have neither. All it knows of them stands here, and so does what
audits, reports and estimators ask of a learner beside :class:`~driftline.Learner`. A member of
one's own derives from this class.

What a member has learned is a :class:`~driftline.State`: weights, or a memory of another kind, as
arrays. A member may have a feature map of its own; members of a committee with equal maps share
one, so that a committee passes rows that are mapped already: ``_play_mapped``,
``_learn_one_mapped``, ``_look_mapped`` and ``_score_mapped`` take these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from driftline.engines import Asked
from driftline.errors import InputError
from driftline.features import Block, Chain, Map, Mapper, Standardise, Standardiser
from driftline.features.base import Mapped
from driftline.inputs import DenseRows, Rows
from driftline.kernels import trace_rows
from driftline.learner.facts import Facts
from driftline.learner.shell import Shell
from driftline.state import Checkpoint, State
from driftline.state.arena import grown_places
from driftline.tasks import Distribution, Task, with_classes
from driftline.trace import Batch, Trace
from driftline.typing import CheckedLabels, Input, Inputs, Label, Prediction

__all__ = ["Growth", "Member", "Played", "Round", "check_longer", "round_rows"]

#: Rows of some kind.
Met = TypeVar("Met", bound=Rows)

#: A task of some kind.
TaskKind = TypeVar("TaskKind", bound=Task)

#: What playing a round returns.
Played = TypeVar("Played")

#: How many numbers of mapped rows are kept at a time.
MOST_NUMBERS = 1 << 18


class Round(NamedTuple):
    """What happened in one round."""

    prediction: Prediction
    loss: float
    risk: float
    target_loss: float
    eta: float
    grad_sq: float


class Growth(NamedTuple):
    """How many classes there are now, and where mapped features were before.

    ``places`` has the former index of each, -1 if it is new, None if all stay; ``zero`` is a mapped
    row of zeros, the value of new features in all rows so far.
    """

    classes: int | None
    places: np.ndarray | None
    zero: np.ndarray


def round_rows(task: Task) -> int:
    """Return the length of a column with the record of one round.

    Of classes and signs it ends with the scores, since committees may average probabilities.
    """
    return trace_rows(task.dim if task.geometry.classes > 0 else 0)


def check_longer(task: Task, known: int | None, features: int) -> None:
    """Refuse rows that cannot become longer, or would become shorter."""
    if isinstance(features, bool) or not isinstance(features, (int, np.integer)) or features < 1:
        raise InputError(f"features must be a whole number of 1 or more, not {features!r}")
    if task.layout.ragged:
        raise InputError(f"only plain rows can become longer, not those of {task!r}")
    if known is not None and features < known:
        raise InputError(f"there are {known} features already, so not only {features}")


class Member(Shell):
    """A learner that may sit in a committee."""

    _learned: ClassVar[tuple[str, ...]] = (*Shell._learned, "mapper")

    #: How many features mapped rows have, None before the first.
    _width: int | None

    def __init__(self, task: Task, seed: int | None, features: Map | None = None):
        if features is not None and not isinstance(features, Map):
            raise InputError(
                f"features must be a map such as dl.features.Hats(12), not {features!r:.80}"
            )
        if features is not None and task.layout.ragged and not features.several:
            raise InputError(
                f"{features!r} maps plain rows only, not those of {task!r}: maps of rounds of "
                "several rows are Standardise and InverseCounts"
            )
        if isinstance(features, Standardise) and not task.layout.scalable:
            raise InputError(f"rows of {task.layout!r} cannot be standardised")
        super().__init__(task, seed)
        #: The map of inputs, and what it has learned; None where there is none.
        self.map = features
        self.mapper: Mapper | None = None if features is None else features.mapper()

    def _read(self, block: Block) -> None:
        """Let this member, which has not played, see a block of columns before its own map."""
        if self.rounds:
            raise InputError(f"{self!r} has played: which columns it reads is said before")
        self.map = block.before(self.map)
        self.mapper = self.map.mapper()

    # -- facts

    @property
    def facts(self) -> Facts:
        """Facts of the learner as it is now: see :class:`~driftline.learner.Facts`."""
        return replace(self._fixed, in_short=repr(self))

    def _top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of highest score, a row of integers for each row of scores."""
        return self.task.many.top(scores)

    def _state_bytes(
        self, features: int, *, classes: int | None = None, sparse: bool = False
    ) -> int:
        """Return about how many bytes the arrays of the state have, before they are allocated.

        For rows of this length, and for more classes than there are now if ``classes`` says so.
        """
        task = self.task if classes is None else with_classes(self.task, classes)
        return self._bytes(features, task, sparse)

    def _bytes(self, features: int, task: Task, sparse: bool) -> int:
        """Return about how many bytes the state has with a task of as many classes as this."""
        if self.map is None:
            return self._own_bytes(features, task)
        own = self._own_bytes(self.map.width(features), task)
        return own + self.map.state_bytes(features, sparse)

    def _own_bytes(self, width: int, task: Task) -> int:
        """Return how many bytes weights or a memory have, for mapped rows; 0 if unknown."""
        return 0

    @property
    def features(self) -> int | None:
        """How many features inputs have, None before the first."""
        return self._width if self.mapper is None else self.mapper.features

    @property
    def _standardiser(self) -> Standardiser | None:
        """What standardises the columns that are read, None if the map is another."""
        made = self.mapper
        if self._block is not None and made is not None and len(made.mappers) == 2:
            made = made.mappers[1]
        return made if isinstance(made, Standardiser) else None

    @property
    def _block(self) -> Block | None:
        """The columns that are read, None for all."""
        inner = None if self.map is None else self.map.inner
        first = inner.maps[0] if isinstance(inner, Chain) else inner
        return first if isinstance(first, Block) else None

    @property
    def _kept_rows(self) -> np.ndarray | None:
        """The last rows that are kept as they came, at most 64; None where none are.

        Columns that are not read are 0.
        """
        made = None if self._standardiser is None else self._standardiser.kept
        if made is None or self._block is None or self.features is None:
            return made
        return self._block.undone(made, self.features)

    @property
    def _far(self) -> np.ndarray | None:
        """How many cells of each column were far outside, at more than 20 deviations.

        None where that is not known; 0 for categories.
        """
        found = None if self._standardiser is None else self._standardiser.far
        if found is None or self._block is None or self.features is None:
            return found
        made, numbers = np.zeros(self.features, dtype=np.int64), self._block.others(self.features)
        made[numbers] = found[len(found) - len(numbers) :]
        return made

    # -- scores

    @abstractmethod
    def scores(self, x: Input) -> np.ndarray:
        """Return the scores of an input."""

    @abstractmethod
    def score_rows(self, inputs: Inputs) -> np.ndarray:
        """Return the scores of many inputs, a row each: an array or a CSR matrix of them."""

    def _mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the expected loss encoding of what is predicted at these scores."""
        return self.task.geometry.encode_loss(self.task.top_prediction(theta), len(theta))

    def _drawn_from(self, theta: np.ndarray) -> Distribution:
        """Return the predictions at these scores, with their chances."""
        made = self.task.top_prediction(theta)
        return Distribution(np.array([-1 if made is None else made]), np.ones(1))

    # -- rounds of mapped rows

    def step(self, x: Input, label: Label) -> Round:
        """Play one round: predict, see the label, learn. The same bits as in :meth:`run`."""
        row, checked = self._row(x), self.task.labels.check(label)
        with self._turn.lock:
            self._turn.check()
            prediction, columns = self._learn_next(row, checked)
            return Round(self.task.predictions.value(prediction), *columns[:5].tolist())

    @abstractmethod
    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        """Play mapped rows, the first with ticket ``number``; refuse the first bad one."""

    @abstractmethod
    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play one round of a mapped row; nothing changes if it is refused.

        Return the prediction as numbers, and a column of the record. Both may lie in buffers that
        the next round is written to.
        """

    @abstractmethod
    def _look_mapped(self, rows: Rows, numbers: np.ndarray, whole: bool) -> Asked:
        """Return what :meth:`_look` does, of mapped rows, and change nothing."""

    @abstractmethod
    def _score_mapped(self, rows: Mapped) -> np.ndarray:
        """Return the scores of mapped rows, a row each."""

    @abstractmethod
    def _copies_cheaply(self, size: int) -> bool:
        """Say whether copying the state costs no more than reading inputs of this size."""

    @abstractmethod
    def _like(self, classes: int | None = None) -> Self:
        """Return a new member of these parts, for more classes if a number is given."""

    @abstractmethod
    def _checked(self, state: State) -> State:
        """Return a state as it is understood, if what was learned can be this member's."""

    @abstractmethod
    def _adopt(self, state: State) -> None:
        """Go on from a state of this member, but for the map."""

    def _add(self, made: Self, state: State, more: Growth) -> State:
        """Return the state for ``made``, which has more classes or features."""
        return state

    @abstractmethod
    def _state(self, weights: bool = True) -> State:
        """Return the state, with weights or memory if ``weights``."""

    # -- what follows

    def grown(self, *, classes: int | None = None, features: int | None = None) -> Self:
        """Return a learner for more classes or features, which otherwise goes on as this one.

        New features come after the old. It is as if the classes had been there from the start but
        no label of theirs had been seen, and the features had been 0 in all rows.

        >>> import driftline as dl
        >>> stream = dl.streams.DigitTriples(rounds=300, flips=0, seed=0)
        >>> learner = dl.OGD(dl.losses.Logistic(stream.task))
        >>> _ = learner.run(stream)
        >>> more = learner.grown(classes=5)
        >>> more.weights.shape, bool((more.weights[:3] == learner.weights).all())
        ((5, 64), True)
        """
        return self._grown(classes, features, self.features)

    def _grown(self, classes: int | None, features: int | None, known: int | None) -> Self:
        """Grow as :meth:`grown` does; new features come after ``known`` ones of the input."""
        made, state, width = self._like(classes), self.state, self._width
        if features is not None:
            check_longer(self.task, known, features)
        places, zero = None, np.zeros(0)
        if features is not None and known is not None and width is not None:
            if self.mapper is not None:
                mapper, places = self.mapper.grown(features)
                state = state.replaced(map=mapper.to_saved())
                if (
                    not self._fixed.steps
                ):  # weights of new features are 0, whatever these are mapped to
                    zero = mapper.look_at(DenseRows(np.zeros((1, features)))).row(0)
            else:
                places = grown_places(width, width + features - known)
                zero = np.zeros(len(places))
        made.restore(self._add(made, state, Growth(classes, places, zero)))
        return made

    def _with_more(self, task: TaskKind, classes: int | None) -> TaskKind:
        """Return a task with more classes than this learner has, if a number is given."""
        if classes is None:
            return task
        more: Any = with_classes(task, classes)
        if classes < self.task.dim:
            raise InputError(f"there are {self.task.dim} classes already, so not only {classes}")
        return more

    def restore(self, state: State) -> None:
        """Go on from a state, if it is valid for this learner.

        >>> import driftline as dl
        >>> learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
        >>> before = learner.state
        >>> _ = learner.step([0.6, 0.8], label=2)
        >>> learner.restore(before)
        >>> learner.rounds
        0
        """
        if not isinstance(state, State) or state.key is None:
            raise InputError(f"expected a state of a learner, but got {state!r:.80}")
        state.check()
        with self._turn.lock:
            self._turn.check()
            checked, mapper = self._checked(state), self._resumed_mapper(state)
            self._late_of(state)  # which refuses before anything moves
            self._adopt(checked)
            self.mapper = mapper

    @property
    def state(self) -> State:
        """All that changes when the learner learns, as a value: a copy."""
        with self._turn.lock:
            return self._state()

    def _check_mapped(self, rows: Rows) -> None:
        """Refuse mapped rows of another length than the member has learned for."""
        known = self._width
        if known is not None and rows.features != known:
            raise InputError(
                f"mapped inputs have {rows.features} features, but weights are for {known}"
            )

    def _mapped(self, rows: Met, start: int = 0, stop: int | None = None) -> Met | Mapped:
        """Return mapped rows, each mapped as if it came next; without a map, the rows."""
        if self.mapper is None:
            return rows
        mapped = self.mapper.look_at(rows, start, stop)
        self._check_mapped(mapped)
        return mapped

    def _resumed_mapper(self, state: State) -> Mapper | None:
        """Return the mapper in the state that is saved in ``state``, if it is valid."""
        if (state.map is None) != (self.map is None):
            raise InputError(f"the state is not one of a learner with the map {self.map!r}")
        if self.map is None or state.map is None:
            return None
        mapper = self.map.mapper()
        if self.mapper is not None:
            mapper.become(self.mapper.copy())  # what is equal need not be checked again
        mapper.restore(*state.map)
        if mapper.features is None and state.rounds:
            raise InputError(f"the map has seen nothing in {state.rounds} rounds")
        if mapper.features is not None and mapper.outputs != state.features:
            raise InputError(
                f"the map makes {mapper.outputs} features of {mapper.features}, but weights are "
                f"for {state.features}"
            )
        return mapper

    def _play(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        self._play_mapped(*self._piece(rows, start, stop), labels, number, room)

    def _piece(self, rows: Rows, start: int, stop: int) -> tuple[Rows, int, int]:
        """Return mapped rows, and where some of the rows are in them; the map learns from these."""
        if self.mapper is None:
            return rows, start, stop
        mapped = self.mapper.piece(rows, start, stop)
        mapped.before = start
        self._check_mapped(mapped)
        return mapped, 0, stop - start

    def _learn_one(self, row: Rows, label: Label, number: int) -> tuple[np.ndarray, np.ndarray]:
        if self.mapper is None:
            self._check_features(row)
            return self._learn_one_mapped(row, label, number)
        return self._round(row, label, lambda row: self._learn_one_mapped(row, label, number))

    def _round(self, row: Rows, label: Label | None, play: Callable[[Rows], Played]) -> Played:
        """Play one mapped row, and let the map learn from it: both, or neither after an exception.

        A map sees the label, unless that is None.
        """
        self._check_features(row)
        if (mapper := self.mapper) is None:
            return play(row)
        row.labels = None if label is None else [label]  # which a map may refuse
        mapped, rounds, counted = self._mapped(row), self.rounds, mapper.counted
        before = Checkpoint(mapper) if counted is None else None
        try:
            played = play(mapped)
            mapper.remember(row)
            return played
        except BaseException:
            if self.rounds != rounds:
                if before is not None:
                    before.restore()
                if before is not None or mapper.counted == counted:
                    mapper.remember(row)
            raise

    def _look(self, rows: Rows, numbers: np.ndarray, whole: bool = True) -> Asked:
        if self.mapper is None:
            return self._look_mapped(rows, numbers, whole)
        mapped = self._mapped(rows)
        return self._look_mapped(mapped, numbers, whole)._replace(mapped=mapped)

    def _batch_size(self, rows: Rows) -> int:
        if self.map is None or self.map.same_entries:
            return rows.block
        return min(rows.block, max(1, MOST_NUMBERS // max(1, self.map.entries(rows.features))))

    @property
    def _takes_top(self) -> bool:
        return self._fixed.takes_top

    def _trace(self, batch: Batch, origin: State | None, digest: str) -> Trace:
        return Trace.of(batch, self.task, self._config(), origin, digest)
