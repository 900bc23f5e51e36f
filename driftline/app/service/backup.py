"""Backups of a folder of the service: taken while the service runs, checked when they are restored.

A backup is a folder with the log, the snapshots that the log names, and the digests of all of them.
All are read under one transaction, so that the log is that of one moment; since records are deleted
only up to snapshots that the log names, log and snapshots together have everything.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from driftline import files
from driftline.app.service.log import LogFailedError, SqliteLog
from driftline.app.service.log_file import opened_for_reading
from driftline.app.service.machine import Machine
from driftline.app.service.served import served_from
from driftline.app.service.server import LOG, SNAPSHOTS, clock_of, load
from driftline.app.service.snapshots import NAME, SnapshotFolder
from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["Content", "back_up", "restore"]

ABOUT = "backup.json"
FORMAT = 1
COUNTS = """
select count(*), coalesce(max(seq), 0), coalesce(sum(kind=1 and model not in (
    select model from log where kind=9)), 0) from log"""
#: How often files are looked up anew that the service has replaced just then.
TRIES = 20


class Content(NamedTuple):
    """What a backup has: how many records up to which one, and how many models."""

    records: int
    seq: int
    models: int


def back_up(folder: Path, target: Path) -> Content:
    """Copy the folder of a service, which may be running, to a new folder.

    Snapshots that are lost are left out: a restore says what that means for their models.
    """
    if not (folder / LOG).is_file():
        raise InputError(f"{folder} is no folder of a service: it has no {LOG}")
    with _draft(target) as draft, _reading(folder / LOG) as log:
        before: list[str] = []
        for _ in range(TRIES):
            named, there = _copied_snapshots(log, folder, draft)
            if there == named or named == before:  # what is missing twice, nobody has replaced
                break
            before = named
            log.execute("rollback")
            log.execute("begin")
        else:
            raise InputError(f"the snapshots of {folder} change too fast: try again")
        copy = apsw.Connection(str(draft / LOG))
        with copy.backup("main", log, "main") as steps:
            steps.step(-1)
        if (found := copy.execute("pragma quick_check").get) != "ok":
            raise InputError(f"the log of {folder} is damaged: {found:.200}")
        content = Content(*map(int, next(iter(copy.execute(COUNTS)))))
        copy.close()
        names = [LOG, *(f"{SNAPSHOTS}/{name}" for name in there)]
        about: Json = {"format": FORMAT, "content": content._asdict()}
        about["files"] = {name: _synced(draft / name) for name in names}
        files.replace(draft / ABOUT, json.dumps(about, indent=1).encode())
    return content


def restore(backup: Path, folder: Path) -> tuple[Content, list[str]]:
    """Check a backup, and copy it to a new folder for a service; return what is wrong with models.

    The check compares digests, looks into the log, and computes all models as the service would.
    """
    about = _about(backup)
    with _draft(folder) as draft:
        for name, digest in about["files"].items():
            if _copied(backup / name, draft / name) != digest:
                raise InputError(f"{backup / name} is not as it was when it was backed up")
        found = _check(draft)
        for end in ("", "-wal", "-shm"):  # the check may have written to the log
            files.disk.remove(draft / f"{LOG}{end}")
        _copied(backup / LOG, draft / LOG)
        for name in about["files"]:
            _synced(draft / name)
    return Content(**about["content"]), found


def _check(folder: Path) -> list[str]:
    """Compute all models of a folder; return why some are out of service, or refuse the log."""
    try:
        log = SqliteLog(folder / LOG)
        try:
            machine = Machine(log, load, clock_of(log))
            machine.recover(SnapshotFolder(folder / SNAPSHOTS, log, served_from))
            return [str(own.refusal) for own in machine.quarantined.values()]
        finally:
            log.close()
    except (apsw.Error, LogFailedError) as error:
        raise InputError(f"the log of the backup cannot be read: {error}") from error


def _about(backup: Path) -> Json:
    """Return what a backup says of itself; names of files are those of a service, and no others."""
    try:
        about: Json = json.loads((backup / ABOUT).read_bytes())
        names, content = list(about["files"]), Content(**about["content"])
    except FileNotFoundError:
        raise InputError(f"{backup} is no backup: it has no {ABOUT}") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{backup / ABOUT} cannot be read: {error!r:.200}") from error
    wanted = re.compile(f"{re.escape(LOG)}|{SNAPSHOTS}/{NAME.pattern}")
    wrong = [name for name in names if not wanted.fullmatch(name)]
    if about.get("format") != FORMAT or wrong or LOG not in names:
        raise InputError(f"{backup / ABOUT} is of another version, or names other files: {wrong}")
    return {**about, "content": content._asdict()}


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Yield an empty folder that only its owner reads; it gets the target's name at the end."""
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(beside, fcntl.LOCK_EX)  # another backup to this place has the same draft
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target} is there already: name a new folder, or move it away")
        with _made(target) as draft:
            yield draft
    finally:
        os.close(beside)


@contextmanager
def _made(target: Path) -> Iterator[Path]:
    """Yield the draft of a folder, which gets the folder's name at the end, or is deleted."""
    draft = files.draft_of(target)
    shutil.rmtree(draft, ignore_errors=True)
    (draft / SNAPSHOTS).mkdir(mode=0o700, parents=True)
    draft.chmod(0o700)
    try:
        yield draft
        files.disk.sync_folder(draft / SNAPSHOTS)
        files.disk.sync_folder(draft)
        files.disk.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    files.disk.sync_folder(target.parent)


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    """Yield a connection with a transaction in which the log stays as it is."""
    connection = opened_for_reading(path)
    try:
        connection.execute("begin")
        yield connection
    except apsw.BusyError as error:
        raise InputError(
            f"{path} is locked: its service was started on a full disk, and nobody else can read "
            "the log until there is space"
        ) from error
    except apsw.Error as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    finally:
        connection.close()


def _copied_snapshots(
    log: apsw.Connection, folder: Path, draft: Path
) -> tuple[list[str], list[str]]:
    """Copy the snapshots that the log names now; return these names, and those that are there.

    What is not there was deleted just then, and a newer state of the log names a newer file; or it
    is lost, and its model is made of another one, or is out of service.
    """
    named = [name for (name,) in log.execute("select file from snapshots order by file")]
    for path in (draft / SNAPSHOTS).iterdir():
        path.unlink()
    there = []
    for name in named:
        with suppress(FileNotFoundError):
            _copied(folder / SNAPSHOTS / name, draft / SNAPSHOTS / name)
            there.append(name)
    return named, there


def _copied(source: Path, target: Path) -> str:
    """Copy a file that only its owner reads; return its digest."""
    made = hashlib.sha256()
    with source.open("rb") as content:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as out:
            while part := content.read(1 << 20):
                made.update(part)
                out.write(part)
    return made.hexdigest()


def _synced(path: Path) -> str:
    """Wait until a file is on the disk; return its digest."""
    path.chmod(0o600)
    with path.open("rb") as content:
        files.disk.sync(content.fileno())
        return hashlib.file_digest(content, "sha256").hexdigest()
