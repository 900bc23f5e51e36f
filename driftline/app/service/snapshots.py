"""States of models in files, each after some record of the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from driftline import files
from driftline.app.service.hosted import Hosted
from driftline.app.service.log import SqliteLog
from driftline.errors import InputError
from driftline.state import archive
from driftline.typing import Saved

__all__ = ["SnapshotFolder"]

NAME = re.compile(r"model-(\d+)-(\d+)\.snapshot")

#: Why a file may be of no use.
ERRORS = (OSError, InputError, KeyError, TypeError, ValueError)


class SnapshotFolder:
    """Files in a folder, one or two for each model; the log says which of them are good.

    A file is written and synced before the log names it, and an older one is deleted only after
    that. Files have a digest: a damaged one is left aside, and the log is read from further back.
    """

    def __init__(self, folder: Path, log: SqliteLog, load: Callable[..., Any]):
        self.folder, self._log, self._load = folder, log, load
        #: What was found wrong when they were loaded.
        self.findings: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[tuple[Hosted, int]]:
        """Return the last good state of every model, and the record up to which it holds."""
        known = self._log.snapshots().items()
        pairs = [(self._read(model, name), seq) for model, (_, seq, name) in known]
        return [(hosted, seq) for hosted, seq in pairs if hosted is not None]

    def _read(self, model: int, name: str) -> Hosted | None:
        try:
            hosted = Hosted.from_saved(*archive.read(self.folder / name), self._load)
            if hosted.number != model:
                raise InputError(f"it is that of model {hosted.number}")
            return hosted
        except ERRORS as error:
            self.findings.append(f"{name} cannot be used, and the log is read instead: {error}")
            return None

    def verify(self, name: str) -> bool:
        """Say whether a model can be made of a file: records before it may be deleted then."""
        try:
            Hosted.from_saved(*archive.read(self.folder / name), self._load)
        except ERRORS:
            return False
        return True

    def write(self, saved: Saved) -> str:
        """Write a state; return the name of its file."""
        about = saved[0]
        name = f"model-{about['number']}-{about['at'][0]}.snapshot"
        archive.write(self.folder / name, *saved)
        return name

    def sweep(self, kept: Mapping[int, tuple[int, int, str]]) -> None:
        """Delete all files but those that the log names."""
        names = {name for _, _, name in kept.values()}
        old = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        files.remove(*(path for path in old if path.name not in names))
