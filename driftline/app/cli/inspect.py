"""``driftline inspect``: what is in a file that driftline wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from driftline.app.cli.options import MODEL
from driftline.app.cli.traces import read_trace

if TYPE_CHECKING:
    from driftline.committee import Committee
    from driftline.typing import Json

__all__ = ["inspect"]


@click.command(
    short_help="Say what is in a model, a journal or a trace.",
    epilog="""
\b
Examples:
  driftline inspect results/run/weather/model.driftline
  driftline inspect results/run/weather/journal.driftline
  driftline inspect trace.npz --json
""",
)
@click.argument("file", type=MODEL)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def inspect(file: Path, as_json: bool) -> None:
    """Say what is in FILE: a model, a journal or a trace.

    Of a model: its task, columns and classes, how much it has learned from, its members and
    their weights, and what is guaranteed. Of a journal or a trace: its rounds and its losses.
    """
    found = _found(file)
    if as_json:
        click.echo(json.dumps(found, indent=2, default=str))
        return
    width = max(map(len, found))
    for name, value in found.items():
        lines = str(", ".join(map(str, value)) if isinstance(value, list) else value).split("\n")
        click.echo(f"{name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            click.echo(" " * (width + 2) + line)


def _found(file: Path) -> Json:
    """Return what is in a file, by name."""
    import zipfile

    from driftline.errors import InputError
    from driftline.state import archive

    if not zipfile.is_zipfile(file):
        raise InputError(f"{file} was not written by driftline: expected a model or a trace")
    with zipfile.ZipFile(file) as content:
        names = content.namelist()
    if "about.json" not in names:
        return _trace(file)
    about, _ = archive.read(file)
    if about.get("kind") in ("Trace", "CommitteeTrace"):
        return _trace(file)
    if about.get("kind") == "Journal":
        return _journal(file)
    return _table_model(file) if "table" in about else _learner(file, about)


def _trace(file: Path) -> Json:
    made = read_trace(file)
    committee = hasattr(made, "members")
    kind = f"trace of a committee of {len(made.members)}" if committee else "trace of a learner"
    totals = {"target loss": float(made.target_loss.sum()), "risk": float(made.risk.sum())}
    found: Json = {"kind": kind, "rounds": len(made), **totals}
    found["mean loss"] = round(totals["target loss"] / max(1, len(made)), 6)
    if committee:
        found["members' risk"] = [round(v, 2) for v in made.member_risk.sum(axis=0).tolist()]
        return found
    summary = made.summary()
    found["surrogate loss"] = summary["loss"]
    found["steps"] = f"from {summary['eta_first']:.4g} to {summary['eta_last']:.4g}"
    return found


def _journal(file: Path) -> Json:
    from driftline.app.runs import Journal

    made = Journal.load(file)
    found: Json = {"kind": f"journal, {made!r}", "rounds": made.rounds}
    for name in made.names:
        if "." not in name:
            found[name.replace("_", " ")] = made.total(name)
    return found


def _table_model(file: Path) -> Json:
    from driftline.app.runs import load_model
    from driftline.app.runs.keyed_model import KeyedModel

    made = load_model(file)
    encoder, labels = made.encoder, made.encoder.labels
    found: Json = {
        "kind": f"model of a table, learner {made.about}",
        "task": repr(made.task),
        "rounds": made.rounds,
        "mean loss": round(made.loss / (made.weight or 1.0), 6),
        "label": labels.names,
    }
    if made.weighs:
        names = [encoder.weight] if encoder.weight else []
        found["weights"] = [*names, *(["balanced classes"] if encoder.balanced else [])]
    if labels.values:
        found[labels.kind] = labels.values
    columns = encoder.columns
    if isinstance(columns, int):
        found["features"] = columns
    else:
        shown = [c.name if c.kind == "number" else f"{c.name} ({c.kind})" for c in columns.columns]
        found["columns"] = shown
        found["features"] = columns.width
        found["missing"] = columns.missing
    if encoder.champion is not None:
        found["champion"] = encoder.champion
    if encoder.ignored:
        found["left out"] = encoder.ignored
    if isinstance(made, KeyedModel):
        found |= {"key": encoder.key, "keys": len(made.scores), "begin": made.learner.start}
        return found | {"guarantee": made.learner.prototype.describe().split("\n")[0]}
    return found | {"guarantee": made.describe().split("\n")[0], **_members(made.learner)}


def _members(committee: Committee) -> Json:
    """Return the members with their weights, as short texts."""
    found = {}
    for j, (member, weight) in enumerate(zip(committee.members, committee.weights, strict=True)):
        found[f"member {j}"] = f"{weight:.3f}  {member.facts.in_short}"
    return found


def _learner(file: Path, about: Json) -> Json:
    from driftline.state.loading import load

    made = load(file)
    found = {"kind": about["kind"], "task": repr(made.task), "rounds": made.rounds}
    return found | {"learner": made.describe()}
