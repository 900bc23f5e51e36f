"""The checkpoint of a run, in one file: that of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline.app.runs.champion import Acts
from driftline.app.runs.counts import Counts
from driftline.app.runs.inputs import Input
from driftline.app.runs.journal import Journal
from driftline.app.runs.late_rounds import LateRounds
from driftline.app.runs.model import Model
from driftline.app.runs.models import model_from
from driftline.app.runs.run import Run
from driftline.app.runs.times import Times
from driftline.errors import InputError
from driftline.state import archive
from driftline.state.loading import DAMAGE
from driftline.typing import Json

__all__ = ["Audit", "Checkpoint", "Extent"]

KEY, JOURNAL, COUNTS, TOTALS = "checkpoint", "run.journal", "run.counts", "run.totals"
SAMPLE, LATE = "run.sample.", "run.late."


class Extent(NamedTuple):
    """How many bytes of a growing file belong to a run, and their SHA-256."""

    length: int = 0
    digest: str = ""

    @classmethod
    def from_config(cls, config: Sequence[Any]) -> Extent:
        """Return an extent from a list in a file."""
        length, digest = config
        if type(length) is not int or length < 0:
            raise InputError(f"a file cannot have {length} bytes")
        return cls(length, str(digest))


class Audit(NamedTuple):
    """The state of the audit buffer: its file, its size, or why it was dropped."""

    extent: Extent = Extent()
    size: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two batches, from which it goes on as if it had never stopped.

    Parameters
    ----------
    run
        Model, journal and score; the rounds for the audit are in another file.
    inputs
        All tables that the model has learned from, and up to where; the last is that of the run.
    options
        The options on learning at its start; None if it went on from a model.
    origin
        The digest of that model's file, if it is in another folder.
    queries
        The queries of the last input that have ended.
    predictions, audit
        How much of the files beside it belongs to it.
    chances
        The labels whose probabilities have a column in the predictions.
    held
        Lines of the predictions that are not written yet, since their labels are still to come.
    arrivals
        Whether the predictions have a column for when labels came.
    finished
        Whether the input was read to its end and all output was written.
    """

    run: Run
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] | None = None
    origin: str = ""
    queries: list[str] = field(default_factory=list)
    predictions: Extent = Extent()
    audit: Audit | None = None
    finished: bool = False
    chances: Sequence[str] = ()
    held: Sequence[Sequence[str]] = ()
    arrivals: bool = False

    def write(self, path: Path) -> Path:
        """Write everything to one file, atomically."""
        about, arrays = self.run.model.to_saved()
        journal, blocks = self.run.journal.to_saved()
        counts, (sample, rows) = self.run.counts, self.run.sample.to_saved()
        late, waiting = self.run.late.to_saved()
        about[KEY] = {
            "inputs": [known.to_config() for known in self.inputs],
            "options": None if self.options is None else dict(self.options),
            "origin": self.origin,
            "queries": self.queries,
            "predictions": self.predictions,
            "audit": self.audit,
            "finished": self.finished,
            "chances": list(self.chances),
            "journal": journal,
            "rounds": self.run.rounds,
            "rows": self.run.rows,
            "unlabelled": self.run.unlabelled,
            "unanswered": self.run.unanswered,
            "weight": self.run.weight,
            "tags": counts.tags,
            "times": self.run.times.to_saved(),
            "sample": sample,
            "late": late,
            "held": [list(line) for line in self.held],
            "arrivals": self.arrivals,
            "set_totals": self.run.set_totals.tolist(),
            "acts": self.run.acts.to_saved(),
        }
        arrays |= {JOURNAL: blocks, TOTALS: self.run.totals}
        arrays |= {f"{SAMPLE}{name}": array for name, array in rows.items()}
        arrays |= {f"{LATE}{name}": array for name, array in waiting.items()}
        if counts.table is not None:
            arrays[COUNTS] = counts.table
        return archive.write(path, about, arrays)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what :meth:`write` wrote, or a model without records of its inputs."""
        about, arrays = archive.read(path)
        model = model_from(path, about, arrays)
        if KEY not in about:
            return cls(Run(model), finished=True)
        try:
            return cls._from_saved(model, about[KEY], arrays)
        except DAMAGE as error:
            raise InputError(f"{path} is damaged or was edited: {error}") from error

    @classmethod
    def _from_saved(cls, model: Model, about: Json, arrays: Mapping[str, np.ndarray]) -> Checkpoint:
        journal = Journal.from_saved(about["journal"], arrays[JOURNAL])
        run = Run(model, journal=journal)
        run.rounds, run.rows = int(about["rounds"]), int(about["rows"])
        run.unlabelled = int(about["unlabelled"])
        run.unanswered = int(about["unanswered"])
        run.weight = float(about["weight"])
        if not 0.0 <= run.weight < np.inf:
            raise InputError(f"rounds cannot have the weight {run.weight}")
        totals = arrays[TOTALS]
        if totals.shape != run.totals.shape or not (totals >= 0.0).all():
            raise InputError(f"losses cannot be {totals}")
        if not 0 <= run.rounds <= journal.rounds <= model.rounds:
            raise InputError("its counts of rounds do not fit each other")
        run.totals = totals
        run.counts = Counts.from_saved(arrays.get(COUNTS), bool(about["tags"]))
        run.times = Times.from_saved(about["times"])
        if model.encoder.time is not None and run.times.rounds != journal.rounds:
            raise InputError("its times are those of other rounds")
        rows = {name: arrays[f"{SAMPLE}{name}"] for name in ("values", "keys")}
        run.sample.resume(about["sample"], **rows)
        waiting = {k.removeprefix(LATE): a for k, a in arrays.items() if k.startswith(LATE)}
        run.late = LateRounds.from_saved(about["late"], waiting, model.waits)
        run.acts = Acts.from_saved(about["acts"])
        run.set_totals = np.array([float(n) for n in about["set_totals"]])
        held = [[str(cell) for cell in line] for line in about["held"]]
        if len(held) != run.late.waiting:
            raise InputError(f"{len(held)} lines are held for {run.late.waiting} rounds")
        audit = about["audit"]
        if audit is not None:
            extent, size, reason = audit
            audit = Audit(Extent.from_config(extent), int(size), str(reason))
        options = about["options"]
        return cls(
            run,
            tuple(Input.from_config(known) for known in about["inputs"]),
            None if options is None else dict(options),
            str(about["origin"]),
            [str(name) for name in about["queries"]],
            Extent.from_config(about["predictions"]),
            audit,
            bool(about["finished"]),
            [str(name) for name in about["chances"]],
            held,
            about["arrivals"] is True,
        )
