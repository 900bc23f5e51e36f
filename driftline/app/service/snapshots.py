"""States of models in files, each after some record of the log."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from driftline import files
from driftline.app.service.hosted import Hosted
from driftline.app.service.log import GENERATIONS, Generation, SqliteLog
from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Saved

__all__ = ["Known", "SnapshotFolder", "covered_by", "due"]

#: The snapshots of every model, the newest first.
Known: TypeAlias = Mapping[int, Sequence[Generation]]

NAME = re.compile(r"model-\d+-\d+-\d\.snapshot")


def due(
    known: Known, models: Mapping[int, Hosted], until: int
) -> tuple[dict[int, str], list[tuple[int, Generation]]]:
    """Return which models need a file, with the name of their newest one, and which files hold on.

    A model that has not changed gets a second file of the same state, and both then hold up to the
    record ``until``: else its older one would keep all records that came since.
    """
    files, hold = {}, []
    for number, hosted in models.items():
        newest, *older = known.get(number) or [Generation("", 0, -1)]
        same = [own for own in (newest, *older) if own.batch == hosted.batch]
        if newest.seq < hosted.seq or len(same) < GENERATIONS:
            files[number] = newest.file
        if newest.seq < until:
            hold += [(number, own._replace(seq=until)) for own in same]
    return files, hold


def covered_by(
    known: Known, models: Iterable[int], verified: Callable[[str], bool], last: int
) -> int:
    """Return the record up to which the older snapshots of all models hold, 0 if one is missing.

    Without any model nothing is needed up to the last record.
    """
    oldest = []
    for number in models:
        several = known.get(number, ())[:GENERATIONS]
        if len(several) < GENERATIONS or not all(verified(own.file) for own in several):
            return 0
        oldest.append(several[-1].seq)
    return min(oldest, default=last)


class SnapshotFolder:
    """Files in a folder, some generations for each model; the log says which of them are good.

    A file is written, synced and read back before the log names it, and an older one is deleted
    only after that. Files have a digest: in place of a damaged one the generation before it is
    loaded, or the log is read from its beginning.
    """

    def __init__(self, folder: Path, log: SqliteLog, load: Callable[..., Any]):
        self.folder, self._log, self._load = folder, log, load
        #: What was found wrong when they were loaded.
        self.findings: list[str] = []
        #: Files of which a model was made, by this process: records before them may be deleted.
        self.verified: set[str] = set()
        #: Files of which none could be made: the models are written again, if they are in service.
        self.damaged: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)

    def load(self) -> list[tuple[Hosted, int]]:
        """Return the last good state of every model, and the record up to which it holds."""
        return [made for own in self._log.snapshots().items() if (made := self._loaded(*own))]

    def _loaded(self, model: int, known: Sequence[Generation]) -> tuple[Hosted, int] | None:
        for generation in known:
            try:
                hosted = self._read(generation.file)
                if hosted.number != model:
                    raise InputError(f"it is that of model {hosted.number}")
            except Exception as error:  # whatever a damaged file does, the log has everything
                said = f"{generation.file} cannot be used, and an older state is: {error!r:.300}"
                self.findings.append(said)
                self.damaged.add(generation.file)
            else:
                return hosted, generation.seq
        return None

    def _read(self, name: str) -> Hosted:
        hosted = Hosted.from_saved(*archive.read(self.folder / name), self._load)
        self.verified.add(name)
        return hosted

    def verify(self, names: Iterable[str]) -> None:
        """Make a model of each file, and note those of which one can be made."""
        for name in names:
            try:
                self._read(name)
            except Exception as error:
                print(f"{name} cannot be used: {error!r:.300}", file=sys.stderr, flush=True)
                self.damaged.add(name)

    def write(self, saved: Saved, seq: int, former: str = "") -> Generation:
        """Write a state that holds up to a record, beside that of a former generation."""
        number, (_, batch, _) = saved[0]["number"], saved[0]["at"]
        slot = int(former.endswith("-0.snapshot"))
        name = f"model-{number}-{seq}-{slot}.snapshot"
        archive.write(self.folder / name, *saved)
        archive.read(self.folder / name)  # as it is on the disk, by its digest
        self.damaged.discard(name)
        return Generation(name, batch, seq)

    def sweep(self) -> None:
        """Delete all files but those that the log names."""
        names = {own.file for several in self._log.snapshots().values() for own in several}
        old = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        files.remove(*(path for path in old if path.name not in names))
        self.verified &= names
        self.damaged &= names
