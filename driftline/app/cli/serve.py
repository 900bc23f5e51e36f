"""``driftline serve``: models over HTTP."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from driftline.errors import InputError

if TYPE_CHECKING:
    from driftline.app.service.access import Access

__all__ = ["check_installed", "serve"]

DAY = 86_400.0
NEEDED = ("apsw", "httptools", "msgspec", "prometheus_client", "starlette", "uvicorn", "uvloop")


@click.command()
@click.option(
    "--data",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("driftline-data"),
    show_default=True,
    help="The folder of the log and of snapshots; made if it is not there.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--tokens",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with a role (predict, label or admin) and a token on every line.",
)
@click.option(
    "--example",
    is_flag=True,
    help="Feed it a generated stream of weather, so that there is something to see.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Feed it the rows of a CSV file, one after the other, and labels some rows later.",
)
@click.option("--label", help="The column to predict of the file to replay. Default: its last one.")
@click.option(
    "--speed",
    default=40.0,
    show_default=True,
    type=click.FloatRange(0.1, 10_000.0),
    help="Rows a second of the file to replay.",
)
@click.option(
    "--expire",
    "days",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.0, 36_500.0, min_open=True),
    help="Days after which a row without a label is forgotten.",
)
@click.option(
    "--snapshot",
    "seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0.1, 86_400.0),
    help="Seconds between snapshots of models that have changed.",
)
@click.option(
    "--keep",
    type=click.FloatRange(0.0, 36_500.0, min_open=True),
    help="Days after which records are deleted that are in snapshots. Default: never.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="URL",
    help="A stream to learn from: redis://HOST:PORT/0?stream=NAME&model=MODEL, or "
    "kafka://HOST:PORT?topic=NAME&model=MODEL.",
)
@click.option(
    "--memory",
    "megabytes",
    default=256,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="The most megabytes that the state of a model may have.",
)
@click.option(
    "--idle",
    default=75.0,
    show_default=True,
    type=click.FloatRange(0.1, 86_400.0),
    help="Seconds after which a connection is closed on which nothing goes on.",
)
@click.option(
    "--grace",
    default=45.0,
    show_default=True,
    type=click.FloatRange(0.1, 86_400.0),
    help="Seconds after SIGTERM within which the process ends, whatever it is doing.",
)
@click.option("--workers", type=int, hidden=True)
def serve(
    folder: Path,
    host: str,
    port: int,
    tokens: Path | None,
    example: bool,
    replay: Path | None,
    label: str | None,
    speed: float,
    sources: tuple[str, ...],
    days: float,
    seconds: float,
    keep: float | None,
    megabytes: int,
    idle: float,
    grace: float,
    workers: int | None,
) -> None:
    """Serve models over HTTP: predictions now, labels whenever they come.

    Every answer is on the disk before it is sent; after a crash the service goes on as if there had
    been none. Begin with: driftline serve --example
    """
    if workers not in (None, 1):
        raise InputError(
            "one process writes the log, and uses all it needs: --workers cannot be more than 1"
        )
    check_installed()
    from driftline.app.service.access import Access, is_loopback, read_tokens

    known = {} if tokens is None else read_tokens(tokens)
    access = Access(known)
    if not known and not is_loopback(host):
        raise InputError(
            f"{host} can be reached from other machines: name a file of tokens by --tokens, or "
            "listen at 127.0.0.1"
        )
    from driftline.app.service.http import Bounds
    from driftline.app.service.replay import example as made_up
    from driftline.app.service.replay import replay_of
    from driftline.app.service.server import Running, Server, listen
    from driftline.app.service.signals import Signals
    from driftline.app.service.sources import Feeder, source_from
    from driftline.app.service.writer import Limits

    opened = [source_from(url) for url in sources]
    kept = math.inf if keep is None else keep * DAY
    limits = Limits(
        snapshot_seconds=seconds,
        expire_seconds=days * DAY,
        keep_seconds=kept,
        memory=megabytes << 20,
    )
    reread = partial(_reread, access, tokens)
    with (
        Signals(reread, grace) as signals,
        _said(),
        Server(folder, limits, Bounds(model=limits.upload, idle=idle)) as server,
    ):
        for finding in server.findings:
            click.echo(finding, err=True)
        count = len(server.machine.models)
        click.echo(
            f"{folder}: {count} model{'' if count == 1 else 's'}, {server.replayed} records read "
            f"in {server.seconds:.1f} s"
        )
        running = Running(server, access, host, port)
        signals.stop_by(running.stop)
        companion, token = None, next((t for t, role in known.items() if role == "admin"), None)
        if replay is not None:
            companion = replay_of(replay, label, speed, running.address, token)
        elif example:
            companion = made_up(running.address, token)
        feeders = [
            Feeder(source, model, server.writer, server.positions) for source, model in opened
        ]
        if len({feeder.key for feeder in feeders}) < len(feeders):
            raise InputError("two streams of the same name cannot be read by one model")
        for feeder in feeders:
            feeder.start()
        listen(running, _told, companion)
        for feeder in feeders:
            feeder.stop()
        if companion is not None:
            companion.stop()
    click.echo("stopped; all is on the disk")


def _reread(access: Access, path: Path | None) -> None:
    """Read the file of tokens again; if it is bad, say why, and use those from before."""
    from driftline.app.service.access import read_tokens

    if path is None:
        click.echo("SIGHUP: there is no file of tokens to read again", err=True)
        return
    try:
        known = read_tokens(path)
    except (InputError, OSError) as error:
        click.echo(f"SIGHUP: the tokens stay as they were: {error}", err=True)
        return
    access.replace(known)
    click.echo(f"SIGHUP: {len(known)} tokens were read from {path}", err=True)


@contextmanager
def _said() -> Iterator[None]:
    """End with a code of its own if the log cannot be read, and say why."""
    from driftline.app.service.log import LogFailedError
    from driftline.app.service.server import FAILED

    try:
        yield
    except LogFailedError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(FAILED)


def _told(address: str) -> None:
    click.echo(f"listening at {address}; stop by Ctrl-C")
    sys.stdout.flush()


def check_installed() -> None:
    """Refuse to go on without the packages of the service, and say where they are."""
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(
            f"the service needs {', '.join(missing)}: they come with the extra serve, as in "
            "pip install '.[serve]' in a clone of driftline"
        )
