"""Models by the name of a learner, and from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from driftline.app.runs.committee_model import CommitteeModel
from driftline.app.runs.keyed_model import KeyedModel
from driftline.app.runs.model import Model
from driftline.app.tables import Encoder
from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Json

__all__ = ["load_model", "model_from", "new_model"]


def new_model(
    name: str,
    encoder: Encoder,
    seed: int | None = 0,
    coverage: float | None = None,
    start: str | None = None,
) -> Model:
    """Return a new model, by the name of its learner; with sets that have this coverage.

    Where rows have keys it has a learner for each, which begins as ``start`` says.
    """
    if encoder.key is None:
        if start is not None:
            raise InputError(
                "--start says how keys begin: name their column by --key, or leave it out"
            )
        return CommitteeModel.new(name, encoder, seed, coverage)
    if coverage is not None:
        raise InputError("--sets does not go with --key yet: leave one of them out")
    return KeyedModel.new(name, encoder, seed, start)


def load_model(path: str | Path) -> Model:
    """Read what :meth:`Model.save` wrote, or refuse the file."""
    return model_from(path, *archive.read(path))


def model_from(path: str | Path, about: Json, arrays: dict[str, np.ndarray]) -> Model:
    """Return the model from the content of a file."""
    if "table" not in about or about.get("kind") not in ("Committee", "Keyed"):
        raise InputError(
            f"{path} does not know the columns of a table: expected a model written by "
            "driftline run"
        )
    if about["kind"] == "Keyed":
        return KeyedModel.from_saved(path, about, arrays)
    return CommitteeModel.from_saved(path, about, arrays)
