"""Open a table, by the suffix of its name or by a given format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftline.app.tables.delimited import DelimitedTable
from driftline.app.tables.live import Follow
from driftline.app.tables.piece import Table
from driftline.errors import InputError

__all__ = ["FORMATS", "open_table"]

FORMATS = ("csv", "jsonl", "arff", "svmlight", "parquet")
#: Formats that are read line by line, so that a file can be followed.
FOLLOWED = ("csv", "jsonl")
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def open_table(
    path: str | Path,
    form: str | None = None,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
    comment: str | None = None,
    features: int | None = None,
    ignore: Sequence[str] = (),
    rows: int = 4096,
    marked: bool = False,
    follow: Follow = Follow.NO,
) -> Table:
    """Open a table for reading; ``form`` is one of csv, jsonl, arff, svmlight and parquet.

    By default the suffix of the name decides, before that of gzip; all else is CSV. ``features`` is
    the number of features in svmlight, if it cannot be found by a first pass; ``ignore`` are the
    columns of ARFF and JSON lines that may hold anything. ``marked`` is whether
    the table has positions, which needs a digest of everything that is read; ``follow`` is whether
    more rows are waited for at the end of the file.
    """
    if form is None:
        endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() != ".gz"]
        form = ENDINGS.get(endings[-1] if endings else "", "csv")
    if follow is not Follow.NO:
        _refuse_following(path, form)
    if form == "csv":
        return DelimitedTable(
            path,
            encoding=encoding,
            delimiter=delimiter,
            header=header,
            comment=comment,
            rows=rows,
            marked=marked,
            follow=follow,
        )
    options: dict[str, Any] = {"rows": rows, "marked": marked}
    if form == "jsonl":
        from driftline.app.tables.json_lines import JsonLinesTable

        return JsonLinesTable(path, encoding=encoding, ignore=ignore, follow=follow, **options)
    if form == "arff":
        from driftline.app.tables.arff import ArffTable

        return ArffTable(path, encoding=encoding, ignore=ignore, **options)
    if form == "svmlight":
        from driftline.app.tables.svmlight import SvmlightTable

        return SvmlightTable(path, features=features, **options)
    if form == "parquet":
        from driftline.app.tables.parquet import ParquetTable

        return ParquetTable(path, **options)
    raise InputError(f"a format is one of {', '.join(FORMATS)}; not {form!r}")


def _refuse_following(path: str | Path, form: str) -> None:
    """Refuse to follow what cannot be followed."""
    if form not in FOLLOWED:
        raise InputError(f"--follow is for CSV and JSON lines, but {path} is {form}: leave it out")
    if str(path) == "-" or not Path(path).is_file():
        name = "standard input" if str(path) == "-" else path
        raise InputError(
            f"--follow is for files, and {name} is none: rows of a pipe are taken as they come, "
            "leave it out"
        )
