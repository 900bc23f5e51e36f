"""The file of the log: who may read it, its tables, and what happens on a full disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw

from driftline import files
from driftline.errors import InputError

__all__ = ["is_full", "make_private", "opened", "opened_for_reading"]

#: The version of the tables. A file of another one is refused.
FORMAT = 2
#: How SQLite says that its index of the write-ahead log finds no space.
NO_INDEX = (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMOPEN)

TABLES = """
create table if not exists meta(key text primary key, value) without rowid;
create table if not exists log(
    seq integer primary key, batch integer not null, at integer not null,
    model integer not null, kind integer not null, id text not null, body blob not null);
create table if not exists ids(
    model integer not null, id text not null, asked integer not null, told integer not null,
    row blob not null, label blob not null, primary key(model, id)) without rowid;
create table if not exists stored(
    seq integer not null, learner integer not null, answer blob not null, kept blob not null,
    primary key(seq, learner)) without rowid;
create table if not exists snapshots(
    model integer not null, file text not null, batch integer not null, seq integer not null,
    primary key(model, file)) without rowid;
create table if not exists gone(
    model integer not null, key blob not null, at integer not null,
    primary key(model, key)) without rowid;
create index if not exists models on log(model) where kind in (1, 9);
create table if not exists positions(source text primary key, position text not null) without rowid;
"""


def make_private(path: Path) -> list[str]:
    """Create the file, or take the rights of others from it; return what was found wrong.

    SQLite gives the files beside it the same mode.
    """
    found = []
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for end in ("", "-wal", "-shm"):
            own = path.with_name(path.name + end)
            if own.exists() and (mode := stat.S_IMODE(own.stat().st_mode)) & 0o077:
                own.chmod(0o600)
                found.append(
                    f"{own} could be read by others (mode {mode:o}), and has mode 600 now: it "
                    "holds all rows and the secret of tokens"
                )
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror}") from error
    return found


def opened(
    path: Path, synchronous: str = "FULL", vfs: str | None = None, alone: bool = False
) -> apsw.Connection:
    """Open the file for writing; ``alone``, nothing beside it is needed, nor written yet."""
    made = _connected(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, vfs)
    try:
        if alone or vfs is not None:
            made.execute("pragma locking_mode=exclusive").fetchall()
        version = made.execute("pragma user_version").get
        if version not in (0, FORMAT):
            raise InputError(
                f"{path} is of version {version}, and this driftline knows {FORMAT}: install a "
                "newer one"
            )
        if not alone:
            _set_up(made, path, synchronous, new=not version)
        elif not version:
            raise InputError(f"{path} cannot be made: the disk is full")
    except apsw.NotADBError as error:
        made.close()
        raise InputError(f"{path} is no log of driftline: {error}") from error
    except BaseException:
        made.close()
        raise
    return made


def opened_for_reading(path: Path) -> apsw.Connection:
    """Open the file for reading only."""
    return _connected(path, apsw.SQLITE_OPEN_READONLY, None)


def is_full(error: apsw.Error) -> bool:
    """Say whether a disk without space is the reason."""
    return isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) in NO_INDEX


def _connected(path: Path, flags: int, vfs: str | None) -> apsw.Connection:
    try:
        made = apsw.Connection(str(path), flags=flags, vfs=vfs)
    except apsw.CantOpenError as error:
        raise InputError(f"{path} cannot be opened: {error}") from error
    made.set_busy_timeout(10_000)
    return made


def _set_up(connection: apsw.Connection, path: Path, synchronous: str, new: bool) -> None:
    run = connection.execute
    # A new file gets its write-ahead log by way of a rollback journal. If the deletion of that
    # were lost with the power, it would roll everything back: EXTRA syncs the folder, too.
    run("pragma synchronous=extra").fetchall()
    run("pragma journal_mode=wal").fetchall()
    files.disk.sync_folder(path.parent)
    run(f"pragma synchronous={synchronous}").fetchall()
    run("pragma foreign_keys=off").fetchall()
    run("pragma temp_store=memory").fetchall()
    if new:
        with connection:
            run(TABLES)
            run(f"pragma user_version={FORMAT}")
