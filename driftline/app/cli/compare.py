"""``driftline compare``: several learners on one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from driftline.app.cli.learners import TABLE
from driftline.app.cli.options import (
    DELAY,
    FILE,
    LEARNERS,
    about_columns,
    check_delay,
    chosen_learners,
    guessed,
    names,
    reading,
    with_command,
)

__all__ = ["compare"]


@click.command(
    short_help="Run several learners side by side over a file.",
    epilog=TABLE
    + """

\b
Examples:
  driftline compare weather.csv
  driftline compare weather.csv --with auto,polyak,free --label rain
""",
)
@click.argument("file", type=FILE)
@LEARNERS
@about_columns
@reading
@DELAY
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
@click.option("--quiet", is_flag=True, help="No progress, no notes.")
def compare(file: Path, **options: Any) -> None:
    """Run several learners side by side over FILE, which is read once.

    All see the same rows in the same order, and predict each before they learn from it. Shown
    are their mean losses beside the baselines, best first. Nothing is written.
    """
    with with_command(file, options):
        _compare(file, options)


def _compare(file: Path, options: dict[str, Any]) -> None:
    from driftline.app.cli.progress import Progress
    from driftline.app.cli.screen import amount, console_of, score_name
    from driftline.app.runs import Reading, Run, new_model
    from driftline.errors import InputError

    notes = console_of(err=True)
    wanted = chosen_learners(options)
    table, head, encoder, said = guessed(file, options)
    runs = [Run(new_model(name, encoder)) for name in wanted]
    if not options["quiet"]:
        for note in said:
            notes.print(note, style="dim", soft_wrap=True)
    check_delay(options, runs[0].model)
    source = Reading(
        table,
        encoder,
        head,
        ignore=names(options["ignore"]),
        unlabelled=options["unlabelled"],
        delay=options["delay"],
    )
    with Progress(notes, options["quiet"]) as bar:
        for rounds in source:
            if rounds.labels is None:
                continue
            for run in runs:
                if not run.rounds:  # the first batch loads compiled code, which is not counted
                    Run(new_model(run.model.about, encoder)).learn(rounds)
                run.learn(rounds)
            bar.show(table.progress, runs[0].rows, runs[0].share)
    if not runs[0].rounds:
        raise InputError(f"no label came in {table.name}: all are later than its last row")
    first, rows = runs[0], list[tuple[str, float, float | None]]()
    rows += [(run.model.about, run.share, run.rounds / max(run.seconds, 1e-9)) for run in runs]
    rows += [(f"({n})", s, None) for n, s in first.scores.items() if n != "learner"]
    rows.sort(key=lambda row: row[1])
    if options["as_json"]:
        found = [{"name": n, "mean_loss": s, "rounds_per_second": r} for n, s, r in rows]
        click.echo(json.dumps({"rounds": first.rounds, "learners": found}, indent=2))
        return
    codec, screen = encoder.labels, console_of()
    screen.print(f"{score_name(first)}, of {first.rounds:,} rounds{'rounds/s':>20}")
    for name, share, rate in rows:
        speed = "" if rate is None else f"{rate:>14,.0f}"
        total = f"{share * first.weight:>12,.0f}" if codec.counts else " " * 12
        screen.print(f"  {name:<12} {amount(codec, share)} {total} {speed}")
