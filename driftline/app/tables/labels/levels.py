"""One of several levels in order, all of them known beforehand."""

from __future__ import annotations

from typing import Self

from driftline.app.tables.labels.classes import ClassCodec
from driftline.app.tables.labels.codec import FirstLabels, canonical, check_length, few
from driftline.app.tables.options import Options
from driftline.errors import InputError
from driftline.tasks import Ordinal, Task

__all__ = ["LevelCodec"]


class LevelCodec(ClassCodec):
    """Levels by their names, from the lowest to the highest.

    >>> LevelCodec(["grade"], ["low", "middle", "high"]).code("high")
    2
    """

    kind, loss_name, unit = "levels", "distance", "loss"
    grows, abstains = False, False

    @classmethod
    def guess(cls, first: FirstLabels, options: Options) -> Self:
        """Return a codec of the levels that were named, or of whole numbers in their order."""
        if options.levels:
            values = [canonical(level, first.whole) for level in options.levels]
            check_length(max(values, key=len))
            return cls(first.names, list(dict.fromkeys(values)), first.whole)
        if not first.whole or len(first.distinct) < 2:
            raise InputError(
                f"levels of column {first.names[0]!r} are no whole numbers, or only one: name "
                "them, from the lowest to the highest, as in --levels low,middle,high"
            )
        numbers = sorted({int(float(text)) for text in first.distinct})
        return cls(first.names, [str(value) for value in numbers], True)

    @property
    def task(self) -> Task:
        """The task, with as many levels as were named."""
        return Ordinal(len(self.values))

    def _new(self, value: str) -> int:
        raise InputError(
            f"{value[:40]!r} is none of the levels {few(self.values)}: name all levels, from "
            "the lowest to the highest, by --levels"
        )
