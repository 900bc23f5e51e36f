"""Objects that say by name what learning changes; copies and checkpoints follow from it.

An object of a learner names its attributes that learning changes (``learned``): arrays, plain
values, other such objects, lists of them. Together they are a tree, the state of the learner, and
what must be done with all of a state is written here once: a copy that goes on by itself, and a
checkpoint, to which a learner is rolled back. An object that two others share is copied once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from driftline.state.arena import LINE
from driftline.state.draws import Draws

__all__ = ["Checkpoint", "Leaves", "Stateful"]

#: Types of values that nobody changes.
PLAIN = frozenset({type(None), bool, int, float, str, bytes, tuple})


class Stateful:
    """The base of objects that learn.

    >>> class Mean(Stateful):
    ...     learned = ("count", "sums")
    ...     def __init__(self, size):
    ...         self.count, self.sums = 0, np.zeros(size)
    ...     def add(self, x):
    ...         self.count, self.sums = self.count + 1, self.sums + x
    >>> mean = Mean(2)
    >>> mean.add([3.0, 4.0])
    >>> before, other = Checkpoint(mean), mean.copy()
    >>> mean.add([5.0, 6.0])
    >>> other.sums, mean.sums
    (array([3., 4.]), array([ 8., 10.]))
    >>> before.restore()
    >>> mean.count, mean.sums
    (1, array([3., 4.]))
    """

    #: The names of attributes that learning changes.
    learned: ClassVar[tuple[str, ...]] = ()

    #: Attributes that follow from these, and that a rollback needs as they were.
    derived: ClassVar[tuple[str, ...]] = ()

    #: Attributes that an object may begin with as another one has them: see :meth:`begin_as`.
    inherited: ClassVar[tuple[str, ...]] = ()

    #: Those that are learned and may be too large to be copied for every checkpoint.
    large: ClassVar[tuple[str, ...]] = ()

    #: The names of buffers, which two objects must not share.
    scratch: ClassVar[tuple[str, ...]] = ()

    def copy(self) -> Self:
        """Return an independent copy, which goes on by itself."""
        return _copied(self, {})

    @property
    def inside(self) -> tuple[str, ...]:
        """The names of what learning changes while the object is in a list of another one."""
        return self.learned

    def begin_as(self, other: Self) -> None:
        """Begin with what another object of the same parts has learned, but has not counted."""
        for name in self.learned:
            own, theirs = getattr(self, name), getattr(other, name)
            if isinstance(own, Stateful):
                own.begin_as(theirs)
            elif type(own) is list:
                for one, two in zip(own, theirs, strict=True):
                    one.begin_as(two)
            elif name in self.inherited:
                setattr(self, name, theirs.copy() if type(theirs) is np.ndarray else theirs)

    def _keep(self, name: str, value: Any) -> Any:
        """Return what a checkpoint keeps of a value of another type, such as a dictionary."""
        return value.copy() if hasattr(value, "copy") else value

    def _back(self, name: str, kept: Any) -> Any:
        """Return the value of an attribute from what :meth:`_keep` returned."""
        return kept.copy() if hasattr(kept, "copy") else kept

    def _unshare(self) -> None:
        """Make what a copy must not share with the object that it was copied from."""
        return


class Cell(NamedTuple):
    """An attribute, its value, and what this was: the content of an array, None if it is plain."""

    owner: Stateful
    name: str
    value: Any
    kept: Any


class Checkpoint:
    """The state of an object as it is now.

    Arrays are copied, but for those that are ``large`` unless ``whole``; of these it is known which
    they were. After :meth:`restore` arrays are the same objects as before.
    """

    __slots__ = ("_cells",)

    def __init__(self, root: Stateful, whole: bool = True):
        self._cells: list[Cell] = []
        _collect(root, root.learned, self._cells, set(), whole)

    def restore(self) -> None:
        """Roll the object back; this may be done twice."""
        for owner, name, value, kept in self._cells:
            if kept is None:
                setattr(owner, name, value)
            elif type(value) is np.ndarray:
                value[...] = kept
                setattr(owner, name, value)
            else:
                setattr(owner, name, owner._back(name, kept))


def _collect(
    owner: Stateful, names: tuple[str, ...], cells: list[Cell], seen: set[int], whole: bool
) -> None:
    """Add attributes of an object, and of all that it is made of."""
    seen.add(id(owner))
    for name in names:
        value = getattr(owner, name)
        kind = type(value)
        if kind in PLAIN:
            cells.append(Cell(owner, name, value, None))
        elif kind is np.ndarray:
            kept = value.copy() if whole or name not in owner.large else None
            cells.append(Cell(owner, name, value, kept))
        elif isinstance(value, Stateful):
            cells.append(Cell(owner, name, value, None))
            if id(value) not in seen:
                _collect(value, value.learned, cells, seen, whole)
        elif kind is list:
            cells.append(Cell(owner, name, value, None))
            for own in value:
                if id(own) not in seen:
                    _collect(own, own.inside, cells, seen, whole)
        else:
            cells.append(Cell(owner, name, value, owner._keep(name, value)))
    for name in owner.derived:
        cells.append(Cell(owner, name, getattr(owner, name), None))


class Leaves:
    """The attributes of an object, and of all that it is made of, that are no objects themselves.

    Their values can be read, and written to another object of the same parts. Seeds of random
    numbers are not among them.
    """

    __slots__ = ("_cells",)

    def __init__(self, root: Stateful):
        self._cells = list(_leaves(root, root.learned, set()))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._cells)

    def read(self) -> list[Any]:
        """Return all values; arrays are copied."""
        made: list[Any] = []
        for owner, name in self._cells:
            value = getattr(owner, name)
            kind = type(value)
            if kind is np.ndarray:
                value = value.copy()
            elif kind not in PLAIN:
                value = owner._keep(name, value)
            made.append(value)
        return made

    def write(self, values: Sequence[Any]) -> None:
        """Write values of other leaves, which are copied."""
        for (owner, name), value in zip(self._cells, values, strict=True):
            kind = type(value)
            if kind is np.ndarray:
                own = getattr(owner, name)
                if type(own) is kind and own.shape == value.shape and own.dtype == value.dtype:
                    own[...] = value
                    continue
                value = _duplicate(value)
            elif kind not in PLAIN:
                value = owner._back(name, value)
            setattr(owner, name, value)


def _leaves(
    owner: Stateful, names: tuple[str, ...], seen: set[int]
) -> Iterator[tuple[Stateful, str]]:
    """Yield the leaves of an object."""
    seen.add(id(owner))
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, Stateful):
            if id(value) not in seen:
                yield from _leaves(value, value.learned, seen)
        elif type(value) is list:
            for own in value:
                if id(own) not in seen:
                    yield from _leaves(own, own.inside, seen)
        elif type(value) is not Draws:
            yield owner, name


def _copied(owner: Any, known: dict[int, Any]) -> Any:
    """Return a copy of an object; ``known`` has the copies of others."""
    made = object.__new__(type(owner))
    known[id(owner)] = made
    values = vars(made)
    values.update(vars(owner))
    for name in owner.learned:
        value = getattr(owner, name)
        kind = type(value)
        if kind in PLAIN:
            continue
        if kind is np.ndarray:
            values[name] = _duplicate(value)
        elif isinstance(value, Stateful):
            values[name] = _known_copy(value, known)
        elif kind is list:
            values[name] = [_known_copy(own, known) for own in value]
        else:
            values[name] = owner._back(name, owner._keep(name, value))
    for name in owner.scratch:
        if type(value := values[name]) is np.ndarray:
            values[name] = np.empty_like(value)
        elif value is not None:
            values[name] = value.copy()
    made._unshare()
    return made


def _known_copy(value: Any, known: dict[int, Any]) -> Any:
    """Return the copy of an object, which is made if there is none yet."""
    made = known.get(id(value))
    return _copied(value, known) if made is None else made


def _duplicate(array: np.ndarray) -> np.ndarray:
    """Return a copy that begins at a cache line, with rows as far apart as they were."""
    if array.ndim > 2 or array.strides[-1] != array.itemsize or array.nbytes < LINE:
        return array.copy()
    pitch = array.strides[0] if array.ndim == 2 else array.nbytes
    room = np.empty((len(array) if array.ndim == 2 else 1) * pitch + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    made = np.ndarray(array.shape, array.dtype, room, first, array.strides)
    made[...] = array
    return made
