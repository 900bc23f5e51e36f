"""Classifiers for River; needs the extra ``river``.

Rows are dictionaries, and their features may come and go: one that is missing counts as 0, one that
is new gets weights of 0 when it is first learned from. Text is taken as a feature of its own for
every value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftline.tasks import Task
from driftline.typing import Label

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "driftline.integrations.river needs River: pip install 'river>=0.26'"
    ) from error

from driftline.committee import named
from driftline.committee.pooling import log_chances, tag_chances
from driftline.errors import InputError
from driftline.learner import checked_weights
from driftline.tasks import Multiclass, Multilabel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DriftClassifier", "DriftMultiLabelClassifier"]

Row = dict[Hashable, Any]


class _Columns:
    """Which feature stands where in a row."""

    def __init__(self) -> None:
        self.places: dict[Hashable, int] = {}

    def vector(self, x: Row, size: int) -> np.ndarray:
        """Return the features that are known as a row of this size."""
        out = np.zeros(size)
        places = self.places
        for name, value in x.items():
            if isinstance(value, str):
                name, value = (name, value), 1.0
            place = places.get(name)
            if place is not None:
                out[place] = _number(name, value)
        return out

    def learn(self, x: Row) -> None:
        """Give new features a place; those of one row by name, whatever their order is."""
        pairs = ((k, v) if isinstance(v, str) else k for k, v in x.items())
        new = [name for name in pairs if name not in self.places]
        for name in sorted(new, key=lambda name: (str(type(name)), str(name))):
            self.places[name] = len(self.places)


class _Online:
    """What both kinds share: a learner that grows with features and labels."""

    def __init__(self, learner: str = "auto", seed: int = 0):
        self.learner, self.seed = learner, seed
        self._columns, self._size = _Columns(), 0
        self._labels: dict[Hashable, int] = {}
        self._model: Any = None

    def _grow(self, rows: Iterable[Row], labels: Iterable[Hashable]) -> None:
        """Make room for features and labels that are new."""
        known, rows = len(self._columns.places), list(rows)
        for x in rows:  # refused before anything changes
            for name, value in x.items():
                if not isinstance(value, str):
                    _number(name, value)
        for x in rows:
            self._columns.learn(x)
        for label in labels:
            self._labels.setdefault(label, len(self._labels))
        count = max(1, len(self._columns.places))
        if self._model is None:
            self._model, self._size = named(self.learner, self._task(), seed=self.seed), count
        if count > self._size:
            self._size = max(count, int(1.5 * known))
            self._model = self._model.grown(features=self._size)
        if self._task() != self._model.task:
            self._model = self._model.grown(classes=len(self._labels))

    @property
    def _ready(self) -> bool:
        """Whether anything was learned; a first row that was refused makes a learner too."""
        return self._model is not None and self._model.rounds > 0

    def _task(self) -> Task:
        raise NotImplementedError


class DriftClassifier(_Online, base.MiniBatchClassifier):
    """Classes under drift, with nothing to set.

    Parameters
    ----------
    learner
        A name of :data:`driftline.committee.LEARNERS`; by default a committee.
    seed
        Of random decisions; the default learner takes none.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from driftline.integrations.river import DriftClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), DriftClassifier(), metrics.Accuracy())
    Accuracy: 90.79%
    """

    @property
    def _multiclass(self) -> bool:
        return True

    def _task(self) -> Multiclass:
        return Multiclass(max(2, len(self._labels)))

    def learn_one(self, x: Row, y: Hashable, w: float = 1.0) -> None:
        """Learn from one row and its class; a row of weight w counts w times."""
        y, weights = _plain(y), None if w == 1.0 else checked_weights([w], 1)
        if y not in self._labels or not self._knows(x):
            self._grow([x], [y])
        vector = self._columns.vector(x, self._size)
        if weights is None:
            self._model.step(vector, self._labels[y])
        else:
            self._model.learn_rows(vector[np.newaxis], [self._labels[y]], weights)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Return the probability of every class seen so far."""
        if not self._ready:
            return {}
        chances = self._chances(self._columns.vector(x, self._size)[np.newaxis])[0]
        return dict(zip(self._labels, chances.tolist(), strict=True))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: npt.ArrayLike | None = None) -> None:
        """Learn from a data frame of rows and a series of classes, in this order.

        A row of weight w counts w times.
        """
        rows, labels = X.to_dict("records"), [_plain(label) for label in y]
        weights = checked_weights(w, len(rows))
        first = {label: i for i, label in reversed(list(enumerate(labels)))}
        new = [i for label, i in first.items() if label not in self._labels]
        for start, stop in itertools.pairwise(sorted({0, *new, len(rows)})):  # as one by one
            self._grow(rows[start:stop], labels[start:stop])
            inputs = np.stack([self._columns.vector(x, self._size) for x in rows[start:stop]])
            codes = [self._labels[y] for y in labels[start:stop]]
            self._model.learn_rows(inputs, codes, None if weights is None else weights[start:stop])

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return a data frame with the probability of every class seen so far."""
        import pandas as pd

        if not self._ready:
            return pd.DataFrame(index=X.index)
        rows = [self._columns.vector(x, self._size) for x in X.to_dict("records")]
        chances = self._chances(np.stack(rows)) if rows else np.empty((0, len(self._labels)))
        return pd.DataFrame(chances, columns=list(self._labels), index=X.index)

    def _knows(self, x: Row) -> bool:
        places = self._columns.places
        return all(((k, v) if isinstance(v, str) else k) in places for k, v in x.items())

    def _chances(self, inputs: np.ndarray) -> np.ndarray:
        if len(self._labels) < 2:  # the learner has a class that nobody has named yet
            return np.ones((len(inputs), 1))
        chances = np.exp(log_chances(self._model, inputs))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


class DriftMultiLabelClassifier(_Online, base.MultiLabelClassifier):
    """Sets of labels under drift, with nothing to set.

    Parameters
    ----------
    learner
        A name of :data:`driftline.committee.LEARNERS`; by default a committee.
    seed
        Of random decisions; the default learner takes none.

    Examples
    --------
    >>> from driftline.integrations.river import DriftMultiLabelClassifier
    >>> model = DriftMultiLabelClassifier()
    >>> for i in range(50):
    ...     model.learn_one({"a": float(i % 2)}, {"odd": i % 2 == 1, "even": i % 2 == 0})
    >>> model.predict_one({"a": 1.0})
    {'odd': True, 'even': False}
    """

    def _task(self) -> Multilabel:
        return Multilabel(max(1, len(self._labels)))

    def learn_one(self, x: Row, y: dict[Hashable, bool]) -> None:
        """Learn from one row and its labels; a label that is not named is not there."""
        if not y and not self._labels:
            return  # nothing is known yet that could be there or not
        self._grow([x], y)
        tags = np.array([int(bool(y.get(label, False))) for label in self._labels])
        self._model.step(self._columns.vector(x, self._size), tags)

    def learn_many(self, X: pd.DataFrame, y: pd.DataFrame) -> None:
        """Learn from a data frame of rows and one of labels, in this order."""
        for x, labels in zip(X.to_dict("records"), y.to_dict("records"), strict=True):
            self.learn_one(x, labels)

    def predict_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return a data frame with every label seen so far, true or false."""
        import pandas as pd

        return pd.DataFrame([self.predict_one(x) for x in X.to_dict("records")], index=X.index)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Hashable, dict[bool, float]]:
        """Return the probability of every label seen so far."""
        if not self._ready:
            return {}
        yes, _ = tag_chances(self._model, self._columns.vector(x, self._size)[np.newaxis])
        pairs = zip(self._labels, np.exp(yes[0]).tolist(), strict=True)
        return {label: {False: 1.0 - chance, True: chance} for label, chance in pairs}


def _number(name: Hashable, value: Any) -> float:
    """Return the value of a feature, if it is a finite number."""
    try:
        made = float(value)
    except (TypeError, ValueError):
        made = math.nan
    if not math.isfinite(made):
        raise InputError(
            f"feature {name!r} is {value!r}: expected a finite number or a text; leave out what is "
            "missing"
        )
    return made


def _plain(label: Label) -> Hashable:
    """Return a label as Python has it, so that True and numpy's True are one."""
    return label.item() if isinstance(label, np.generic) else label
