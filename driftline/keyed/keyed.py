"""One learner for every key: a customer, a sensor, a shop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows
from driftline.inputs.taking import take
from driftline.keyed.blocks import Blocks, fits_blocks
from driftline.keyed.images import Images, fits_shared
from driftline.keyed.index import KeyIndex
from driftline.keyed.keys import Key, check_key, from_plain, keys_of, seed_from, to_plain
from driftline.keyed.playing import Player
from driftline.keyed.store import Store, part_of
from driftline.keyed.trace import KeyedTrace
from driftline.learner import Learner, Ticket
from driftline.learner.sample_weight import checked_weights
from driftline.learner.shell import checked_stream
from driftline.state import archive
from driftline.state.loading import learner_from
from driftline.typing import (
    CheckedLabels,
    Input,
    Inputs,
    Json,
    Label,
    Labels,
    Prediction,
    Saved,
)

__all__ = ["Keyed", "KeyedTicket"]

#: The version of the fields in a file.
VERSION = 1
#: Of a key that no row was seen of.
NEVER = -1
NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class KeyedTicket:
    """The ticket of one key's learner, and the key."""

    key: Key
    ticket: Ticket

    @property
    def prediction(self) -> Prediction:
        """What was predicted."""
        return self.ticket.prediction


class Keyed:
    """Learners of the same parts, one for each key, new ones as new keys come.

    Every learner has the bits of one that plays the rows of its key alone. Weights of all lie side
    by side, and rows of many keys are played by one compiled loop, where learners are ``OGD`` with
    dense rows, without a feature map, a detector or a solver. All others, committees among them,
    are kept as images of their states: the keys that were used last have a learner each.

    Parameters
    ----------
    learner
        A new learner. The seed of a key's is a function of its seed and the key
        (:meth:`seed_of`).
    start
        How a key begins: ``"zero"``, as the learner itself would; ``"shared"``, with the weights
        that a learner over the rows of all keys has by then (:attr:`shared`), from which the path
        length of its certificate is then counted; or a state to begin from. A committee also has
        the scaling and the weights of members from the shared one, for which the bound of its
        weights counts one change of members more.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> shops = np.arange(1000) % 7
    >>> fleet = dl.Keyed(dl.OGD(dl.losses.Logistic(stream.task)))
    >>> trace = fleet.run(shops, stream.inputs, stream.labels)
    >>> len(fleet), len(trace.of(3)), fleet.rounds(3)
    (7, 143, 143)
    >>> alone = dl.OGD(dl.losses.Logistic(stream.task))
    >>> rows = trace.rows(3)
    >>> bool((alone.run(stream.inputs[rows], stream.labels[rows]).loss == trace.loss[rows]).all())
    True
    """

    def __init__(self, learner: Learner, *, start: str | Any = "zero"):
        if not isinstance(learner, Learner):
            raise InputError(f"expected a learner, such as dl.OGD(loss), but got {learner!r:.80}")
        if learner.rounds or learner.outstanding:
            raise InputError(
                f"expected a new learner, but this one has played {learner.rounds} rounds: to "
                "begin from what it has learned, give a new one and start=learner.state"
            )
        self._worker: Any = learner.copy()
        self.task = learner.task
        self._first = self._worker.state
        self._base = int(self._first.key or 0)
        self._shares = start == "shared" if isinstance(start, str) else False
        self._given: Any = None
        if isinstance(start, str):
            if start not in ("zero", "shared"):
                raise InputError(f"start is 'zero', 'shared' or a state, not {start!r:.40}")
            if self._shares and not (fits_blocks(learner) or fits_shared(learner)):
                raise InputError(
                    "only weights can be where others start: those of an OGD without a feature "
                    "map, a detector or a solver, or of a committee of such that draws nothing, as "
                    "dl.auto(task, effort='fast') is"
                )
        else:
            self._worker.restore(start)  # refused if it is not one of such a learner
            self._given = self._worker.state
            self._worker.restore(self._first)
        self._store = self._store_for(self._given)
        self._index = KeyIndex()
        self._seen = np.zeros(0, dtype=np.int64)
        self._rows, self._lock = 0, RLock()

    def _store_for(self, first: Any) -> Store:
        """Return where learners are kept."""
        kind = Blocks if fits_blocks(self._worker) else Images
        given = (self._worker, first, lambda slot: self.seed_of(self._index.key(slot)))
        return kind(*given, shares=self._shares)

    # -- what is there

    def __len__(self) -> int:
        """Return how many keys there are."""
        with self._lock:
            return len(self._index)

    def __contains__(self, key: Any) -> bool:
        """Say whether there is a learner for a key."""
        with self._lock:
            return self._index.slot(check_key(key)) >= 0

    def __iter__(self) -> Iterator[Key]:
        """Iterate over the keys."""
        with self._lock:
            return iter(list(self._index))

    def __repr__(self) -> str:
        """Name the learner and how many keys there are."""
        return f"Keyed({self._worker!r}, {len(self)} keys)"

    @property
    def prototype(self) -> Any:
        """A new learner, as keys have it that begin at zero."""
        with self._lock:
            self._worker.restore(self._first)
            return self._worker.copy()

    @property
    def start(self) -> str:
        """How a key begins: at ``zero``, as the ``shared`` learner is, or from a ``state``."""
        return "shared" if self._shares else "zero" if self._given is None else "state"

    @property
    def shared(self) -> Any:
        """A copy of the learner over the rows of all keys, None if there is none."""
        if not self._shares:
            return None
        with self._lock:
            state = self._store.shared_state()
            self._worker.restore(self._first if state is None else state)
            return self._worker.copy()

    def seed_of(self, key: Any) -> int:
        """Return the seed of a key's learner."""
        return seed_from(self._base, check_key(key))

    def rounds(self, key: Any) -> int:
        """Return how many rounds a key's learner has learned from, 0 for a key that never came."""
        with self._lock:
            slot = self._index.slot(check_key(key))
            return 0 if slot < 0 else int(self._store.state(slot).rounds)

    @property
    def alarms(self) -> dict[Key, int]:
        """How often the losses of every key were seen to rise: its committee keeps watch."""
        with self._lock:
            used = self._index.used
            pairs = zip(used.tolist(), self._store.alarms(used).tolist(), strict=True)
            return {self._index.key(slot): count for slot, count in pairs}

    def state(self, key: Any) -> Any:
        """Return the state of a key's learner, as a value."""
        with self._lock:
            return self._store.state(self._known(key))

    def learner(self, key: Any) -> Any:
        """Return a learner as that of a key is now, which goes on by itself.

        For a key that never came, a new one.
        """
        key = check_key(key)
        with self._lock:
            return self._enter(key).copy()

    def put(self, key: Any, state: Any) -> None:
        """Let the learner of a key go on from a state, such as one that was evicted."""
        key = check_key(key)
        with self._lock:
            self._worker.restore(state)  # refused if it is not one of such a learner
            if (features := self._worker.features) is None:
                raise InputError("expected the state of a learner that has seen a row")
            self._with(key, None, np.zeros(features), count=0, state=state)

    def _known(self, key: Any) -> int:
        slot = self._index.slot(check_key(key))
        if slot < 0:
            raise InputError(f"there is no learner for the key {key!r:.80}")
        return slot

    # -- states of single learners

    def _enter(self, key: Key) -> Any:
        """Return a key's learner, or a new one."""
        slot = self._index.slot(key)
        return self._store.fresh(self.seed_of(key)) if slot < 0 else self._store.enter(slot)

    def _slot_for(self, key: Key) -> int:
        """Return the slot of a key, a new one if it is new."""
        keys = keys_of([key])
        (slot,) = self._index.slots(keys, add=True).tolist()
        self._make_room()
        return int(slot)

    def _make_room(self) -> None:
        size = self._index.size
        self._store.grow(size)
        if size > len(self._seen):
            more = np.full(max(size, len(self._seen) * 9 // 8) - len(self._seen), NEVER)
            self._seen = np.concatenate([self._seen, more])

    # -- rounds of many keys

    def run(
        self,
        keys: Any,
        inputs: Inputs,
        labels: Labels = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool = False,
    ) -> KeyedTrace:
        """Play rows in their order, each by the learner of its key; return what happened.

        If a row is refused, all learners are as they were before the run.

        Parameters
        ----------
        keys
            A key for every row: a list, an array, a column of a data frame.
        inputs, labels
            As :meth:`OGD.run <driftline.OGD.run>` takes them.
        sample_weight
            How often each row counts. Default: once.
        progress
            A callback that is given the number of rows just played.
        audit
            Whether the traces of single keys are kept where rounds are not those of the loop: of
            committees, for example. Those of the loop are always there.
        """
        made = self._play(keys, inputs, labels, sample_weight, progress, audit, record=True)
        assert made is not None
        return made

    def learn_rows(
        self,
        keys: Any,
        inputs: Inputs,
        labels: Labels = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        """Do all that :meth:`run` does, but keep no trace."""
        self._play(keys, inputs, labels, sample_weight, None, False, record=False)

    def _play(
        self,
        keys: Any,
        inputs: Inputs,
        labels: Labels,
        sample_weight: npt.ArrayLike | None,
        progress: Callable[[int], None] | None,
        audit: bool,
        record: bool,
    ) -> KeyedTrace | None:
        rows, checked = checked_stream(self.task, inputs, labels)
        weights, named = checked_weights(sample_weight, rows.rounds), keys_of(keys)
        if len(named) != rows.rounds:
            raise InputError(f"there are {rows.rounds} inputs but {len(named)} keys")
        given = rows, checked, weights
        with self._lock:
            return self._played(named, given, record, audit, progress)

    def _played(
        self,
        named: Any,
        given: tuple[Rows, CheckedLabels, np.ndarray | None],
        record: bool,
        audit: bool,
        progress: Callable[[int], None] | None,
    ) -> KeyedTrace | None:
        """Play rows, and go back to before them if anything is raised."""
        before = Before(self, len(named))
        try:
            self._store.meet(given[0])
            slots = self._index.slots(named, add=True)
            self._make_room()
            touched, first = self._index.first_rows(slots)
            new = touched[self._seen[touched] == NEVER]
            begins = first[self._seen[touched] == NEVER]
            known = np.setdiff1d(touched, new, assume_unique=True)
            before.copy(known, shared=True)
            player = Player(self, *given, slots, record, audit, progress)
            player.play(new, begins)
            trace = player.trace((known, before.copied)) if record else None
            self._seen[slots] = self._rows + np.arange(len(slots))
            self._rows += len(slots)
            return trace
        except BaseException as error:
            before.go_back(error)
            raise

    # -- single rounds

    def step(self, key: Any, x: Input, label: Label) -> Any:
        """Play one round by the learner of a key, as its :meth:`step` does."""
        return self._with(key, lambda worker: worker.step(x, label), x, (x, label), learns=True)

    def learn_row(self, key: Any, x: Input, label: Label) -> None:
        """Do all that :meth:`step` does, but return nothing."""
        self.step(key, x, label)

    def ask(self, key: Any, x: Input) -> KeyedTicket:
        """Predict an input by the learner of a key; its label comes later, in any order."""
        key = check_key(key)
        return KeyedTicket(key, self._with(key, lambda worker: worker.ask(x), x))

    def tell(self, ticket: KeyedTicket, label: Label = None, *, loss: float | None = None) -> None:
        """Learn from a ticket and its label."""
        if not isinstance(ticket, KeyedTicket):
            raise InputError(f"expected a ticket, as ask() returns it, but got {ticket!r:.80}")
        with self._lock:
            self._known(ticket.key)
            taught = None
            if self._shares and label is not None:
                taught = ticket.ticket.checked_input(), label
            own = ticket.ticket
            self._with(ticket.key, lambda w: w.tell(own, label, loss=loss), taught=taught)

    def forget(self, ticket: KeyedTicket) -> None:
        """Say that no label will come for a ticket."""
        if not isinstance(ticket, KeyedTicket):
            raise InputError(f"expected a ticket, as ask() returns it, but got {ticket!r:.80}")
        with self._lock:
            self._known(ticket.key)
            self._with(ticket.key, lambda worker: worker.forget(ticket.ticket))

    def predict(self, key: Any, x: Input) -> Prediction:
        """Return what :meth:`step` would predict now, and change nothing."""
        key = check_key(key)
        with self._lock:
            return self._enter(key).predict(x)

    def predict_rows(self, keys: Any, inputs: Inputs) -> list[Prediction]:
        """Return what :meth:`predict` returns for many keys and inputs, and change nothing."""
        rows, named = self.task.layout.rows(inputs), keys_of(keys)
        if len(named) != rows.rounds:
            raise InputError(f"there are {rows.rounds} inputs but {len(named)} keys")
        with self._lock:
            made: list[Prediction] = [None] * rows.rounds
            slots = self._index.slots(named, add=False)
            known = np.flatnonzero(slots >= 0)
            if isinstance(self._store, Blocks) and self._store.takes(rows) and len(known):
                self._store.meet(rows)
                found: Any = take(rows, known)
                numbers = self._store.look(found, slots[known])
                for place, own in zip(known.tolist(), numbers, strict=True):
                    made[place] = self.task.predictions.value(own)
                known = known[:0]
            for places in _groups(slots, known):
                learner = self._store.enter(int(slots[places[0]]), asking=False)
                self._predict(learner, rows, places, made)
            new = np.flatnonzero(slots < 0)
            alike = (
                isinstance(self._store, Blocks) and self._store.certain
            )  # where nothing is drawn
            for places in [new] if alike and len(new) else _groups(_codes(named), new):
                key = named[places[0]] if isinstance(named, list) else int(named[places[0]])
                self._predict(self._store.fresh(self.seed_of(key)), rows, places, made)
            return made

    def _predict(
        self, learner: Any, rows: Rows, places: np.ndarray, made: list[Prediction]
    ) -> None:
        """Let a learner predict some rows."""
        found = learner._predict(take(rows, places))
        for place, own in zip(places.tolist(), found, strict=True):
            made[place] = own

    def outstanding(self, key: Any) -> int:
        """Return how many tickets of a key wait for their labels."""
        with self._lock:
            slot = self._index.slot(check_key(key))
            numbers = None if slot < 0 else self._store.state(slot).outstanding
            return 0 if numbers is None else len(numbers)

    def _with(
        self,
        key: Any,
        work: Callable[[Any], Any] | None,
        x: Input = None,
        taught: tuple[Input, Label] | None = None,
        count: int = 1,
        state: Any = None,
        learns: bool = False,
    ) -> Any:
        """Let a key's learner do something, or put a state in its place; if refused, nothing is.

        A shared learner is taught a row; ``count`` rows were seen. ``learns`` says whether to learn
        from that row is all that is done.
        """
        key, row = check_key(key), None if x is None else self._worker._row(x)
        told = None
        if learns and type(row) is DenseRows and taught is not None:  # in arrays of nobody else
            told = row.array[0].copy(), self.task.labels.value(self.task.labels.check(taught[1]))
        with self._lock:
            taught = taught if self._shares else None
            return self._done(key, work, row, taught, count, state, told)

    def _done(
        self,
        key: Key,
        work: Callable[[Any], Any] | None,
        row: Rows | None,
        taught: tuple[Input, Label] | None,
        count: int,
        state: Any,
        told: tuple[Any, Any] | None,
    ) -> Any:
        before = Before(self, 1)
        try:
            if row is not None:
                self._store.meet(row)
            made = None if work is None else work(self._enter(key))
            slot = self._index.slot(key)
            before.copy(NONE if slot < 0 else np.array([slot]), shared=False)
            if slot < 0:
                slot = self._slot_for(key)
            if work is None:
                self._store.put(slot, state)
            else:
                self._store.leave(slot, told)
            if taught is not None:
                self._store.teach_shared(*taught)
            self._seen[slot] = self._rows
            self._rows += count
            return made
        except BaseException as error:
            before.go_back(error)
            raise

    # -- keys that go

    def evict(self, *, most: int | None = None, age: int | None = None) -> dict[Key, Any]:
        """Remove learners, and return their states: none is lost that is not handed out first.

        Parameters
        ----------
        most
            How many keys may stay: those that were seen last.
        age
            After how many rows of other keys a key is removed that no row was seen of.

        Examples
        --------
        >>> import driftline as dl
        >>> fleet = Keyed(dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2))))
        >>> fleet.learn_rows(["a", "b", "c"], np.eye(3), [0, 1, 1])
        >>> gone = fleet.evict(most=2)
        >>> list(gone), list(fleet)
        (['a'], ['b', 'c'])
        >>> fleet.put("a", gone["a"])
        >>> len(fleet)
        3
        """
        for name, value in (("most", most), ("age", age)):
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and (not whole or value < 0):
                raise InputError(f"{name} is a whole number of 0 or more, not {value!r:.40}")
        if most is None and age is None:
            raise InputError("say which keys go: the least recent by most=, or by age=")
        with self._lock:
            used = self._index.used
            order = used[np.argsort(self._seen[used], kind="stable")]
            gone = order[: max(0, len(order) - most)] if most is not None else order[:0]
            if age is not None:
                old = order[self._rows - 1 - self._seen[order] > age]
                gone = old if len(old) > len(gone) else gone
            return self._removed(gone)

    def _removed(self, gone: np.ndarray) -> dict[Key, Any]:
        """Remove learners by their slots, all or none; return their states."""
        made = {self._index.key(slot): self._store.state(slot) for slot in gone.tolist()}
        copied, seen, index = self._store.copy(gone), self._seen[gone], self._index.copy()
        index.remove(gone.tolist())
        try:
            self._store.drop(gone)
            self._seen[gone] = NEVER
            self._index = index
        except BaseException:
            if self._index is not index:
                self._store.rollback(gone, copied)
                self._seen[gone] = seen
            raise
        return made

    def grown(self, *, classes: int | None = None, features: int | None = None) -> Self:
        """Return learners for more classes or features, each of which otherwise goes on.

        >>> import driftline as dl
        >>> fleet = Keyed(dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2))))
        >>> fleet.learn_rows(["a", "b"], np.eye(2), [0, 1])
        >>> more = fleet.grown(classes=3)
        >>> more.learn_rows(["b", "c"], np.eye(2), [2, 1])
        >>> len(fleet), len(more), more.rounds("b")
        (2, 3, 2)
        """
        with self._lock:
            grow = partial(self._grown, classes, features)
            first = grow(self._first)
            start: Any = "shared" if self._shares else "zero"
            made = type(self)(
                first, start=start if self._given is None else grow(self._given).state
            )
            store = self._store
            if isinstance(store, Blocks) and store.features is not None:
                width = store.features if features is None else features
                made._store.meet(DenseRows(np.zeros((1, width))))
            used = self._index.used
            if len(used):
                keys = keys_of([self._index.key(slot) for slot in used.tolist()])
                slots = made._index.slots(keys, add=True)
                made._make_room()
                made._store.put_grown(slots, store, used, grow)
                made._seen[slots] = self._seen[used]
            if (shared := self._store.shared_state()) is not None:
                made._store.put_shared(grow(shared).state)
            made._rows = self._rows
            return made

    def _grown(self, classes: int | None, features: int | None, state: Any) -> Any:
        """Return the learner of a state, grown."""
        self._worker.restore(state)
        return self._worker.grown(classes=classes, features=features)

    # -- files

    def save(self, path: str | Path) -> Path:
        """Write all learners to one file, for :func:`driftline.load`; return where it is.

        ``fleet.learner(key).save(path)`` writes that of one key.
        """
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> Saved:
        """Return all as plain data and arrays."""
        with self._lock:
            used = self._index.used
            keys = [self._index.key(slot) for slot in used.tolist()]
            about: Json = {"kind": "Keyed", "version": VERSION, "rows": self._rows}
            about |= {"keys": to_plain(keys)}
            made = {"seen": self._seen[used]}
            self._worker.restore(self._first)
            parts: dict[str, Any] = {"learner": self._worker, "start": None}
            if self._shares and self._rows:
                parts["shared"] = self.shared
                self._worker.restore(self._first)
            about["shares"] = self._shares
            if self._given is not None:
                parts["start"] = self._worker.copy()
                parts["start"].restore(self._given)
            saved = {name: own.to_saved() for name, own in parts.items() if own is not None}
            saved["keys"] = self._store.to_saved(used)
            for name, (plain_part, arrays) in saved.items():
                about[f"of {name}"] = plain_part
                made |= {f"{name}.{key}": array.copy() for key, array in arrays.items()}
            return about, made

    def __reduce__(self) -> tuple[Callable[..., Self], Saved]:
        """Pickle and copy the saved form, as learners do."""
        return type(self).from_saved, self.to_saved()

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return all from what :meth:`to_saved` returned, or refuse it."""
        if about.get("kind") != "Keyed" or about.get("version") != VERSION:
            raise InputError(f"expected learners by key of version {VERSION}, not {about!r:.80}")

        def learner(name: str) -> Any:
            return learner_from(about[f"of {name}"], part_of(arrays, name))

        start = "shared" if about["shares"] is True else "zero"
        start = learner("start").state if "of start" in about else start
        made = cls(learner("learner"), start=start)
        keys, rows, seen = from_plain(about["keys"]), about["rows"], arrays["seen"]
        if type(rows) is not int or rows < 0 or seen.dtype != np.int64:
            raise InputError(f"keys cannot have been seen in {rows!r:.40} rows")
        if seen.shape != (len(keys),) or (len(seen) and not 0 <= seen.min() <= seen.max() <= rows):
            raise InputError("keys were seen in rows that never came")
        slots = made._index.slots(keys_of(keys) if keys else [], add=True)
        if len(made._index) < len(keys):
            raise InputError(f"the file has {len(keys)} keys, of which some are the same")
        made._make_room()
        made._store.load(slots, about["of keys"], part_of(arrays, "keys"))
        if ("of shared" in about) != (made._shares and rows > 0):
            raise InputError("it has to have a learner over all keys where these begin as it is")
        if "of shared" in about:
            made._store.put_shared(learner("shared").state)
        made._rows, made._seen[slots] = rows, seen
        return made


class Before:
    """What all learners were before a call that adds this many keys at most, to go back to.

    Learners of some slots are copied when it is known which these are, before they change.
    """

    def __init__(self, fleet: Keyed, most: int):
        self._fleet, self._rows, self._index = fleet, fleet._rows, fleet._index.mark(most)
        store = fleet._store
        self._begun = not isinstance(store, Blocks) or store.features is not None
        self._slots = self._seen = NONE
        self._shared: Any = None
        #: What the store returned.
        self.copied: Any = None

    def copy(self, slots: np.ndarray, shared: bool) -> None:
        """Copy the learners of some slots; and a shared committee, which takes long, if wanted."""
        store = self._fleet._store
        if shared and isinstance(store, Images):
            self._shared = store.shared_state()
        self._slots, self._seen = slots, self._fleet._seen[slots]
        self.copied = store.copy(slots)

    def go_back(self, error: BaseException) -> None:
        """Go back after an error."""
        fleet = self._fleet
        new = fleet._index.go_back(self._index)
        fleet._store.reset()
        if not self._begun:
            fleet._store = fleet._store_for(fleet._given)
            fleet._store.grow(fleet._index.size)
        elif self.copied is not None:
            fleet._store.rollback(self._slots, self.copied)
            if self._shared is not None:
                fleet._store.put_shared(self._shared)
        fleet._store.drop(new)
        fleet._seen[new[new < len(fleet._seen)]] = NEVER
        fleet._seen[self._slots], fleet._rows = self._seen, self._rows


def _groups(codes: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    """Return some places in groups of the same code."""
    order = places[np.argsort(codes[places], kind="stable")]
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    return [group for group in np.split(order, cuts) if len(group)]


def _codes(keys: np.ndarray | list[Key]) -> np.ndarray:
    """Return a number for every key, the same for equal ones."""
    if isinstance(keys, np.ndarray):
        return keys
    numbers: dict[Key, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
