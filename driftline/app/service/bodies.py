"""What requests carry: JSON that is checked for types, lengths and depth while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from driftline.app.service.requests import RefusedError

__all__ = [
    "CELL",
    "ID",
    "ChallengerBody",
    "ChampionBody",
    "LabelBody",
    "LearnBody",
    "ModelBody",
    "PredictBody",
    "decoded",
]

#: The longest text of a cell, and of an id; the most cells of a row.
CELL, ID, CELLS = 10_000, 200, 100_000
#: The most label columns of a new model, and the most rows to guess its columns from.
CLASSES, ROWS = 1000, 10_000
#: The longest token.
TOKEN = 1 << 20

Text: TypeAlias = Annotated[str, Meta(max_length=CELL)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=ID)]
Cell: TypeAlias = Text | int | float | bool | None
Row: TypeAlias = (
    Annotated[dict[Text, Cell], Meta(max_length=CELLS)]
    | Annotated[list[Any], Meta(max_length=CELLS)]
)


class PredictBody(Struct, forbid_unknown_fields=True):
    """A row to predict. An id that is not given is made up."""

    row: Row
    id: Name | None = None


class LabelBody(Struct, forbid_unknown_fields=True):
    """What came of a prediction: a label, or the loss where a model learns from it.

    A token that came with the prediction comes back with the label.
    """

    id: Name
    label: Any = None
    loss: float | None = None
    token: Annotated[str, Meta(max_length=TOKEN)] = ""


class LearnBody(Struct, forbid_unknown_fields=True):
    """A row with its label. With an id it is learned from once, however often it comes."""

    row: Row
    label: Any
    id: Name | None = None


class ModelBody(Struct, forbid_unknown_fields=True):
    """A new model: columns and label by name, or rows to guess them from.

    ``columns`` says of every column what it holds: ``number``, ``flag``, ``amount``, or a list of
    the texts that have a weight of their own. A ``guarded`` model follows what a model of the
    client's predicts, which rows have as ``given``, the name of a label, while that is good.
    """

    name: Name
    label: Name | Annotated[list[Name], Meta(max_length=CLASSES)]
    columns: dict[Name, str | list[Text]] | None = None
    rows: Annotated[list[dict[Text, Cell]], Meta(max_length=ROWS)] | None = None
    classes: list[Text] = field(default_factory=list)
    learner: str = "auto"
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    coverage: float | None = None
    guarded: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class ChallengerBody(Struct, forbid_unknown_fields=True):
    """A learner that reads the same log as a model, from a record on."""

    name: Name
    learner: str = "auto"
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    after: Annotated[int, Meta(ge=0)] = 0


class ChampionBody(Struct, forbid_unknown_fields=True):
    """Which learner answers from now on."""

    learner: Name


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoded(content: bytes, kind: type[Any], most: int) -> tuple[Sequence[Any], bool]:
    """Return the bodies of a request, and whether it was a single one, outside of a list.

    >>> decoded(b'{"id": "a", "label": 1}', LabelBody, most=9)
    ([LabelBody(id='a', label=1, loss=None, token='')], True)
    """
    single = not content.lstrip()[:1] == b"["
    wanted: Any = kind if single else list[kind]  # type: ignore[valid-type]
    decoder = _decoders.get(wanted)
    if decoder is None:
        decoder = _decoders[wanted] = msgspec.json.Decoder(wanted)
    try:
        made = decoder.decode(content)
    except msgspec.ValidationError as error:
        raise RefusedError(422, f"the request is not as expected: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(400, f"the request is no JSON: {error}") from None
    except RecursionError:
        raise RefusedError(400, "the request is nested too deep") from None
    if not single and len(made) > most:
        raise RefusedError(413, f"a request may have {most} rows, but this one has {len(made)}")
    return ([made] if single else made), single
