"""A grade of every document, from which its query's documents are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from driftline.app.tables.labels.codec import FirstLabels, LabelCodec
from driftline.app.tables.options import Options
from driftline.app.tables.values import number
from driftline.errors import InputError
from driftline.tasks import NDCG, Task
from driftline.typing import CheckedLabels, Json

__all__ = ["GradeCodec"]


class GradeCodec(LabelCodec):
    """Grades from 0 to ``highest``; a ranking is shown by the ranks of its documents.

    >>> codec = GradeCodec(["grade"], highest=2)
    >>> codec.code("2.0"), codec.show([[1, 0, 2, -1]])
    (2, ['1 0 2'])
    """

    kind, loss_name, unit = "ranking", "1 - NDCG", "lost NDCG"
    numeric = True

    def __init__(self, names: Sequence[str], highest: int = 4):
        super().__init__(names)
        if len(self.names) > 1:
            raise InputError(f"a ranking needs one label column, not {len(self.names)}")
        self.highest = highest

    @classmethod
    def guess(cls, first: FirstLabels, options: Options) -> Self:
        """Return a codec up to the highest grade that was named, or seen and at least 4."""
        if options.query is None:
            raise InputError(
                "a ranking needs to know which rows belong together: name the column by --query"
            )
        seen = (int(v) for v in first.numbers if v is not None and 0 <= v < 2**31)
        return cls(first.names, options.highest or max([4, *seen]))

    @property
    def task(self) -> Task:
        """The task."""
        return NDCG(self.highest)

    def code(self, text: str) -> int:
        """Return a grade."""
        value = number(text)
        if value is None or not 0 <= value <= self.highest or value != int(value):
            raise InputError(
                f"expected a grade, a whole number from 0 to {self.highest}, but saw "
                f"{text[:40]!r}: say the highest one by --highest-grade"
            )
        return int(value)

    def show(self, labels: CheckedLabels) -> list[str]:
        """Return the ranks of each query's documents."""
        return [" ".join(str(rank) for rank in row if rank >= 0) for row in labels]

    def config(self) -> Json:
        """Return all as plain data."""
        return {"kind": self.kind, "names": self.names, "highest": self.highest}

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return the codec that :meth:`config` was asked of."""
        return cls(list(map(str, config["names"])), int(config["highest"]))
