"""Objects that say by name what learning changes; copies and checkpoints follow from it.

An object of a learner names its attributes that learning changes (``learned``): arrays, plain
values, other such objects, lists of them. Together they are a tree, the state of the learner, and
what must be done with all of a state is written here once: a copy that goes on by itself, and a
checkpoint, to which a learner is rolled back. An object that two others share is copied once.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from driftline.state.arena import LINE

__all__ = ["Checkpoint", "Stateful"]

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

    #: Those of them that may be too large to be copied for every checkpoint.
    large: ClassVar[tuple[str, ...]] = ()

    #: The names of buffers, which two objects must not share.
    scratch: ClassVar[tuple[str, ...]] = ()

    def copy(self) -> Self:
        """Return an independent copy, which goes on by itself."""
        return _copied(self, {})

    def _keep(self, name: str, value: Any) -> Any:
        """Return what a checkpoint keeps of a value of another type, such as a dictionary."""
        return value.copy() if hasattr(value, "copy") else value

    def _back(self, name: str, kept: Any) -> Any:
        """Return the value of an attribute from what :meth:`_keep` returned."""
        return kept.copy() if hasattr(kept, "copy") else kept

    def _part(self) -> None:
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
        _collect(root, self._cells, set(), whole)

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


def _collect(owner: Stateful, cells: list[Cell], seen: set[int], whole: bool) -> None:
    """Add the attributes of an object, and of all that it is made of."""
    seen.add(id(owner))
    for name in owner.learned:
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
                _collect(value, cells, seen, whole)
        elif kind is list:
            cells.append(Cell(owner, name, value, None))
            for own in value:
                if id(own) not in seen:
                    _collect(own, cells, seen, whole)
        else:
            cells.append(Cell(owner, name, value, owner._keep(name, value)))


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
    made._part()
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
