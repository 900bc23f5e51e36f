"""The command ``driftline`` and what it can be asked to do."""

from __future__ import annotations

import click

from driftline import __version__
from driftline.cli.certify import certify
from driftline.cli.guarantees import guarantees
from driftline.cli.reproduce import reproduce
from driftline.cli.sweep import sweep

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="driftline")
def main() -> None:
    """Online structured prediction under drift, with a guarantee."""


main.add_command(certify)
main.add_command(guarantees)
main.add_command(reproduce)
main.add_command(sweep)
