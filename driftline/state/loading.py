"""Learners, committees and estimators from files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from driftline.errors import DAMAGE, InputError
from driftline.files import path_of
from driftline.state import archive
from driftline.typing import Json

__all__ = [
    "DAMAGE",
    "learner_from",
    "load",
    "loaded",
    "member_from",
    "member_kind",
    "register",
    "single_kind",
]

#: The classes that a file may hold, and their packages, which are imported when needed.
KINDS = {
    "OGD": "learner",
    "Column": "members",
    "Forest": "members",
    "NaiveBayes": "members",
    "Neighbours": "members",
    "River": "members",
    "Tables": "members",
    "Bandit": "bandit",
    "Clicks": "bandit",
    "LossOnly": "bandit",
    "Committee": "committee",
    "DriftClassifier": "estimators",
    "DriftMultilabelClassifier": "estimators",
    "DriftOrdinalClassifier": "estimators",
    "DriftRanker": "estimators",
    "DriftTagger": "estimators",
    "SetLevel": "sets",
    "Keyed": "keyed",
}

#: Learners of users' own, by the names of their classes, once these were imported.
OWN: dict[str, type] = {}

#: The rooms whose learners may be members of a committee.
MEMBERS = ("learner", "members")

#: The rooms of learners that are no committees.
SINGLE = (*MEMBERS, "bandit")


def load(path: str | Path, *, model: Any = None) -> Any:
    """Return the learner, the committee, the estimator or the model of a table in a file.

    It goes on with the same bits as one that never stopped. Parts are found by their registered
    names: modules that define your own parts must be imported before. No code is read from the
    file, and a file that is damaged, edited or of another format is refused.

    A file has the name of a model of another library, and not the model: that is to be passed again
    as ``model``, a list of them where there are several.

    >>> import tempfile
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=200, flips=1, seed=0)
    >>> learner = dl.OGD(dl.losses.Logistic(stream.task))
    >>> _ = learner.run(stream.inputs[:100], stream.labels[:100])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = dl.load(learner.save(f"{folder}/model"))
    >>> rest = stream.inputs[100:], stream.labels[100:]
    >>> bool((again.run(*rest).loss == learner.run(*rest).loss).all())
    True
    """
    about, arrays = archive.read(path_of(path))
    try:
        about = archive.filled(about, path, model)
    except RecursionError as error:
        raise InputError(f"{path} is damaged or was edited: {error}") from error
    if "table" in about:  # of the command line: it knows columns by name
        return import_module("driftline.app.runs").TableModel.from_saved(path, about, arrays)
    return loaded(path, about, arrays)


def member_kind(name: object) -> Any:
    """Return the class of a committee's members with this name, if there is one."""
    if not isinstance(name, str) or not (name in OWN or KINDS.get(name) in MEMBERS):
        raise InputError(f"there are no members of the kind {name!r:.80}")
    return _kind(name)


def single_kind(name: object) -> Any:
    """Return the class of single learners with this name, if there is one."""
    if not isinstance(name, str) or not (name in OWN or KINDS.get(name) in SINGLE):
        raise InputError(f"there are no learners of the kind {name!r:.80}")
    return _kind(name)


def member_from(about: Json, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the member from what ``to_saved`` returned."""
    return member_kind(about.get("kind")).from_saved(about, arrays)


def learner_from(about: Json, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the single learner or the committee from what ``to_saved`` returned."""
    if about.get("kind") == "Committee":
        return _kind("Committee").from_saved(about, arrays)
    return single_kind(about.get("kind")).from_saved(about, arrays)


def _kind(name: str) -> Any:
    if name in OWN:
        return OWN[name]
    return getattr(import_module(f"driftline.{KINDS[name]}"), name)


def register(kind: type) -> None:
    """Let files and audits find a class of learners by its name, unless that is one of ours."""
    if kind.__name__ not in KINDS:
        OWN[kind.__name__] = kind


def loaded(path: str | Path, about: Json, arrays: dict[str, np.ndarray]) -> Any:
    """Return the learner from the content of a file."""
    kind = str(about.get("kind"))
    if kind not in KINDS and kind not in OWN:
        known = sorted(KINDS | OWN)
        raise InputError(f"{path} holds {about.get('kind')!r}: expected one of {known}")
    try:
        return _kind(kind).from_saved(about, arrays)
    except InputError as error:
        raise InputError(f"{path} is not a model that can be loaded: {error}") from error
    except DAMAGE as error:
        raise InputError(f"{path} is damaged or was edited: {error!r}") from error
