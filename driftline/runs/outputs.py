"""What a run leaves behind in its folder."""

from __future__ import annotations

import csv
import filecmp
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.reports import write_report
from driftline.runs.journal import Journal
from driftline.runs.model import Model
from driftline.runs.reading import Rounds
from driftline.runs.run import Learned, Run
from driftline.runs.telling import story_of

__all__ = ["MODEL", "Outputs", "PredictionFile", "drafted"]

MODEL, JOURNAL, PREDICTIONS = "model.driftline", "journal.driftline", "predictions.csv"
SUMMARY, TRACE, REPORT = "summary.json", "trace.npz", "report.html"


class PredictionFile:
    """Predictions as CSV, a line a round: its number, the label, the prediction, the loss.

    Without labels there are only numbers and predictions. ``first`` is the number of the first
    round to come.
    """

    def __init__(self, file: Any, model: Model, labelled: bool, first: int = 1):
        self.labels, self.labelled, self.next = model.encoder.labels, labelled, first
        self._writer = csv.writer(file, lineterminator="\n")

    def begin(self) -> None:
        """Write the names of the columns."""
        more = ["label", "prediction", "loss"] if self.labelled else ["prediction"]
        self._writer.writerow(["round", *more])

    def go_on(self, path: Path) -> None:
        """Write all that is in another file, but for rounds that are still to come."""
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                number = row[0] if row else ""
                if not (number.isdecimal() and int(number) >= self.next):
                    self._writer.writerow(row)

    def write(self, predictions: Any, rounds: Rounds, losses: Any = None) -> None:
        """Write some rounds."""
        numbers = range(self.next, self.next + rounds.played)
        said = self.labels.shown(predictions)
        if self.labelled:
            truth = self.labels.shown(rounds.labels)
            shown = [f"{loss:g}" for loss in np.round(losses, 6).tolist()]
            self._writer.writerows(zip(numbers, truth, said, shown, strict=True))
        else:
            self._writer.writerows(zip(numbers, said, strict=True))
        self.next += rounds.played


class Outputs:
    """The folder of a run: predictions as they come, all else at the end.

    Files are drafts until they are saved: what was in the folder before stays until then, and for
    good if the run fails. Leaving the context takes away what was not saved.

    Parameters
    ----------
    folder
        Made if it is not there.
    model
        What learns.
    resume
        The file that the model goes on from. If it is the one in the folder, predictions and
        journal are continued; a folder of another run is refused.
    """

    def __init__(self, folder: Path, model: Model, resume: Path | None = None):
        self.folder, self.model, self.resumed = folder, model, resume is not None
        if resume is not None:
            self._refuse_others(resume)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be made: {error.strerror}") from error
        self._file: Any = None
        self._predictions: PredictionFile | None = None

    def _refuse_others(self, resume: Path) -> None:
        """Refuse to go on among the files of another model."""
        model = self.folder / MODEL
        there = model.exists() or (self.folder / PREDICTIONS).exists()
        if there and not (model.exists() and filecmp.cmp(model, resume, shallow=False)):
            raise InputError(
                f"{self.folder} holds another run than {resume} goes on from: name another folder "
                "by --out"
            )

    def journal(self) -> Journal | None:
        """Return the journal to go on from, if there is one."""
        path = self.folder / JOURNAL
        return Journal.load(path) if self.resumed and path.exists() else None

    def add(self, rounds: Rounds, learned: Learned) -> None:
        """Write down some rounds, which the model has just learned from."""
        if self._predictions is None:
            self._predictions = self._opened(first=self.model.rounds - rounds.played + 1)
        self._predictions.write(learned.trace.prediction, rounds, learned.trace.target_loss)

    def _opened(self, first: int) -> PredictionFile:
        """Return a draft of the predictions, with those in it that are continued."""
        path = self.folder / PREDICTIONS
        self._file = draft_of(path).open("w", encoding="utf-8", newline="")
        made = PredictionFile(self._file, self.model, True, first)
        if self.resumed and path.exists():
            made.go_on(path)
        else:
            made.begin()
        return made

    def save(self, run: Run) -> Path:
        """Write what was learned, and what has happened so far; return where the model is."""
        files = [self.folder / name for name in (PREDICTIONS, JOURNAL, MODEL)]
        self._file.close()
        run.journal.save(draft_of(files[1]))
        run.model.save(draft_of(files[2]))
        for path in files:
            os.replace(draft_of(path), path)
        return files[2]

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            with suppress(OSError):  # the disk may be full
                self._file.close()
        for name in (PREDICTIONS, JOURNAL, MODEL):
            draft_of(self.folder / name).unlink(missing_ok=True)

    def finish(self, run: Run, summary: dict[str, Any], trace: bool) -> list[Path]:
        """Write everything else; return all files."""
        files = [self.folder / name for name in (PREDICTIONS, MODEL, JOURNAL)]
        if trace and run.kept is not None and run.kept.traces:
            files.append(run.kept.trace().save(self.folder / TRACE))
        path = self.folder / SUMMARY
        path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        report = write_report(story_of(run, summary), self.folder / REPORT)
        return [*files, path, report]


@contextmanager
def drafted(path: Path) -> Iterator[Any]:
    """Open a file to write to; it is there in whole, or as it was before.

    What is no file, such as a pipe, is written to at once.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    path = path.resolve()
    draft = draft_of(path)
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def draft_of(path: Path) -> Path:
    """Return where a file is written before it is whole.

    >>> draft_of(Path("out/predictions.csv")).name
    'predictions.csv.part'
    """
    return path.with_name(f"{path.name}.part")
