"""One of several classes, of which new ones may come at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from driftline.app.tables.labels.codec import FirstLabels, LabelCodec, canonical
from driftline.app.tables.options import Options
from driftline.app.tables.values import is_date
from driftline.errors import InputError
from driftline.tasks import Abstaining, Multiclass, Task
from driftline.typing import CheckedLabels, Json

__all__ = ["ClassCodec"]

#: A column with more classes is hardly one of classes.
MOST_CLASSES = 1000
#: More whole numbers than these look like a quantity, not like classes.
MOST_NUMBERS = 50


class ClassCodec(LabelCodec):
    """Classes by their names; the next new one gets the next number.

    Parameters
    ----------
    names
        The one label column.
    values
        The classes known so far, as written.
    whole
        Whether classes are whole numbers: then 1.0 is 1.
    abstain
        The cost of no answer, which is shown as an empty text; None for an answer to every row.

    Examples
    --------
    >>> codec = ClassCodec(["plan"], ["free", "pro"])
    >>> codec.code("pro"), codec.code("team"), codec.show([2, 0])
    (1, 2, ['team', 'free'])
    """

    kind, loss_name, unit = "classes", "mistakes", "mistakes"
    counts, grows, balances, abstains = True, True, True, True

    values: list[str]

    def __init__(
        self,
        names: Sequence[str],
        values: Sequence[str] = (),
        whole: bool = False,
        abstain: float | None = None,
    ):
        super().__init__(names)
        self.abstain = abstain
        if abstain is not None:
            self.loss_name, self.unit = f"cost ({abstain:g} for no answer)", "cost"
        if len(self.names) > 1:
            raise InputError(f"{self.kind} need one label column, not {len(self.names)}")
        self.values, self.whole = list(values), whole
        self._codes = {value: code for code, value in enumerate(self.values)}

    @classmethod
    def guess(cls, first: FirstLabels, options: Options) -> Self:
        """Return a codec of the classes seen, in sorted order, unless they look like no classes."""
        column, distinct = f"{first.table}: column {first.names[0]!r}", first.distinct
        many = not first.whole or len(distinct) > MOST_NUMBERS
        if first.numeric and many and options.task is None:
            raise InputError(
                f"{column} looks like a quantity to predict, with {len(distinct)} different "
                f"numbers such as {', '.join(distinct[:3])}; driftline predicts classes, tags, "
                "levels and rankings: name the label column by --label, or say --task classes if "
                "these are classes"
            )
        if distinct and all(map(is_date, distinct)):
            raise InputError(f"{column} has dates: name the label column by --label")
        if len(distinct) > MOST_CLASSES:
            raise InputError(
                f"{column} has {len(distinct)} different labels in {first.rows} rows: name the "
                "label column by --label"
            )
        # Sorted, so that the order says nothing about which label comes first.
        if first.whole:
            numbers = sorted({int(float(text)) for text in distinct})
            return cls(first.names, [str(value) for value in numbers], True, options.abstain)
        return cls(first.names, sorted(distinct), False, options.abstain)

    @property
    def task(self) -> Task:
        """The task. There are always two classes, though the second may have no name yet."""
        task = Multiclass(max(2, len(self.values)))
        return task if self.abstain is None else Abstaining(task, self.abstain)

    def code(self, text: str) -> int:
        """Return the number of a class, the next one if it is new."""
        value = canonical(text, self.whole)
        code = self._codes.get(value)
        return self._new(value) if code is None else code

    def place(self, text: str) -> int:
        """Return the number of a class that is known, -1 for any other text."""
        return self._codes.get(canonical(text, self.whole), -1)

    def _new(self, value: str) -> int:
        if len(self.values) >= MOST_CLASSES:
            raise InputError(
                f"more than {MOST_CLASSES} different labels: is it the right column? Name another "
                "by --label"
            )
        self._codes[value] = len(self.values)
        self.values.append(value)
        return self._codes[value]

    def forget(self, count: int) -> None:
        """Know only the first ``count`` classes: a rollback, where rows were refused."""
        super().forget(count)
        del self.values[count:]
        self._codes = {value: code for code, value in enumerate(self.values)}

    def show(self, labels: CheckedLabels) -> list[str]:
        """Return the names of classes; that of no answer is empty."""
        return ["" if name is None else name for name in self.named(labels)]

    def named(self, labels: CheckedLabels) -> list[str | None]:
        """Return the names of classes, and None for no answer."""
        names = self.values + ["(other)"] * (2 - len(self.values))
        return [None if code is None or code < 0 else names[code] for code in labels]

    def config(self) -> Json:
        """Return all as plain data."""
        made = {"kind": self.kind, "names": self.names, "values": self.values, "whole": self.whole}
        return made if self.abstain is None else made | {"abstain": self.abstain}

    @classmethod
    def from_config(cls, config: Json) -> Self:
        """Return the codec that :meth:`config` was asked of."""
        names, values = list(map(str, config["names"])), list(map(str, config["values"]))
        return cls(names, values, bool(config["whole"]), config.get("abstain"))
