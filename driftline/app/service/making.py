"""New models from what a request says of them."""

from __future__ import annotations

import re
from typing import Any

from driftline.app.runs import CommitteeModel, TableModel
from driftline.app.service.bodies import ChallengerBody, ModelBody
from driftline.app.service.sizes import COLUMNS, check_columns
from driftline.app.tables.columns import Column, Columns
from driftline.app.tables.encoder import Encoder
from driftline.app.tables.labels import codec_from_config
from driftline.app.tables.labels.classes import MOST_CLASSES
from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Json

__all__ = ["challenger_of", "checked_name", "model_of"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

KINDS = ("number", "flag", "amount")

#: What rows of guarded models call the prediction that is guarded.
GIVEN = "given"


def checked_name(name: str) -> str:
    """Return a name, if it can be one; it is never a path."""
    if not NAME.fullmatch(name):
        raise InputError(f"a name has up to 64 letters, digits and _.- only, not {name!r:.80}")
    return name


def model_of(body: ModelBody) -> bytes:
    """Return the file of a new model, from which nothing is learned yet."""
    if (body.rows is None) == (body.columns is None):
        raise InputError("say what columns hold by columns, or give some rows to guess it from")
    given: Json = {"learner": body.learner, "seed": body.seed, "coverage": body.coverage}
    names = [body.label] if isinstance(body.label, str) else body.label
    seen = body.columns or {name for row in body.rows or () for name in row}
    check_columns(len(set(seen) - set(names)))
    if body.guarded and GIVEN in {*names, *(body.columns or ())}:
        raise InputError(f"{GIVEN!r} is the prediction that is guarded: expected another name")
    if many := [
        k for k, own in body.options.items() if isinstance(own, list) and len(own) > COLUMNS
    ]:
        raise InputError(f"{many[0]!r:.80} is a list of {COLUMNS:,} texts at most")
    if body.rows is not None:
        aside = {*given, "cls", "rows", "label", "champion"}
        if wrong := [name for name in body.options if name in aside]:
            raise InputError(f"{wrong[0]} is no option: it stands beside the options")
        rows = body.rows
        if body.guarded:
            given, rows = given | {"champion": GIVEN}, [{GIVEN: None, **row} for row in rows]
        model = TableModel.new(rows, body.label, **given, **body.options)
    else:
        encoder = _encoder(body)
        model = TableModel(CommitteeModel.new(body.learner, encoder, body.seed, body.coverage))
    return _packed(model)


def _packed(model: TableModel) -> bytes:
    """Return the file of a model, with the id of its learner: it goes to the log, and a replay."""
    if model.key is None:
        model.learner._identify()
    return archive.packed(*model.to_saved())


def _encoder(body: ModelBody) -> Encoder:
    """Return an encoder for columns that are named."""
    options: dict[str, Any] = dict(body.options)
    kind, missing = options.pop("task", "classes"), options.pop("missing", "mean")
    values = options.pop("levels", None) if kind == "levels" else None
    if values is None:
        values = body.classes
    if not isinstance(values, list) or not all(isinstance(v, (str, int, float)) for v in values):
        raise InputError(f"levels are a list of texts, not {values!r:.80}")
    values = [str(value) for value in values]
    if len(set(values)) < len(values) or len(values) > MOST_CLASSES:
        raise InputError(f"classes and levels are different texts, {MOST_CLASSES} at most")
    if options:
        raise InputError(
            f"with columns, options are task, levels and missing; not {sorted(options)[0]!r:.80}"
        )
    names = [body.label] if isinstance(body.label, str) else list(body.label)
    if kind not in ("classes", "tags", "levels"):
        raise InputError(f"with columns, a task is classes, levels or tags; not {kind!r:.80}")
    columns = [_column(name, said) for name, said in (body.columns or {}).items()]
    if not columns:
        raise InputError("a model needs one column or more")
    if both := {column.name for column in columns} & set(names):
        raise InputError(f"{sorted(both)[0]!r} is a column and the label")
    config: Json = {"kind": kind, "names": names, "values": values}
    config |= {"whole": False, "numeric": False}
    try:
        codec = codec_from_config(config)
    except (KeyError, TypeError) as error:
        raise InputError(f"labels of {kind} need {error}") from error
    if body.guarded and kind != "classes":
        raise InputError(f"a guarded model is for classes, and the task is {kind}")
    return Encoder(Columns(columns, missing), codec, champion=GIVEN if body.guarded else None)


def _column(name: str, said: str | list[str]) -> Column:
    if isinstance(said, list):
        if len(set(said)) < len(said):
            raise InputError(f"column {name!r} names a text twice")
        return Column(name, "text", tuple(said))
    if said not in KINDS:
        raise InputError(
            f"column {name!r} is one of {', '.join(KINDS)}, or a list of texts; not {said!r:.80}"
        )
    return Column(name, said)


def challenger_of(model: TableModel, body: ChallengerBody) -> bytes:
    """Return the file of a learner for the same columns that has learned nothing yet."""
    return _packed(model.fresh(body.learner, body.seed))
