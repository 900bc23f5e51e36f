"""The command ``driftline`` and its subcommands."""

from __future__ import annotations

from typing import Any

import click

from driftline import __version__
from driftline.app.cli.backup import backup, restore
from driftline.app.cli.certify import certify
from driftline.app.cli.compare import compare
from driftline.app.cli.completion import completion
from driftline.app.cli.guarantees import guarantees
from driftline.app.cli.inspect import inspect
from driftline.app.cli.predict import predict
from driftline.app.cli.report import report
from driftline.app.cli.reproduce import reproduce
from driftline.app.cli.run import run
from driftline.app.cli.scales import scales
from driftline.app.cli.serve import serve
from driftline.app.cli.sweep import sweep
from driftline.app.cli.trouble import plain_errors

__all__ = ["main"]

OWN = (run, predict, inspect, compare, sweep, report, certify, serve, backup, restore, completion)
PAPER = (reproduce, scales, guarantees)


class Commands(click.Group):
    """Commands in the order of use: those for one's own data, then those of the paper."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return all names, in the order they were added."""
        return list(self.commands)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in two groups."""
        for title, group in (("Your own data", OWN), ("The paper", PAPER)):
            with formatter.section(title):
                rows = [(c.name or "", c.get_short_help_str(60)) for c in group]
                formatter.write_dl(rows)

    def invoke(self, context: click.Context) -> Any:
        """Run a command; errors are printed in one line."""
        with plain_errors():
            return super().invoke(context)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="driftline")
def main() -> None:
    """Online structured prediction under drift, with a guarantee.

    Begin with: driftline run --example, or driftline run FILE.csv
    """


for command in OWN + PAPER:
    main.add_command(command)
