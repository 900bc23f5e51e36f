"""What a run leaves behind in its folder."""

from __future__ import annotations

import csv
import json
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

__all__ = ["MODEL", "Outputs", "PredictionFile"]

MODEL, JOURNAL, PREDICTIONS = "model.driftline", "journal.driftline", "predictions.csv"
SUMMARY, TRACE, REPORT = "summary.json", "trace.npz", "report.html"


class PredictionFile:
    """Predictions as CSV, a line a round: its number, the label, the prediction, the loss.

    Without labels there are only numbers and predictions.
    """

    def __init__(self, file: Any, model: Model, labelled: bool, first: int = 1):
        self.labels, self.labelled, self.next = model.encoder.labels, labelled, first
        self._writer = csv.writer(file, lineterminator="\n")
        if first == 1:
            more = ["label", "prediction", "loss"] if labelled else ["prediction"]
            self._writer.writerow(["round", *more])

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

    Parameters
    ----------
    folder
        Made if it is not there.
    resumed
        Whether the run goes on from an earlier one: then predictions and journal in the folder
        are continued.
    """

    def __init__(self, folder: Path, model: Model, resumed: bool = False):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be made: {error.strerror}") from error
        self.folder, self.model, self.resumed = folder, model, resumed
        self._file: Any = None
        self._predictions: PredictionFile | None = None

    def _opened(self) -> PredictionFile:
        """Return the file of predictions; what is there already is kept until there are others."""
        path, first = self.folder / PREDICTIONS, 1
        if self.resumed and path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                first = max(1, sum(1 for _ in csv.reader(file)))
        self._file = path.open("a" if first > 1 else "w", encoding="utf-8", newline="")
        return PredictionFile(self._file, self.model, True, first)

    def journal(self) -> Journal | None:
        """Return the journal that is in the folder, if there is one."""
        path = self.folder / JOURNAL
        return Journal.load(path) if path.exists() else None

    def add(self, rounds: Rounds, learned: Learned) -> None:
        """Write down some rounds."""
        if self._predictions is None:
            self._predictions = self._opened()
        self._predictions.write(learned.trace.prediction, rounds, learned.trace.target_loss)

    def save(self, run: Run) -> Path:
        """Write what was learned, and what has happened so far; return where the model is."""
        if self._file is not None:
            self._file.close()
        run.journal.save(self.folder / JOURNAL)
        return run.model.save(self.folder / MODEL)

    def finish(self, run: Run, summary: dict[str, Any], trace: bool) -> list[Path]:
        """Write everything else; return all files."""
        files = [self.folder / name for name in (PREDICTIONS, MODEL, JOURNAL)]
        if trace and run.kept is not None and run.kept.traces:
            files.append(run.kept.trace().save(self.folder / TRACE))
        path = self.folder / SUMMARY
        path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        report = write_report(story_of(run, summary), self.folder / REPORT)
        return [*files, path, report]
