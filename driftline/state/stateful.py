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

#: How a value is kept: as it is, by its content, by its own attributes, one by one, by its copy.
PLAIN, ARRAY, OBJECT, LIST, COPIED = range(5)

#: That of every type of values seen so far.
HOW: dict[type, int] = {np.ndarray: ARRAY, list: LIST}


def _how(kind: type) -> int:
    """Return how values of a type are kept, and remember it."""
    if issubclass(kind, Stateful):
        HOW[kind] = OBJECT
    elif hasattr(kind, "copy"):
        HOW[kind] = COPIED
    else:
        HOW[kind] = PLAIN
    return HOW[kind]


class Stateful:
    """The base of objects that learn.

    >>> class Mean(Stateful):
    ...     _learned = ("count", "sums")
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
    _learned: ClassVar[tuple[str, ...]] = ()

    #: Attributes whose values only the object knows how to copy.
    _opaque: ClassVar[tuple[str, ...]] = ()

    #: Attributes that follow from these, and that a rollback needs as they were.
    _derived: ClassVar[tuple[str, ...]] = ()

    #: Attributes that an object may begin with as another one has them: see :meth:`_begin_as`.
    _inherited: ClassVar[tuple[str, ...]] = ()

    #: Those that are learned and may be too large to be copied for every checkpoint.
    _large: ClassVar[tuple[str, ...]] = ()

    #: Lists of objects that have learned nothing, but for those that are elsewhere in the tree.
    _unlearned: ClassVar[tuple[str, ...]] = ()

    #: The names of buffers, which two objects must not share.
    _scratch: ClassVar[tuple[str, ...]] = ()

    def copy(self) -> Self:
        """Return an independent copy, which goes on by itself."""
        return _copied(self, {})

    @property
    def _inside(self) -> tuple[str, ...]:
        """The names of what learning changes while the object is in a list of another one."""
        return self._learned

    def _begin_as(self, other: Self) -> None:
        """Begin with what another object of the same parts has learned, but has not counted."""
        for name in self._learned:
            own, theirs = getattr(self, name), getattr(other, name)
            if isinstance(own, Stateful):
                own._begin_as(theirs)
            elif type(own) is list:
                for one, two in zip(own, theirs, strict=True):
                    one._begin_as(two)
            elif name in self._inherited:
                setattr(self, name, theirs.copy() if type(theirs) is np.ndarray else theirs)

    def _keep(self, name: str) -> Any:
        """Return what a checkpoint keeps of an attribute that is opaque."""
        return getattr(self, name)

    def _back(self, name: str, kept: Any) -> Any:
        """Return the value of such an attribute from what :meth:`_keep` returned."""
        return kept

    def _unshare(self) -> None:
        """Make what a copy must not share with the object that it was copied from."""
        return


class Cell(NamedTuple):
    """An attribute, its value, and what a copy must be made of: None where the value is kept."""

    owner: Stateful
    name: str
    value: Any
    kept: Any


class Checkpoint:
    """The state of an object as it is now.

    Arrays are copied, but for those that are ``large`` unless ``whole``; of these it is known which
    they were. After :meth:`restore` arrays are the same objects as before.
    """

    __slots__ = ("_cells", "_held")

    def __init__(self, root: Stateful, whole: bool = True):
        self._cells: list[Cell] = []
        owners = dict[Stateful, None]()
        _collect(root, root._learned, self._cells, owners, whole)
        self._held = [(own, name, own._keep(name)) for own in owners for name in own._opaque]

    def restore(self) -> None:
        """Roll the object back; this may be done twice."""
        for owner, name, value, kept in self._cells:
            if kept is None:
                setattr(owner, name, value)
            elif type(value) is np.ndarray:
                value[...] = kept
                setattr(owner, name, value)
            else:
                setattr(owner, name, kept.copy())
        for owner, name, kept in self._held:
            setattr(owner, name, owner._back(name, kept))


def _collect(
    owner: Stateful,
    names: tuple[str, ...],
    cells: list[Cell],
    seen: dict[Stateful, None],
    whole: bool,
) -> None:
    """Add attributes of an object, and of all that it is made of."""
    seen[owner] = None
    for name in names:
        value = getattr(owner, name)
        kind = type(value)
        how = HOW[kind] if kind in HOW else _how(kind)
        keep = how == COPIED or (how == ARRAY and (whole or name not in owner._large))
        cells.append(Cell(owner, name, value, value.copy() if keep else None))
        if how == OBJECT and value not in seen:
            _collect(value, value._learned, cells, seen, whole)
        for own in value if how == LIST else ():
            if own not in seen:
                _collect(own, own._inside, cells, seen, whole)
    for name in owner._derived:
        cells.append(Cell(owner, name, getattr(owner, name), None))


class Leaves:
    """The attributes of an object, and of all that it is made of, that are no objects themselves.

    Their values can be read, and written to another object of the same parts. Seeds of random
    numbers are not among them.
    """

    __slots__ = ("_cells", "_held")

    def __init__(self, root: Stateful):
        owners = dict[Stateful, None]()
        self._cells = list(_leaves(root, root._learned, owners))
        self._held = [(owner, name) for owner in owners for name in owner._opaque]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._cells) + len(self._held)

    @property
    def bytes(self) -> int:
        """How many bytes the arrays have, 1 at least."""
        values = (getattr(owner, name) for owner, name in self._cells)
        return sum((own.nbytes for own in values if type(own) is np.ndarray), 1)

    def read(self) -> list[Any]:
        """Return all values; arrays are copied."""
        made: list[Any] = []
        for owner, name in self._cells:
            value = getattr(owner, name)
            made.append(value if HOW[type(value)] == PLAIN else value.copy())
        return made + [owner._keep(name) for owner, name in self._held]

    def write(self, values: Sequence[Any]) -> None:
        """Write values of other leaves, which are copied."""
        for (owner, name), value in zip(self._cells, values, strict=False):
            how = HOW[type(value)]
            if how == ARRAY:
                own = getattr(owner, name)
                if type(own) is not np.ndarray or own.shape != value.shape:
                    setattr(owner, name, _duplicate(value))
                elif own.dtype != value.dtype:
                    setattr(owner, name, _duplicate(value))
                else:
                    own[...] = value
            else:
                setattr(owner, name, value if how == PLAIN else value.copy())
        for (owner, name), value in zip(self._held, values[len(self._cells) :], strict=True):
            setattr(owner, name, owner._back(name, value))


def _leaves(
    owner: Stateful, names: tuple[str, ...], seen: dict[Stateful, None]
) -> Iterator[tuple[Stateful, str]]:
    """Yield the leaves of an object."""
    seen[owner] = None
    for name in names:
        if name in owner._unlearned:
            continue
        value = getattr(owner, name)
        kind = type(value)
        how = HOW[kind] if kind in HOW else _how(kind)
        if how == OBJECT and value not in seen:
            yield from _leaves(value, value._learned, seen)
        elif how == LIST:
            for own in value:
                if own not in seen:
                    yield from _leaves(own, own._inside, seen)
        elif how != OBJECT and kind is not Draws:
            yield owner, name


def _copied(owner: Any, known: dict[Stateful, Any]) -> Any:
    """Return a copy of an object; ``known`` has the copies of others."""
    made = known[owner] = object.__new__(type(owner))
    values = made.__dict__
    values.update(owner.__dict__)
    for name in owner._learned:
        if name not in values:  # the default of the class
            continue
        value = values[name]
        kind = type(value)
        how = HOW[kind] if kind in HOW else _how(kind)
        if how == ARRAY:
            values[name] = _duplicate(value)
        elif how == OBJECT:
            values[name] = known[value] if value in known else _copied(value, known)
        elif how == LIST:
            values[name] = [known[own] if own in known else _copied(own, known) for own in value]
        elif how == COPIED:
            values[name] = value.copy()
    for name in owner._opaque:
        values[name] = owner._back(name, owner._keep(name))
    for name in owner._scratch:
        if (value := values[name]) is not None:
            values[name] = np.empty_like(value)
    made._unshare()
    return made


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
