"""Models of other libraries that learn and predict a row at a time: what is asked of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from driftline.errors import InputError
from driftline.inputs import refuse
from driftline.state.loading import learner_from
from driftline.typing import Json, Saved

__all__ = ["Absent", "Given", "asked", "check_model", "copied", "row_of"]


class Absent:
    """Stands for a model until a state brings it."""

    def learn_one(self, x: object, y: object) -> None:
        """Refuse to learn."""
        raise InputError("a state has to bring the model first")

    def predict_one(self, x: object) -> None:
        """Refuse to predict."""
        raise InputError("a state has to bring the model first")


class Given:
    """A model that is asked row by row: a function, a fitted estimator, or a learner.

    Rows are arrays, as the caller gave them; ``classes`` are the model's names of classes 0, 1, ...
    Where it raises, or predicts anything else, it predicts nothing.

    >>> Given(lambda row: "b" if row[0] > 0.0 else "a", ["a", "b"]).predict_one({0: 0.5})
    1
    """

    def __init__(self, model: Any, classes: Sequence[Any], sign: bool = False):
        self.model, self.sign = model, sign
        names = [own.item() if isinstance(own, np.generic) else own for own in classes]
        for own in names:
            if not isinstance(own, str | int | float):
                raise InputError(f"classes= are texts, numbers or booleans, not {own!r:.80}")
        self.codes = {label: code for code, label in enumerate(names)}
        #: Whether it learns; an estimator predicts many rows at once.
        self.learns = hasattr(model, "learn_row")
        self.many = not self.learns and hasattr(model, "predict")

    def predict_one(self, x: dict[int, float]) -> Any:
        """Return the code of what is predicted, or None."""
        row = np.array([x[j] for j in range(len(x))] if 0 in x else list(x.values()))
        try:
            if self.many:
                made = self.model.predict(row[np.newaxis])[0]
            else:
                made = self.model.predict(row) if self.learns else self.model(row)
            code = self.codes[made.item() if isinstance(made, np.generic) else made]
        except Exception:  # of somebody else's code: there is no prediction
            return None
        return bool(code) if self.sign else code

    def learn_one(self, x: dict[int, float], y: int, w: float = 1.0) -> None:
        """Let a learner learn; other models stay as they are."""
        if self.learns:
            names = list(self.codes)
            self.model.learn_row(np.array(list(x.values())), names[int(y)])

    def to_saved(self) -> Saved:
        """Return all as plain data and arrays, but for a model that is no learner."""
        about: Json = {"classes": list(self.codes), "sign": self.sign}
        if not self.learns:
            return about | {"model": self.model}, {}
        learner, arrays = self.model.to_saved()
        return about | {"learner": learner}, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the object from what :meth:`to_saved` returned."""
        inside = "learner" in about
        model = learner_from(about["learner"], arrays) if inside else about.get("model")
        if not (inside or callable(model) or hasattr(model, "predict")):
            raise InputError(f"expected a fitted estimator or a function, not {model!r:.80}")
        return cls(model, about["classes"], about["sign"] is True)


def row_of(rows: Any, t: int) -> dict[int, float]:
    """Return a row as River has them, if it is finite."""
    columns, values = rows.entries(t)
    if not np.isfinite(values).all():
        refuse(rows, t)
    numbers = range(rows.features) if isinstance(columns, slice) else columns.tolist()
    return dict(zip(numbers, values.tolist(), strict=True))


def asked(model: Any, x: dict[int, float]) -> Any:
    """Return the chances of classes, or that of the one that is predicted: empty if none is."""
    if hasattr(model, "predict_proba_one"):
        try:
            return model.predict_proba_one(x)
        except NotImplementedError:  # some models of River only predict
            pass
    label = model.predict_one(x)
    return {} if label is None else {label: 1.0}


def check_model(model: Any) -> None:
    """Refuse what does not learn and predict as models of River do."""
    methods = [m for m in ("learn_one", "predict_proba_one", "predict_one") if hasattr(model, m)]
    if isinstance(model, type) or methods[:1] != ["learn_one"] or len(methods) < 2:
        raise InputError(
            "expected a classifier with learn_one and predict_one, such as "
            f"river.tree.HoeffdingTreeClassifier(), not {model!r:.80}"
        )


def copied(model: Any) -> Any:
    """Return a copy of a model, or refuse it."""
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise InputError(
            f"the model {type(model).__name__} cannot be copied: {error!r:.80}"
        ) from error
