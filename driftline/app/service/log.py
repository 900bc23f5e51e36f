"""The log: records in the order in which they are applied, in one SQLite file.

A commit is durable when it returns: write-ahead log, ``synchronous=FULL``. One connection writes;
others only read. SQLite comes with the package ``apsw``, so that its version is known: the one of
many distributions has a bug in the write-ahead log that was mended in 3.51.3.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw

from driftline.app.service.batch import Batch
from driftline.app.service.log_file import is_full, make_private, opened, opened_for_reading
from driftline.app.service.records import EXPIRED, Kind, Mark, Record, Stored

__all__ = ["GENERATIONS", "DiskFullError", "Generation", "Log", "LogFailedError", "SqliteLog"]

#: How many snapshots of a model are kept: records are deleted up to the oldest of them.
GENERATIONS = 2
#: Seconds after which a log that was opened on a full disk is opened for writing again.
RETRY = 1.0

#: The latest time that a record can have: one after it is damaged.
LATEST = 1 << 53

#: How many records are read at a time.
PIECE = 2_000

#: The columns of a record, with an id that may be no text.
BYTES = "seq, batch, at, model, kind, cast(id as blob), body"

#: Kinds of records whose id is that of a row; that of others is a name.
ROWS = (Kind.ASK, Kind.TELL, Kind.LEARN)

#: The first records that may be deleted: a model's first stays as long as the model, a row (2)
#: until its label is in snapshots, or that it was forgotten, and the last record for ever, which
#: says how the next one is numbered. Ids of deleted models are not there.
OLD = """
select l.seq, l.model, l.kind, l.id from log l
left join ids i on l.kind=2 and i.model=l.model and i.id=l.id
where l.seq<=? and l.at<? and l.seq<(select max(seq) from log) and case
    when l.seq=l.model then l.model in (select model from log where kind=9)
    when l.kind=2 then i.told is null or (i.told>0 and i.told<=?) or (i.told=-1 and not ?)
    else 1 end
order by l.seq limit ?"""

#: An answer and a ticket of a record may be written one after the other, and again in a replay.
STORE = """
insert into stored values(?,?,?,?) on conflict(seq, learner) do update set
    answer=case length(excluded.answer) when 0 then answer else excluded.answer end,
    kept=case length(excluded.kept) when 0 then kept else excluded.kept end"""


def _key(id: str) -> bytes:
    return hashlib.blake2b(id.encode(), digest_size=8).digest()


def _record(row: Any) -> Record:
    seq, batch, at, model, kind, id, body = row
    if not isinstance(at, int) or not 0 <= at <= LATEST:
        at, kind = 0, Kind.DAMAGED
    try:
        return Record(seq, batch, at, model, Kind(kind), id, body)
    except ValueError:  # the disk has changed it
        return Record(seq, batch, at, model, Kind.DAMAGED, id, body)


def _decoded(row: Any) -> Any:
    """Return a row of the log whose id was read as bytes; if these are no text, it is damaged."""
    *before, kind, id, body = row
    try:
        return *before, kind, id.decode(), body
    except UnicodeDecodeError:
        return *before, Kind.DAMAGED, id.decode(errors="replace"), body


class DiskFullError(Exception):
    """There is no space for more records: nothing was written."""


class LogFailedError(Exception):
    """The disk failed: what is on it is unknown, and only a restart can tell."""


class Generation(NamedTuple):
    """A snapshot of a model: the file of its state after a batch.

    The state is the model's up to the record ``seq``, which may be later than the batch.
    """

    file: str
    batch: int
    seq: int


class Log(Protocol):
    """What the machine needs of a log. If the disk has failed, it raises ``LogFailedError``."""

    #: The record up to which records were deleted, 0 for none.
    trimmed: int
    #: The time before which ids of deleted records may have been forgotten, 0 for none.
    forgotten: int
    #: How many records were deleted by this process.
    deleted: int

    def append(self, entries: Batch) -> None:
        """Write a batch; when this returns, it is on the disk. If it raises, nothing is."""
        ...

    def find(self, model: int, id: str) -> Mark | None:
        """Return what is known of an id."""
        ...

    def stored(self, seq: int) -> list[Stored]:
        """Return what learners answered to a record, if that was written."""
        ...

    def read(self, after: int = 0) -> Iterator[Record]:
        """Yield all records after one, by its seq."""
        ...

    def body(self, seq: int) -> bytes | None:
        """Return the body of a record, None if it is no longer there."""
        ...

    def last(self) -> tuple[int, int, int]:
        """Return the last seq, the last batch, and its time; zeros if there is none."""
        ...

    def waiting(self, model: int, before: int, most: int = 10_000) -> list[tuple[str, int]]:
        """Return the oldest ids without a label that were asked for before some time."""
        ...

    def time_of(self, seq: int) -> int | None:
        """Return when a record came, None if it is no longer there."""
        ...

    def created(self) -> dict[int, str]:
        """Return the names of models that were not deleted, by their numbers."""
        ...


class LogReader:
    """Reads records by a connection of its own."""

    def __init__(self, connection: apsw.Connection):
        self._connection = connection

    def read(self, after: int = 0) -> Iterator[Record]:
        """Yield the records after one that are there now, by its seq."""
        for piece in self.pieces(after, PIECE):
            yield from piece

    def pieces(self, after: int, most: int) -> Iterator[list[Record]]:
        """Yield the same, some at a time.

        Between two pieces nothing is being read. So whoever takes long holds up nothing: a read
        that goes on would keep the write-ahead log from being emptied. Records never change, and
        those that come later are left out; those that are deleted meanwhile are missing.
        """
        run = self._connection.execute
        until = run("select coalesce(max(seq), 0) from log").get
        some = "select {} from log where seq>? and seq<=? order by seq limit ?"

        def read() -> list[Any]:
            given = after, until, most
            try:
                return run(some.format("*"), given).fetchall()
            except UnicodeDecodeError:  # in any of them
                return [_decoded(row) for row in run(some.format(BYTES), given)]

        while rows := read():
            piece = [_record(own) for own in rows]
            after = piece[-1].seq
            yield piece

    def body(self, seq: int) -> bytes | None:
        """Return the body of a record, None if it is no longer there."""
        return self._connection.execute("select body from log where seq=?", (seq,)).get


class SqliteLog:
    """A log in a file.

    Parameters
    ----------
    path
        The file; it is made if it is not there.
    synchronous
        As SQLite calls it. ``FULL``, unless a test wants to see data lost.
    vfs
        The name of another layer below SQLite, for tests; it cannot share memory, so that there is
        one connection only.
    """

    def __init__(self, path: Path, synchronous: str = "FULL", vfs: str | None = None):
        self.path, self._vfs, self._synchronous = path, vfs, synchronous
        #: Of a model, the record up to which no row waits for its label.
        self._settled: dict[int, int] = {}
        #: What was found wrong when the file was opened.
        self.findings: list[str] = []
        #: Whether the disk was full then: the log is read, and opened again for the next batch.
        self.full, self._retry = False, 0.0
        if vfs is None:
            self.findings += make_private(path)
        try:
            self._write = opened(path, synchronous, vfs)
        except (apsw.FullError, apsw.IOError) as error:
            if not is_full(error):
                raise
            self._write, self.full = opened(path, alone=True), True
            self.findings.append(f"the disk is full: {path} is only read until there is space")
        #: The record up to which records were deleted, 0 for none.
        self.trimmed: int = self.meta("trimmed") or 0
        #: The time before which ids of deleted records may have been forgotten, 0 for none.
        self.forgotten: int = self.meta("forgotten") or 0
        #: How many records were deleted by this process.
        self.deleted = 0

    def _open_again(self) -> None:
        """Open the log for writing, if the disk has space by now; it was opened on a full disk."""
        if time.monotonic() < self._retry:
            raise DiskFullError("the disk was full when the log was opened")
        self._retry = time.monotonic() + RETRY
        self._write.close()
        try:
            self._write = opened(self.path, self._synchronous)
            self.full = False
        except (apsw.FullError, apsw.IOError) as error:
            self._write = opened(self.path, alone=True)
            if is_full(error):
                raise DiskFullError(str(error)) from error
            raise

    def _roll_back(self) -> None:
        if self._write.in_transaction:
            with suppress(apsw.Error):
                self._write.execute("rollback")

    # -- writing

    def append(self, entries: Batch) -> None:
        """Write a batch; when this returns, it is on the disk. If it raises, nothing is."""
        self._commit(lambda: self._insert(entries))

    def _insert(self, entries: Batch) -> None:
        many = self._write.executemany
        if entries.records:
            many("insert into log values(?,?,?,?,?,?,?)", entries.records)
        if entries.marks:
            rows = [(*key, *mark) for key, mark in entries.marks.items()]
            many("insert or replace into ids values(?,?,?,?,?,?)", rows)
        if entries.stored:
            many(STORE, entries.stored)
        if entries.positions:
            many("insert or replace into positions values(?,?)", entries.positions.items())
        for model in entries.dropped:
            for table in ("snapshots", "ids", "gone"):
                self._write.execute(f"delete from {table} where model=?", (model,))

    def _commit(self, work: Any) -> None:
        begun = False
        try:
            if self.full:
                self._open_again()
            self._write.execute("begin immediate")
            begun = True
            work()
            self._write.execute("commit")
        except apsw.FullError as error:
            self._roll_back()
            raise DiskFullError(str(error)) from error
        except apsw.IOError as error:
            raise LogFailedError(f"{self.path}: {error}") from error
        except BaseException as error:
            if begun and not self._write.in_transaction:  # who knows how it ended
                raise LogFailedError(f"{self.path}: {error!r}") from error
            self._roll_back()
            raise

    def put_snapshots(self, made: Sequence[tuple[int, Generation]]) -> None:
        """Remember the files of models' states; of each, the newest generations are remembered."""

        def work() -> None:
            rows = [(model, *own) for model, own in made]
            many = self._write.executemany
            many("insert or replace into snapshots values(?,?,?,?)", rows)
            known = self.snapshots()
            old = [(model, own.file) for model, _ in made for own in known[model][GENERATIONS:]]
            many("delete from snapshots where model=? and file=?", old)

        if made:
            self._commit(work)

    def drop_snapshots(self, model: int, damaged: Collection[str]) -> None:
        """Forget files of a model's state that cannot be used."""
        rows = [(model, own.file) for own in self.snapshots()[model] if own.file in damaged]
        statement = "delete from snapshots where model=? and file=?"
        if rows:
            self._commit(lambda: self._write.executemany(statement, rows))

    def trim(self, before: int, covered: int, forget: int, most: int = 5000) -> int:
        """Delete records that came before a time and are in snapshots; return how many.

        Rows that wait for their label stay, and whatever records after ``covered`` will read when
        they are applied again: rows of their labels, rows that they forget, and all that a
        challenger has read. Of the ids of others a digest is kept, so that these are known to be
        too old, until ``forget`` is later than ``before`` was when they were deleted. At most so
        many records are deleted at a time.
        """
        run = self._write.execute
        later = "select distinct kind from log where seq>? and kind in (?,?)"
        kinds = {kind for (kind,) in run(later, (covered, Kind.EXPIRE, Kind.CHALLENGE))}
        if Kind.CHALLENGE in kinds:
            return 0
        old: list[Any] = run(OLD, (covered, before, covered, Kind.EXPIRE in kinds, most)).fetchall()
        if not old:
            self._forget(forget)
            return 0
        trimmed = max(self.trimmed, old[-1][0])  # a row may have waited longer than later ones

        def work() -> None:
            many = self._write.executemany
            many("delete from log where seq=?", [(seq,) for seq, *_ in old])
            many("delete from stored where seq=?", [(seq,) for seq, *_ in old])
            named = [(model, str(id)) for _, model, kind, id in old if id and kind in ROWS]
            many("delete from ids where model=? and id=?", named)
            # not by the time of the record: a label may have come long after its row
            rows = [(model, _key(id), before) for model, id in named]
            many("insert or replace into gone values(?,?,?)", rows)
            run("insert or replace into meta values('trimmed', ?)", (trimmed,))

        self._commit(work)
        self.trimmed, self.deleted = trimmed, self.deleted + len(old)
        return len(old)

    def _forget(self, before: int) -> None:
        """Forget ids of records that were deleted for being older than a time before this one."""
        if not self._write.execute("select 1 from gone where at<? limit 1", (before,)).fetchone():
            return

        def work() -> None:
            self._write.execute("delete from gone where at<?", (before,))
            self._write.execute("insert or replace into meta values('forgotten', ?)", (latest,))

        latest = max(self.forgotten, before)
        self._commit(work)
        self.forgotten = latest

    def put_meta(self, key: str, value: Any) -> None:
        """Keep a value by name."""
        statement = "insert or replace into meta values(?,?)"
        self._commit(lambda: self._write.execute(statement, (key, value)))

    # -- reading

    def _rows(self, statement: str, given: Sequence[Any] = ()) -> list[Any]:
        """Return what a statement finds; an error of the disk is none of a model's."""
        try:
            return self._write.execute(statement, given).fetchall()
        except apsw.Error as error:
            raise LogFailedError(f"{self.path}: {error}") from error

    def _value(self, statement: str, given: Sequence[Any] = ()) -> Any:
        """Return the first cell of what a statement finds, None if that is nothing."""
        return next((row[0] for row in self._rows(statement, given)), None)

    def meta(self, key: str) -> Any:
        """Return a value that was kept by name, None if there is none."""
        return self._value("select value from meta where key=?", (key,))

    def find(self, model: int, id: str) -> Mark | None:
        """Return what is known of an id."""
        statement = "select asked, told, row, label from ids where model=? and id=?"
        for found in self._rows(statement, (model, id)):
            return Mark(*found)
        statement = "select 1 from gone where model=? and key=?"
        gone = self.trimmed and self._rows(statement, (model, _key(id)))
        return Mark(0, EXPIRED, b"", b"") if gone else None

    def stored(self, seq: int) -> list[Stored]:
        """Return what learners answered to a record, if that was written."""
        statement = "select seq, learner, answer, kept from stored where seq=?"
        return [Stored(*row) for row in self._rows(statement, (seq,))]

    def read(self, after: int = 0) -> Iterator[Record]:
        """Yield all records after one, by its seq; for who writes them."""
        yield from LogReader(self._write).read(after)

    def check_shared(self) -> None:
        """Refuse to let others read a log that was opened on a full disk."""
        if self.full:
            raise DiskFullError("the disk is full: nobody but the service can read its log")

    @contextmanager
    def reader(self) -> Iterator[LogReader]:
        """Return what any one thread may read records by, while others are written."""
        self.check_shared()
        alone = self._vfs is not None
        connection = self._write if alone else opened_for_reading(self.path)
        try:
            yield LogReader(connection)
        finally:
            if not alone:
                connection.close()

    def pieces(self, after: int, most: int) -> Iterator[list[Record]]:
        """Yield the records after one, some at a time; any thread may call it."""
        with self.reader() as reader:
            yield from reader.pieces(after, most)

    def last(self) -> tuple[int, int, int]:
        """Return the last seq, the last batch, and the last possible time; zeros for none."""
        for seq, batch in self._rows("select seq, batch from log order by seq desc limit 1"):
            statement = """
                select at from log where typeof(at)='integer' and at between 0 and ?
                order by seq desc limit 1"""
            return seq, batch, self._value(statement, (LATEST,)) or 0
        return 0, 0, 0

    def snapshots(self) -> dict[int, list[Generation]]:
        """Return the snapshots of every model, the newest first."""
        made: dict[int, list[Generation]] = {}
        for model, *rest in self._rows("select * from snapshots order by seq desc, file desc"):
            made.setdefault(model, []).append(Generation(*rest))
        return made

    def created(self) -> dict[int, str]:
        """Return the names of models that were not deleted, by their numbers."""
        statement = """
            select model, cast(id as blob) from log where seq=model
            and model not in (select model from log where kind=9)"""
        return {model: id.decode(errors="replace") for model, id in self._rows(statement)}

    def positions(self) -> dict[str, str]:
        """Return up to where streams were read."""
        return dict(self._rows("select * from positions"))

    def waiting(self, model: int, before: int, most: int = 10_000) -> list[tuple[str, int]]:
        """Return the oldest ids without a label that were asked for before some time.

        Records before the oldest of them are not read again by the next call.
        """
        statement = """
            select l.id, l.seq, l.at from log l join ids i on i.model=l.model and i.id=l.id
            where l.seq>? and l.model=? and l.kind=? and i.asked=l.seq and i.told=0
            order by l.seq limit ?"""
        given = (self._settled.get(model, 0), model, int(Kind.ASK))
        first = self._rows(statement, (*given, 1))
        self._settled[model] = first[0][1] - 1 if first else self.last()[0]
        if not first or first[0][2] >= before:
            return []
        return [(id, seq) for id, seq, at in self._rows(statement, (*given, most)) if at < before]

    def body(self, seq: int) -> bytes | None:
        """Return the body of a record, None if it is no longer there."""
        body: bytes | None = self._value("select body from log where seq=?", (seq,))
        return body

    def time_of(self, seq: int) -> int | None:
        """Return when a record came, None if it is no longer there."""
        at: int | None = self._value("select at from log where seq=?", (seq,))
        return at

    def size(self) -> int:
        """Return how many bytes the log takes."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Close the file."""
        self._write.close()
