"""The report data of a run over a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftline.app.runs.champion import ACCOUNT
from driftline.app.runs.keyed_model import KeyedModel
from driftline.app.runs.model import Model
from driftline.app.runs.run import SETS, WEIGHT, Run
from driftline.explanation import Explanation, explain, share_of_kinds
from driftline.learner import gives_probabilities
from driftline.reports import (
    WEIGHTED,
    ChangedInput,
    ReportData,
    TimeAxis,
    champion_in_words,
)
from driftline.typing import Json

__all__ = ["report_data_of"]

#: The most features for which a learner is explained.
MOST_FEATURES = 128


def report_data_of(
    run: Run, summary: Json, inputs: Sequence[ChangedInput] | None = None
) -> ReportData:
    """Return the report data from the journal and the summary of a run."""
    journal, encoder, labels = run.journal, run.model.encoder, run.model.encoder.labels
    members = [] if encoder.key is not None else run.model.learner.members
    weights, names = None, list[str]()
    if len(members) > 1:
        shares = np.column_stack([journal.means(f"weight.{j}") for j in range(len(members))])
        weights, names = share_of_kinds(shares, [member._config() for member in members])
    certificate = summary["certificate"]
    data = ReportData(
        Path(str(summary.get("file", "run"))).name,
        journal.ends,
        {name.replace("_", " "): journal.sums(name) for name in run.columns},
        unit=WEIGHTED if run.model.weighs else labels.unit,
        sizes=journal.sums(WEIGHT) if run.model.weighs else journal.lengths,
        weights=weights,
        members=names,
        alarms=run.journal_alarms,
        times=TimeAxis(encoder.time or "", kept) if (kept := run.times.kept) else None,
        alarm_times=run.times.of_alarms(run.journal_alarms),
        inputs=inputs,
        baselines=True,
        random=certificate["random"],
        settings=summary | {"description": run.model.describe().splitlines()},
        findings=list(certificate["findings"]),
        guess=certificate["guess"],
        unanswered=run.unanswered / run.rounds if run.model.abstains and run.rounds else None,
    )
    if certificate["rounds"] == journal.rounds:  # else its bounds are of other rounds
        data.trivial, data.delay_cost = certificate["guessing"], certificate["delay_cost"] or 0.0
        data.bounds |= {form: float(bound) for form, bound in certificate["bounds"].items()}
        if certificate["bound"] is not None and not data.bounds:
            data.bounds["best member"] = float(certificate["bound"])
    if run.model.sets is not None:
        data.covered, data.set_sizes = (journal.sums(name) for name in SETS)
        data.goal = run.model.sets.part.coverage
    if summary["champion"] is not None:
        data.account, data.budget = journal.means(ACCOUNT), run.model.learner.guard.budget
        data.guarded = champion_in_words(summary["champion"], data.unit)
    if len(members) == 1:
        data.means = {"eta": journal.means("eta.0")}
        data.expected = journal.sums("risk.0") if data.random else None
    if isinstance(run.model, KeyedModel):
        data.keys = run.model.table()
    else:
        data.explanation = _explained(run.model)
    if run.counts.table is not None and len(run.counts.table):
        data.counts = run.counts.table
        data.names = list(labels.outcomes)[: len(data.counts)]
    return data


def _explained(model: Model) -> Explanation | None:
    """Explain the learner; None where features are not columns, or too many."""
    labels, kept = model.encoder.labels, model.learner._kept_rows
    if not gives_probabilities(model.learner.task) or kept is None or len(kept) < 2:
        return None
    if kept.shape[1] > MOST_FEATURES:
        return None
    names, texts = model.encoder.feature_names, model.encoder.texts
    return explain(model.learner, names=names, labels=labels.outcomes, categories=texts)
