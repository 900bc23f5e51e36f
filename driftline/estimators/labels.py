"""Labels of any kind, and their codes in the learner."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from driftline.errors import InputError
from driftline.typing import Json, Label

__all__ = ["Labels", "different"]

#: The most bytes that a label in a file may take.
LONGEST = 1 << 20


def different(values: npt.ArrayLike) -> np.ndarray:
    """Return the distinct classes among labels, sorted, or raise an InputError."""
    try:
        check_classification_targets(values)
        return np.unique(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{error}") from error


class Labels:
    """Classes as users name them, each with its code in the learner.

    The code of a class is its place in ``names``.

    >>> labels = Labels(["b", "c"]).more(["a", "b"])
    >>> labels.names, labels.sorted, labels.places
    (array(['b', 'c', 'a'], dtype='<U1'), array(['a', 'b', 'c'], dtype='<U1'), array([2, 0, 1]))
    >>> labels.codes(np.array(["a", "c"]))
    array([2, 1])
    """

    def __init__(self, names: npt.ArrayLike):
        self.names = np.asarray(names)
        self.places = np.argsort(self.names, kind="stable")
        self.sorted = self.names[self.places]
        if len(self.names) == 0 or (self.sorted[1:] == self.sorted[:-1]).any():
            raise InputError(f"expected different classes, 1 or more, but got {names!r}")
        numbers = self.names.dtype.kind in "iu"
        self._plain = numbers and np.array_equal(self.names, np.arange(len(self.names)))
        self._codes = {name: code for code, name in enumerate(self.names.tolist())}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.names)

    def code(self, label: Label) -> int | None:
        """Return the code of one label, None if it is not known."""
        return self._codes.get(label)

    def codes(self, values: np.ndarray) -> np.ndarray | None:
        """Return the codes of many labels, None if one is not known."""
        if self._plain and values.dtype.kind in "iu" and values.size:
            return values if 0 <= values.min() and values.max() < len(self) else None
        if (values.dtype.kind in "OU") != (self.names.dtype.kind in "OU"):
            return None
        found = np.minimum(np.searchsorted(self.sorted, values), len(self) - 1)
        return self.places[found] if (self.sorted[found] == values).all() else None

    def new(self, values: npt.ArrayLike) -> np.ndarray:
        """Return the labels that are not known, each once, in sorted order."""
        array = np.asarray(values)
        if array.size and (array.dtype.kind in "OU") != (self.names.dtype.kind in "OU"):
            raise InputError(
                f"labels like {array.flat[0]!r} do not go with those known before, like "
                f"{self.names[0]!r}"
            )
        return np.setdiff1d(array, self.names)

    def more(self, values: npt.ArrayLike) -> Labels:
        """Return labels with new ones at the end."""
        return Labels(np.concatenate([self.names, self.new(values)]))

    def to_plain(self) -> Json:
        """Return the names as plain data, or raise an InputError."""
        names = self.names.tolist()
        if not all(isinstance(name, (str, int, float, bool)) for name in names):
            raise InputError(f"only labels that are strings or numbers can be saved, not {names}")
        return {"names": names, "dtype": self.names.dtype.str}

    @classmethod
    def from_plain(cls, plain: Json) -> Labels:
        """Return the labels from what :meth:`to_plain` returned."""
        dtype, names = np.dtype(plain["dtype"]), plain["names"]
        simple = all(isinstance(name, (str, int, float, bool)) for name in names)
        if dtype.kind not in "OUiufb" or dtype.itemsize > LONGEST or not simple:
            raise InputError(f"labels are strings or numbers, not {names} of type {dtype}")
        return cls(np.array(names, dtype=dtype))
