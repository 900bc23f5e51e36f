"""The output files of a run, and the order in which they are written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftline import files
from driftline.app.runs.audit_buffer import AuditBuffer
from driftline.app.runs.audit_file import AuditFile, save_inputs
from driftline.app.runs.checkpoint import Audit, Checkpoint, Extent
from driftline.app.runs.keyed_model import KeyedModel
from driftline.app.runs.lock import Lock
from driftline.app.runs.model import Played
from driftline.app.runs.predictions import PredictionFile
from driftline.app.runs.reading import Position, Rounds
from driftline.app.runs.run import Run
from driftline.app.runs.schedule import Schedule
from driftline.app.runs.start import MODEL, RESULTS, Start
from driftline.app.runs.telling import report_data_of
from driftline.errors import InputError
from driftline.reports import ChangedInput, write_report
from driftline.typing import Json

__all__ = ["Outputs", "sweep", "sweep_audit"]

PREDICTIONS, JOURNAL, SUMMARY, TRACE, INPUTS, REPORT, KEYS = RESULTS
AUDIT = "audit.part"


class Outputs:
    """The folder of a run. The model's file is the checkpoint: only what it names belongs to it.

    Predictions and rounds for the audit are appended as they come. A checkpoint syncs them, records
    their lengths, and replaces the model; a run that goes on truncates them to these lengths.

    Parameters
    ----------
    lock
        The lock of the folder.
    run
        The run that is saved.
    start
        How it began.
    options
        The options on learning; None if it went on from a model.
    late
        Whether labels come late, so that predictions have a column for when they came.
    """

    def __init__(
        self,
        lock: Lock,
        run: Run,
        start: Start,
        options: Mapping[str, Any] | None = None,
        late: bool = False,
    ):
        self.late = late
        self.lock, self.folder, self.run, self.start = lock, lock.folder, run, start
        self.schedule = Schedule()
        state = start.state or Checkpoint(run, options=options)
        self.state = replace(state, run=run, finished=False)
        #: What is known of the input, up to the last rounds that were learned from.
        self.known = start.known
        #: How many rows of it are in the last checkpoint.
        self.saved = start.known.mark.rows if start.continued else 0
        #: Whether there are rounds after the last checkpoint.
        self.pending = False
        self._position: Callable[[], Position] | None = None
        self._predictions: files.Appended | None = None
        self._text: PredictionFile | None = None
        self._audit: AuditFile | None = None
        #: How much of the predictions belongs to the run, where lines without labels follow.
        self._settled: Extent | None = None
        if not start.anew:
            self._open(run.model.predicted + 1)

    @property
    def model(self) -> Path:
        """The path of the model."""
        return self.folder / MODEL

    def _open(self, first: int) -> None:
        """Truncate growing files to what belongs to the run; for a new run, delete all files."""
        if self.start.anew:
            self.lock.begin()
            files.remove(self.model)  # from here on the old run is gone
            files.remove(*(self.folder / name for name in (*RESULTS, AUDIT)))
        path, extent = self.folder / PREDICTIONS, self._extent()
        try:
            self._predictions = files.Appended(path, *extent)
        except ValueError as error:
            raise InputError(
                f"{error} since the last checkpoint: put it back, or begin again by --fresh"
            ) from None
        self._check_arrivals(path, extent)
        names = self._chances(path, extent)
        self.state = replace(self.state, chances=names, arrivals=self.late)
        self._text = PredictionFile(
            self._append,
            self.run.model,
            True,
            first,
            chances=names,
            late=self.late,
            held=self.state.held,
        )
        if not extent.length:
            self._text.begin()
        if self.run.audit_buffer is not None and self.start.continued:
            self._open_audit(self.run.audit_buffer)

    def _chances(self, path: Path, extent: Extent) -> Sequence[str]:
        """Return the labels that have a column of probabilities: those of the file's first line."""
        asked = self.run.proba
        if not extent.length:
            return list(self.run.model.encoder.labels.outcomes) if asked else ()
        if asked != bool(self.state.chances):
            there, advice = ("no columns", "leave --proba out")
            if not asked:
                there, advice = ("columns", "say --proba again")
            raise InputError(
                f"{path} has {there} of probabilities: {advice}, or name another folder by --out"
            )
        return self.state.chances

    def _check_arrivals(self, path: Path, extent: Extent) -> None:
        """Refuse to go on with lines that have other columns."""
        if extent.length and self.late != self.state.arrivals:
            there, advice = "no column", "leave --delay out"
            if not self.late:
                there, advice = "a column", "say by --delay when labels come, which may be 0"
            raise InputError(
                f"{path} has {there} of arrivals: {advice}, or name another folder by --out"
            )

    def _extent(self) -> Extent:
        """Return the extent of the predictions that are continued."""
        extent, path = self.state.predictions, self.folder / PREDICTIONS
        if not extent.length and path.exists():
            return Extent(path.stat().st_size)  # the model has no record of it
        return extent

    def _open_audit(self, buffer: AuditBuffer) -> None:
        """Load the rounds that were kept before into the buffer."""
        audit = self.state.audit
        if audit is None or audit.reason:
            buffer.drop(audit.reason if audit else "nothing was kept of the first rounds")
            return
        try:
            self._audit = AuditFile(self.folder / AUDIT, *audit.extent)
            self._audit.read(buffer)
            buffer.size = audit.size
        except ValueError as error:  # which an InputError is
            buffer.drop(f"what was kept for an audit is gone: {error}")

    def _append(self, text: str) -> None:
        assert self._predictions is not None
        self._predictions.write(text.encode("utf-8", "surrogatepass"))

    def add(self, rounds: Rounds, learned: Played, position: Callable[[], Position]) -> None:
        """Append some rounds, which were just played, up to a position."""
        if self._text is None:
            self._open(self.run.model.predicted + 1 - (rounds.labels is not None) * rounds.played)
        assert self._text is not None
        rounds = rounds._replace(weights=learned.weights)
        chances = learned.probabilities if self.run.proba else None
        self._text.write(
            learned.prediction, rounds, learned.losses, chances, learned.late, learned.sets
        )
        self._position, self.pending = position, True
        if not self.known.head.rows:
            self.known = self.known._replace(head=position().mark)

    def save(self, finished: bool = False) -> None:
        """Write a checkpoint: first the growing files, then the model, which has their lengths."""
        assert self._predictions is not None and self._text is not None
        began = time.perf_counter()
        audit = None if finished else self._save_audit()
        self._predictions.sync()
        queries = self.state.queries
        if self._position is not None:
            mark, queries = self._position()
            self.known = self.known._replace(mark=mark)
        self.state = replace(
            self.state,
            inputs=(*self.start.earlier, self.known),
            queries=queries,
            predictions=self._settled or _extent(self._predictions),
            held=self._text.held,
            audit=audit,
            finished=finished,
        )
        self.state.write(self.model)
        if audit is None or audit.reason:
            self._drop_audit()
        self.saved, self.pending = self.known.mark.rows, False
        self.schedule.saved(time.perf_counter() - began)

    def _save_audit(self) -> Audit | None:
        buffer = self.run.audit_buffer
        if buffer is None:
            return None
        if buffer.reason:
            return Audit(reason=buffer.reason)
        if self._audit is None:
            self._audit = AuditFile(self.folder / AUDIT)
        self._audit.add(buffer)
        return Audit(_extent(self._audit.file), buffer.size)

    def _drop_audit(self) -> None:
        """Delete the audit file, when no checkpoint names it any more."""
        if self._audit is not None:
            self._audit.close()
            self._audit = None
        files.remove(self.folder / AUDIT)

    def finish(
        self, summary: Json, trace: bool, inputs: Sequence[ChangedInput] | None = None
    ) -> list[Path]:
        """Write everything else; return all files. ``inputs`` are those that changed."""
        run = self.run
        if self._text is not None and self._text.held:
            assert self._predictions is not None
            self._settled = _extent(self._predictions)
            self._text.write_held()  # a run that goes on cuts these off, and writes them later
        made = [self.folder / PREDICTIONS, self.model, run.journal.save(self.folder / JOURNAL)]
        if trace and run.audit_buffer is not None and run.audit_buffer.traces:
            with files.drafted(self.folder / TRACE) as draft:
                run.audit_buffer.trace().save(draft)
            made += [self.folder / TRACE, save_inputs(self.folder / INPUTS, run.audit_buffer)]
        else:  # an older trace there has fewer rounds
            files.remove(self.folder / TRACE, self.folder / INPUTS)
        content = json.dumps(summary, indent=2) + "\n"
        made.append(files.replace(self.folder / SUMMARY, content.encode()))
        if isinstance(run.model, KeyedModel):
            table = run.model.scores.to_csv(run.model.learner.alarms)
            encoded = table.encode("utf-8", "surrogatepass")
            made.append(files.replace(self.folder / KEYS, encoded))
        if not run.journal.rounds:  # rows were predicted, and there is no round to draw
            files.remove(self.folder / REPORT)
            return made
        return [*made, write_report(report_data_of(run, summary, inputs), self.folder / REPORT)]

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._predictions, self._audit):
            if file is not None:
                file.close()
        if self._predictions is not None and not self.model.exists():  # nothing was saved
            files.remove(self.folder / PREDICTIONS, self.folder / AUDIT)


def sweep(lock: Lock) -> None:
    """Delete drafts, and results of a run that died before its first checkpoint."""
    folder = lock.folder
    files.remove(*(files.draft_of(folder / name) for name in (MODEL, *RESULTS)))
    if lock.left and not (folder / MODEL).exists():
        files.remove(*(folder / name for name in (*RESULTS, AUDIT)))
    lock.swept()


def sweep_audit(folder: Path) -> None:
    """Delete the audit file of a finished run."""
    files.remove(folder / AUDIT)


def _extent(file: files.Appended) -> Extent:
    return Extent(file.length, file.digest)
