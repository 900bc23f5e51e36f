"""Parts as plain data: every part can be written as a dictionary and read back.

A part (a task, a loss, a decoder, a rate, a domain) is a frozen dataclass. Its
fields are numbers, strings, tuples, arrays of numbers or other parts, so that a
configuration is a small tree that fits in JSON, and no code is ever read from it.

What other code needs to know of a part are facts, declared in the base class of its kind: a
``ClassVar`` is a constant of each class; a :class:`fact` may depend on the fields, and a part
states it as a constant, a field or a property.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.typing import Json

__all__ = [
    "Part",
    "check_flag",
    "check_number",
    "check_plain",
    "check_sizes",
    "check_whole",
    "fact",
    "from_config",
    "largest_number",
    "substituted",
]

#: The packages whose parts are found by name, even before they are imported.
ROOMS = (
    "bandit",
    "decoders",
    "detectors",
    "domains",
    "features",
    "losses",
    "polytopes",
    "rates",
    "regularizers",
    "tasks",
)


#: Integers of these parts are sizes, for which memory is allocated. Those read from a file may not
#: be larger than this.
SIZED, LARGEST = ("tasks.", "polytopes.", "losses."), 10**6


if TYPE_CHECKING:
    from builtins import property as fact
else:

    class fact:  # noqa: N801 (as property is written)
        """A property that a constant, a field or another property of a subclass may replace.

        A field cannot replace a plain property, which has no setter and would count as its default.
        """

        def __init__(self, default):
            self.default, self.__doc__ = default, default.__doc__

        def __get__(self, part, cls=None):
            if part is None:
                raise AttributeError("a fact belongs to a part, not to its class")
            return self.default(part)


class Part:
    """Base of all parts: knows its registered name and its configuration.

    >>> import driftline as dl
    >>> dl.tasks.Multiclass(3).config()
    {'type': 'tasks.Multiclass', 'classes': 3}
    """

    _registry: ClassVar[dict[str, type[Part]]] = {}

    #: The arguments that the part is made from, where these are not its fields.
    _made_from: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        Part._registry[cls._part_name()] = cls

    @classmethod
    def _part_name(cls) -> str:
        """Room and class for our own parts, the full dotted name for others'."""
        package, *inner = cls.__module__.split(".")
        if package == "driftline" and inner:
            return f"{inner[0]}.{cls.__qualname__}"
        return f"{cls.__module__}.{cls.__qualname__}"

    def config(self) -> Json:
        """Return the part as plain data: its name and its fields."""
        fields = {name: _plain(getattr(self, name)) for name in self._field_names()}
        return {"type": self._part_name(), **fields}

    @classmethod
    @functools.cache
    def _field_names(cls) -> tuple[str, ...]:
        """Return the names of the arguments that the part is made from."""
        fields: Any = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
        return cls._made_from or tuple(field.name for field in fields)


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is neither True nor False: a string such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, not {value!r}")


def check_whole(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number in a range, or refuse it."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(f"{name} is a whole number from {least} to {most}, not {value!r:.80}")
    return int(value)


def check_number(name: str, value: Any, least: float, most: float) -> float:
    """Return a number in a range, or refuse it."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise InputError(f"{name} is a number from {least:g} to {most:g}, not {value!r:.80}")
    return float(value)


def check_plain(part: Part) -> None:
    """Refuse a part that plain data cannot hold: one with a function in it, or in its parts."""
    for name in part._field_names():
        value = getattr(part, name, None)
        if isinstance(value, Part):
            check_plain(value)
        elif callable(value):
            raise InputError(
                f"{type(part).__name__} has a function as {name!r}: it cannot be written to a "
                "file, nor copied"
            )


#: Numbers in parts lie between one over this and this, in size, or are 0 or infinite where a part
#: allows it: then squares and products of some of them stay far from overflow.
LARGEST_NUMBER = 1e100


def substituted(part: Any, old: Part, new: Part) -> Any:
    """Return a part in which one nested part is replaced by another, everywhere.

    >>> import driftline as dl
    >>> few, many = dl.tasks.Multiclass(2), dl.tasks.Multiclass(3)
    >>> substituted(dl.losses.Scaled(dl.losses.Logistic(few), 2.0), few, many).task
    Multiclass(classes=3)
    """
    if not isinstance(part, Part):
        return part
    if part == old:
        return new
    fields = {name: getattr(part, name) for name in part._field_names()}
    made = {name: substituted(value, old, new) for name, value in fields.items()}
    if all(made[name] is fields[name] for name in fields):
        return part
    return dataclasses.replace(part, **made)  # type: ignore[type-var]


def check_sizes(part: Part) -> None:
    """Refuse a part with a number so large or so small that arithmetic would overflow."""
    for name, number in _numbers(part):
        size = abs(number)
        if math.isnan(number) or (size > 0.0 and not 1.0 / LARGEST_NUMBER <= size):
            raise InputError(f"{name} is {number}: expected {1 / LARGEST_NUMBER:g} or more in size")
        if LARGEST_NUMBER < size < math.inf:
            raise InputError(f"{name} is {number}: expected {LARGEST_NUMBER:g} or less in size")


def largest_number(part: Part) -> float:
    """Return the largest of all finite numbers in a part, and of one over each, in size."""
    sizes = [abs(number) for _, number in _numbers(part)]
    return max([1.0, *(max(s, 1.0 / s) for s in sizes if 0.0 < s < math.inf)])


def _numbers(part: Part) -> Iterator[tuple[str, float]]:
    """Yield all numbers in a part and its parts, each with the path to it."""
    for name in part._field_names():
        value = getattr(part, name, None)
        if isinstance(value, Part):
            yield from _numbers(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{name} of {type(part).__name__}", float(value)
        elif isinstance(value, np.ndarray) or np.isscalar(value):
            array = np.asarray(value)
            if array.dtype.kind in "iuf":
                where = f"{name} of {type(part).__name__}"
                yield from ((where, float(number)) for number in np.unique(array))


def from_config(config: Any) -> Any:
    """Rebuild a part from what :meth:`Part.config` returned.

    >>> import driftline as dl
    >>> from_config({'type': 'domains.Ball', 'diameter': 20.0})
    Ball(diameter=20.0)
    """
    if isinstance(config, list):
        return tuple(from_config(item) for item in config)
    if not isinstance(config, dict):
        return config
    fields = dict(config)
    name = fields.pop("type", None)
    if isinstance(name, str) and (room := name.split(".")[0]) in ROOMS:
        import_module(f"driftline.{room}")
    cls = Part._registry.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InputError(
            f"no part is registered under the name {name!r}; "
            "import the module that defines it before loading"
        )
    known = cls._field_names()
    if unknown := sorted(set(fields) - set(known)):
        raise InputError(f"{name} has no field {unknown[0]!r}; it has {list(known)}")
    for key, value in fields.items():
        large = isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST
        if large and name.startswith(SIZED):
            raise InputError(f"{key!r} of {name} is {value}, larger than any task that was learned")
    return cls(**{key: from_config(value) for key, value in fields.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.config()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)
