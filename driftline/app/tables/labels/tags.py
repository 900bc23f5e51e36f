"""Any number of tags, a column of 0 or 1 for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from driftline.app.tables.labels.codec import FirstLabels, LabelCodec, few
from driftline.app.tables.options import Options
from driftline.app.tables.values import FLAGS, number
from driftline.errors import InputError
from driftline.tasks import Multilabel, Task
from driftline.typing import CheckedLabels, Json

__all__ = ["TagCodec"]


class TagCodec(LabelCodec):
    """Tags by the names of their columns, shown as a list of those that are set.

    >>> codec = TagCodec(["red", "green", "blue"])
    >>> codec.code("true"), codec.show([[1, 0, 1], [0, 0, 0]])
    (1, ['red;blue', ''])
    """

    kind, loss_name = "tags", "wrong tags"

    @classmethod
    def guess(cls, first: FirstLabels, options: Options) -> Self:
        """Return a codec of the columns that were named."""
        return cls(first.names)

    @property
    def task(self) -> Task:
        """The task, a tag for every column."""
        return Multilabel(len(self.names))

    @property
    def outcomes(self) -> Sequence[str]:
        """Names of the tags."""
        return self.names

    def code(self, text: str) -> int:
        """Return 1 for a tag that is set."""
        value = FLAGS.get(text.strip().lower(), number(text))
        if value not in (0.0, 1.0):
            raise InputError(f"a tag is 0 or 1, true or false; but saw {text[:40]!r}")
        return int(value)

    def _joined(self, codes: np.ndarray) -> np.ndarray:
        return codes

    def show(self, labels: CheckedLabels) -> list[str]:
        """Return the names of all tags that are set."""
        return [";".join(n for n, c in zip(self.names, row, strict=True) if c) for row in labels]

    def named(self, labels: CheckedLabels) -> list[Any]:
        """Return lists of all tags that are set."""
        return [[n for n, c in zip(self.names, row, strict=True) if c] for row in labels]

    def cells(self, label: Any) -> Sequence[Any]:
        """Return a 0 or 1 for every tag, from a list of those that are set, a dict, or itself."""
        known = dict.fromkeys(self.names)
        if isinstance(label, Mapping):
            unknown = [name for name in label if name not in known]
            made: Sequence[Any] = [label.get(name, 0) for name in self.names]
        elif isinstance(label, str) or not isinstance(label, Iterable):
            raise InputError(f"expected a list of tags, but got {label!r:.80}")
        else:
            label = list(label)
            words = any(isinstance(tag, str) for tag in label) or len(label) != len(self.names)
            unknown = [t for t in label if not (isinstance(t, str) and t in known)] if words else []
            tags = {tag for tag in label if isinstance(tag, str)} if words else set()
            made = [int(name in tags) for name in self.names] if words else label
        if unknown:
            raise InputError(f"{unknown[0]!r:.80} is none of the tags {few(self.names)}")
        return made

    def config(self) -> Json:
        """Return all as plain data."""
        return {"kind": self.kind, "names": self.names}

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return the codec that :meth:`config` was asked of."""
        return cls(list(map(str, config["names"])))
