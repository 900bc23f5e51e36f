"""All codecs of labels, by what ``--task`` calls them."""

from __future__ import annotations

from dataclasses import replace

from driftline.app.tables.given import GivenRows
from driftline.app.tables.labels.classes import ClassCodec
from driftline.app.tables.labels.codec import FirstLabels, LabelCodec
from driftline.app.tables.labels.grades import GradeCodec
from driftline.app.tables.labels.levels import LevelCodec
from driftline.app.tables.labels.tags import TagCodec
from driftline.app.tables.options import Options
from driftline.app.tables.piece import Piece, Table
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["CODECS", "codec_from_config", "guess_codec"]

CODECS: dict[str, type[LabelCodec]] = {
    codec.kind: codec for codec in (ClassCodec, TagCodec, LevelCodec, GradeCodec)
}


def guess_codec(
    table: Table | GivenRows, head: Piece, names: list[str], query: str | None, options: Options
) -> LabelCodec:
    """Return the codec for label columns from their first values, or refuse these."""
    kind = options.task
    if kind is None:
        kind = "tags" if len(names) > 1 else "classes" if query is None else "ranking"
        kind = "levels" if options.levels else kind
    texts = head.texts(table.columns.index(names[0]))
    first = FirstLabels(table.name, names, texts, len(head))
    return CODECS[kind].guess(first, replace(options, query=query))


def codec_from_config(config: Json) -> LabelCodec:
    """Return a codec from plain data."""
    kind = config["kind"]
    if kind not in CODECS:
        raise InputError(f"a task is one of {', '.join(CODECS)}; not {kind!r}")
    return CODECS[kind].from_config(config)
