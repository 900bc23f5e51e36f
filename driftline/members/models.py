"""Models of other libraries that learn and predict a row at a time: what is asked of them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.inputs import refuse

__all__ = ["Absent", "asked", "check_model", "copied", "row_of"]


class Absent:
    """Stands for a model until a state brings it."""

    def learn_one(self, x: object, y: object) -> None:
        """Refuse to learn."""
        raise InputError("a state has to bring the model first")

    def predict_one(self, x: object) -> None:
        """Refuse to predict."""
        raise InputError("a state has to bring the model first")


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
