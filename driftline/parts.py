"""Parts as plain data: every part can be written as a dictionary and read back.

A part (a task, a loss, a decoder, a rate, a domain) is a frozen dataclass. Its
fields are numbers, strings, tuples, arrays of numbers or other parts, so that a
configuration is a small tree that fits in JSON, and no code is ever read from it.
"""

from __future__ import annotations

import dataclasses
import functools
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError

__all__ = ["Part", "check_plain", "from_config"]

#: The rooms whose parts are known by name before anybody has opened them.
ROOMS = (
    "decoders",
    "detectors",
    "domains",
    "losses",
    "polytopes",
    "rates",
    "regularizers",
    "tasks",
)


class Part:
    """Base of all parts: knows its registered name and its configuration.

    >>> import driftline as dl
    >>> dl.tasks.Multiclass(3).config()
    {'type': 'tasks.Multiclass', 'classes': 3}
    """

    registry: ClassVar[dict[str, type[Part]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Part.registry[cls.part_name()] = cls

    @classmethod
    def part_name(cls) -> str:
        """Room and class for our own parts, the full dotted name for others'."""
        package, *inner = cls.__module__.split(".")
        if package == "driftline" and inner:
            return f"{inner[0]}.{cls.__qualname__}"
        return f"{cls.__module__}.{cls.__qualname__}"

    def config(self) -> dict[str, Any]:
        """Return the part as plain data: its name and its fields."""
        fields = {name: _plain(getattr(self, name)) for name in self.field_names()}
        return {"type": self.part_name(), **fields}

    @classmethod
    @functools.cache
    def field_names(cls) -> tuple[str, ...]:
        """Return what the part is made from."""
        fields: Any = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
        return tuple(field.name for field in fields)


def check_plain(part: Part) -> None:
    """Refuse a part that plain data cannot hold: one with a function in it, or in its parts."""
    for name in part.field_names():
        value = getattr(part, name, None)
        if isinstance(value, Part):
            check_plain(value)
        elif callable(value):
            raise InputError(
                f"{type(part).__name__} has a function as {name!r}: it cannot be written to a "
                "file, nor copied"
            )


def from_config(config: Any) -> Any:
    """Rebuild what :meth:`Part.config` wrote.

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
    cls = Part.registry.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InputError(
            f"no part is registered under the name {name!r}; "
            "import the module that defines it before loading"
        )
    known = cls.field_names()
    if unknown := sorted(set(fields) - set(known)):
        raise InputError(f"{name} has no field {unknown[0]!r}; it has {list(known)}")
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
