"""The log of a model for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime

from driftline.app.service.log import SqliteLog
from driftline.app.service.records import Kind, Record, packed_json, plain_json
from driftline.typing import Json

__all__ = ["exported"]

NAMES = ("seq", "time", "kind", "id", "row", "label", "loss")
#: How many records are written at a time.
PIECE = 500


def exported(log: SqliteLog, model: int, after: int, form: str) -> Iterator[bytes]:
    """Yield the records of a model, after one of them, as CSV or as lines of JSON."""
    if form == "csv":
        yield _csv([list(NAMES)])
    piece: list[Json] = []
    for record in log.read(after):
        if record.model == model:
            piece.append(_plain(record))
        if len(piece) == PIECE:
            yield _written(piece, form)
            piece = []
    if piece:
        yield _written(piece, form)


def _plain(record: Record) -> Json:
    moment = datetime.fromtimestamp(record.at / 1000, UTC)
    made: Json = {
        "seq": record.seq,
        "time": moment.isoformat(timespec="milliseconds"),
        "kind": record.kind.name.lower(),
        "id": record.id,
    }
    if record.kind is Kind.ASK:
        made["row"] = plain_json(record.body)
    elif record.kind is Kind.TELL:
        _, made["label"], made["loss"] = plain_json(record.body)
    elif record.kind is Kind.LEARN:
        made["row"], made["label"], made["loss"] = plain_json(record.body)
    return made


def _written(piece: list[Json], form: str) -> bytes:
    if form == "json":
        return b"".join(packed_json(own) + b"\n" for own in piece)
    return _csv([[_cell(own.get(name)) for name in NAMES] for own in piece])


def _cell(value: object) -> object:
    return packed_json(value).decode() if isinstance(value, (dict, list)) else value


def _csv(rows: list[list[object]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()
