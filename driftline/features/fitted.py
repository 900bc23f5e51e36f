r"""A transformer that was fitted elsewhere, in front of a learner.

.. math:: \phi(x) = \text{transform}(x)

Anything with a method ``transform`` that takes an array of rows, such as those of scikit-learn. It
is called with one row at a time: then what a row becomes depends on no other, and steps have the
bits of runs, which products of matrices do not have in batches of another size. That is slow, with
scikit-learn 0.1 to 1.5 milliseconds a row: where a map of this library does, prefer it.

Files hold plain data, and a transformer is code: what is saved is its name. In another process the
transformer has to be given again under its name before a learner is loaded. The first row that was
mapped, and what became of it, are saved too, so that another transformer is found out. In memory a
name brings its transformer along, so that copies and audits do not depend on what was given since.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np

from driftline.errors import InputError
from driftline.features.base import MOST, Map, Mapper
from driftline.inputs.dense import DenseRows
from driftline.inputs.rows import Rows, refuse
from driftline.parts import check_whole
from driftline.state.arena import Field

__all__ = ["Fitted"]

#: How far numbers may be from those of another machine, as a share of the largest.
SAME = 1e-6


class _Name(str):
    """A name that knows its transformer; in a file or a pickle it is a text."""

    __slots__ = ("transformer",)
    transformer: Any

    def __deepcopy__(self, memo: object) -> _Name:
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class Fitted(Map):
    """A transformer that is fitted already, such as one of scikit-learn, for dense rows.

    A copy of it is kept, so that fitting the original again changes nothing.

    Parameters
    ----------
    transformer
        An object with ``transform``. Without one, that which was given last under the name.
    name
        What the transformer is called in files. Before a learner is loaded in another process,
        ``Fitted(transformer, name)`` has to be made there again.
    columns
        How many features it makes; asked of the transformer by default.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> rows = np.random.default_rng(0).standard_normal((50, 6))
    >>> part = Fitted(PCA(2).fit(rows), "two components")
    >>> part.transform(rows).shape
    (50, 2)
    """

    _made_from = ("name", "columns")
    dense_only = True

    #: The transformer that was given last under each name.
    known: ClassVar[dict[str, Any]] = {}

    def __init__(self, transformer: Any = None, name: str = "", columns: int | None = None):
        if not isinstance(name, str) or not name:
            raise InputError(
                "a fitted transformer needs a name, by which files ask for it, such as "
                f"Fitted(transformer, name='prices'), not {name!r:.80}"
            )
        if columns is not None:
            check_whole("the number of columns", columns, 1, MOST)
        self.name, self.columns = _Name(name), columns
        self.transformer = _found(name) if transformer is None else _frozen(transformer)
        self.outputs = _outputs(self.transformer) if columns is None else columns
        self.name.transformer = self.transformer
        if transformer is not None:
            self.known[str(name)] = self.transformer

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fitted) or self.transformer is not other.transformer:
            return False
        return self.config() == other.config()

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        """Name the kind of transformer."""
        return f"Fitted({type(self.transformer).__name__}, name={self.name!r})"

    def mapper(self) -> FittedMapper:
        """Return a mapper that has seen no rows."""
        return FittedMapper(self)

    def width(self, features: int) -> int:
        """Count what the transformer makes."""
        return self.outputs

    def fields(self, features: int, sparse: bool) -> tuple[Field, ...]:
        """Keep the first row that was learned from, and what became of it."""
        known = Field("known", least=0.0, most=1.0, whole=True)
        return known, Field("row", ("features",)), Field("mapped", (self.outputs,))

    def check(self, state: Any, features: int) -> None:
        """Refuse the state of a transformer that makes something else of the first row."""
        if not state.known:
            return
        mapped, made = state.mapped, self.one(state.row, "the first row that was mapped")
        if not np.abs(made - mapped).max() <= SAME * max(1.0, np.abs(mapped).max()):
            raise InputError(
                f"{self!r} makes something else of the first row than was made of it: it is "
                "another transformer, or was fitted again; give the one that was used"
            )

    def check_features(self, features: int) -> None:
        """Refuse rows of another length than the transformer was fitted on, if it says so."""
        expected = getattr(self.transformer, "n_features_in_", features)
        if features != expected:
            raise InputError(
                f"{self!r} is for {expected} features, but rows have {features}: fit another one, "
                "and start a learner with it"
            )

    def one(self, row: np.ndarray, where: str) -> np.ndarray:
        """Return what the transformer makes of one row, if that is a row of finite numbers."""
        try:
            made = self.transformer.transform(row[np.newaxis].copy())
        except Exception as error:
            raise InputError(f"{where}: {self!r} raised {type(error).__name__}: {error}") from error
        if hasattr(made, "tocsr"):
            raise InputError(
                f"{self!r} made a sparse matrix: expected an array, as by sparse_output=False"
            )
        try:
            array = np.array(made, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: {self!r} made no numbers: {error}") from error
        if array.shape != (1, self.outputs):
            raise InputError(
                f"{where}: {self!r} made an array of shape {array.shape}: expected "
                f"{(1, self.outputs)}"
            )
        if not np.isfinite(array).all():
            bad = int(np.argmin(np.isfinite(array[0])))
            raise InputError(
                f"{where}: {self!r} made {array[0, bad]} as feature {bad}: expected finite numbers"
            )
        return array[0]


class FittedMapper(Mapper):
    """Calls the transformer, and remembers the first row and what became of it."""

    part: Fitted

    def mapped(
        self, rows: Rows, start: int, stop: int, learning: np.ndarray | None
    ) -> tuple[DenseRows, np.ndarray]:
        """Map rows one by one; the very first that is learned from is remembered."""
        if not isinstance(rows, DenseRows):
            raise InputError(f"{self.part!r} is for dense rows: give an array, as by .toarray()")
        state = self.begun(rows)
        (array,) = rows.arrays(start, stop)
        made = np.empty((len(array), self.part.outputs))
        for t, row in enumerate(array):
            if not np.isfinite(row).all():
                refuse(rows, start + t)
            alone = rows.before + rows.rounds == 1
            made[t] = self.part.one(row, "the input" if alone else f"row {rows.before + start + t}")
        if learning is not None and learning.any() and not state[0]:
            first = int(np.argmax(learning))
            state = np.r_[1.0, array[first], made[first]]
        return DenseRows(made), state

    def remember(self, rows: Rows) -> None:
        """Remember the first row, if these have it."""
        if self.features is None or not self.state[0] or rows.rounds > 1:
            self.piece(rows, 0, rows.rounds)


def _found(name: str) -> Any:
    """Return the transformer of this name: its own, or the one that was given last."""
    if isinstance(name, _Name):
        return name.transformer
    if name not in Fitted.known:
        raise InputError(
            f"no transformer is known as {name!r}: files hold its name alone, so make "
            f"dl.features.Fitted(transformer, name={name!r}) with the one that was used, and try "
            "again"
        )
    return Fitted.known[name]


def _frozen(transformer: Any) -> Any:
    """Return a copy of a transformer, which nobody else fits again."""
    if isinstance(transformer, type) or not callable(getattr(transformer, "transform", None)):
        raise InputError(
            "expected a fitted transformer with a method transform, such as PCA(2).fit(rows), not "
            f"{transformer!r:.80}"
        )
    try:
        return copy.deepcopy(transformer)
    except Exception as error:
        raise InputError(
            f"{transformer!r:.80} cannot be copied, and so not be kept as it is: {error!r:.80}"
        ) from error


def _outputs(transformer: Any) -> int:
    """Return how many features a transformer makes: by their names, or of a row of zeros."""
    found = ""
    for count in (
        lambda: len(transformer.get_feature_names_out()),
        lambda: transformer.transform(np.zeros((1, transformer.n_features_in_))).shape[1],
    ):
        try:
            return int(count())
        except Exception as error:
            found = found or f"{type(error).__name__}: {error!s:.80}"
    raise InputError(
        f"{transformer!r:.80} does not say how many features it makes: fit it first, or give "
        f"columns= ({found})"
    )
