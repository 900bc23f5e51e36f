"""``driftline backup`` and ``driftline restore``: copies of the folder of a service."""

from __future__ import annotations

from pathlib import Path

import click

from driftline.app.cli.serve import check_installed

__all__ = ["backup", "restore"]

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("target", type=FOLDER)
def backup(folder: Path, target: Path) -> None:
    """Copy the folder of a service to TARGET, while the service runs.

    The copy has the log of one moment and the snapshots that belong to it, with digests.
    """
    check_installed()
    from driftline.app.service.backup import back_up

    made = back_up(folder, target)
    click.echo(f"{target}: {made.records} records up to {made.seq}, of {_models(made.models)}")


@click.command()
@click.argument("backup", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=FOLDER)
def restore(backup: Path, folder: Path) -> None:
    """Check a backup, and put it back as the new FOLDER of a service.

    All models are computed as the service would; what is found wrong is said.
    """
    check_installed()
    from driftline.app.service.backup import restore as put_back

    made, found = put_back(backup, folder)
    for said in found:
        click.echo(said, err=True)
    click.echo(f"{folder}: {made.records} records up to {made.seq}, of {_models(made.models)}")
    click.echo(f"go on by: driftline serve --data {folder}")


def _models(count: int) -> str:
    return f"{count} model{'' if count == 1 else 's'}"
