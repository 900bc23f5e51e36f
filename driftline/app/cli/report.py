"""``driftline report``: traces as one page to read."""

from __future__ import annotations

from pathlib import Path

import click

from driftline.app.cli.traces import read_trace

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
    from driftline.errors import InputError
    from driftline.reports import ReportData, verdict, write_report

    runs = []
    for path in traces:
        try:
            runs.append(ReportData.of(read_trace(path), name=path.stem))
        except InputError as error:
            raise click.ClickException(str(error)) from error
    for data in runs:
        click.echo(verdict(data))
    click.echo(f"Wrote {write_report(runs, out, title)}")
