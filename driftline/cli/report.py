"""``driftline report``: traces as one page to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from driftline.errors import InputError
from driftline.reports import Story, verdict, write_report
from driftline.trace import Trace

__all__ = ["report"]


@click.command()
@click.argument(
    "traces", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    help="Where the page is written.",
)
@click.option("--title", default="", help="Of the page.")
def report(traces: tuple[Path, ...], out: Path, title: str) -> None:
    """Write a page about one run, or several over each other.

    TRACES are files that `trace.save` or another command has written. The page is one HTML file
    that needs nothing else: open it in a browser, send it to others.
    """
    stories = []
    for path in traces:
        try:
            stories.append(Story.of(_read(path), name=path.stem))
        except InputError as error:
            raise click.ClickException(str(error)) from error
    for story in stories:
        click.echo(verdict(story))
    click.echo(f"Wrote {write_report(stories, out, title)}")


def _read(path: Path) -> Any:
    """Return the trace of a learner or of a committee, whichever it is."""
    from driftline.committee import CommitteeTrace

    try:
        return Trace.load(path)
    except InputError as first:
        try:
            return CommitteeTrace.load(path)
        except InputError:
            raise first from None
