"""The log of a model for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from driftline.app.service.log import SqliteLog
from driftline.app.service.records import Kind, Record, packed_json, plain_json
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["exported", "write_parquet"]

NAMES = ("seq", "time", "kind", "id", "row", "label", "loss")
#: How many records are read and written at a time.
PIECE, PARQUET_PIECE = 500, 20_000


def exported(log: SqliteLog, model: int, after: int, form: str) -> Iterator[bytes]:
    """Yield the records of a model that are there now, after one, as CSV or as lines of JSON."""
    pieces = log.pieces(after, PIECE)
    first = next(pieces, [])  # before anything is sent: what comes from now on is left out
    if form == "csv":
        yield _csv([list(NAMES)])
    for records in chain([first], pieces):
        own = [_plain(record) for record in records if record.model == model]
        if own:
            yield _written(own, form)


def write_parquet(log: SqliteLog, model: int, after: int, path: Path) -> None:
    """Write the records of a model to a Parquet file; rows and labels are JSON."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(f"{error}: Parquet comes with the extra parquet") from error
    kinds = [pyarrow.int64(), pyarrow.timestamp("ms", "UTC"), *[pyarrow.string()] * 4]
    pairs = zip(NAMES, [*kinds, pyarrow.float64()], strict=True)
    schema = pyarrow.schema(list(pairs))
    with parquet.ParquetWriter(path, schema) as writer:
        for records in log.pieces(after, PARQUET_PIECE):
            piece = [record for record in records if record.model == model]
            if not piece:
                continue
            rows = [_plain(record) for record in piece]
            for row, record in zip(rows, piece, strict=True):
                row["time"] = datetime.fromtimestamp(record.at / 1000, UTC)
                for name in ("row", "label"):
                    if row.get(name) is not None:
                        row[name] = packed_json(row[name]).decode()
            columns = {name: [row.get(name) for row in rows] for name in NAMES}
            writer.write_table(pyarrow.table(columns, schema=schema))


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
