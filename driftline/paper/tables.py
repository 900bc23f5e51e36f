"""Results as tables for the terminal."""

from __future__ import annotations

from rich.table import Table

from driftline.paper.catalog import EXPERIMENTS
from driftline.paper.results import Results

__all__ = ["tables"]


def tables(results: Results) -> list[Table]:
    """Return a table for every data set: mean and 95% interval of expected and sampled loss."""
    made = []
    rounds, trials = results.settings["rounds"], results.settings["trials"]
    groups = EXPERIMENTS[results.settings["task"]].groups
    for data in results.settings["data"]:
        table = Table(
            title=f"{data}: total target loss in {rounds} rounds at most, mean of {trials} trials "
            "±95% interval",
            title_justify="left",
        )
        table.add_column("method")
        for column in ("expected", "sampled"):
            for flips in results.settings["flips"]:
                table.add_column(f"{column}\n{_flips(flips)}", justify="right", no_wrap=True)
        for group in groups:
            names = results.methods(group)
            if not names:
                continue
            table.add_section()
            table.add_row(f"[bold]{group}[/bold]")
            for name in names:
                cells = [
                    str(results.mean(data, flips, name, column))
                    for column in ("expected", "mistakes")
                    for flips in results.settings["flips"]
                ]
                table.add_row(name, *cells)
        table.caption = "\n".join(f"{group}: {heading}" for group, heading in groups.items())
        table.caption_justify = "left"
        made.append(table)
    return made


def _flips(count: int) -> str:
    return "1 flip" if count == 1 else f"{count} flips"
