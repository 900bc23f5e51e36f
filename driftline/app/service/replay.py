"""A table that is sent to the service row by row, as its users would: rows now, labels later."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from driftline.app.tables.example import example_text
from driftline.client import Client, ServiceError
from driftline.errors import InputError

__all__ = ["Replay", "example", "replay_of"]

#: Rows a second, how many rows later labels come, and the share of labels that never come.
SPEED, DELAY, LOST = 40.0, 60, 0.02
#: How many rows the columns are guessed from.
HEAD = 1000


class Replay(threading.Thread):
    """Sends rows to a service, over and over, and their labels some rows later.

    Parameters
    ----------
    address, token
        Of the service.
    model, label
        The name of the model, which is made if it is not there, and of the column to predict.
    rows
        With their labels; all values are texts.
    speed, lost
        Rows a second, and the share of labels that never come.
    """

    def __init__(
        self,
        address: str,
        token: str | None,
        model: str,
        label: str,
        rows: Sequence[dict[str, str]],
        speed: float = SPEED,
        lost: float = LOST,
    ):
        super().__init__(name="replay", daemon=True)
        self._client = Client(address, token=token, tries=3)
        self._model, self._label, self._rows = model, label, rows
        self._pause, self._lost = 1.0 / speed, lost
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Send nothing more."""
        self._stopping.set()
        self.join(5.0)
        self._client.close()

    def run(self) -> None:
        """Send rows and labels until the end."""
        with suppress(ServiceError):  # the service has stopped
            self._send()

    def _send(self) -> None:
        client, model, rows = self._client, self._model, self._rows
        client.create(model, self._label, rows=rows[:HEAD], exist_ok=True)
        state = client.model(model)
        if len(state["learners"]) == 1 and not state["counts"]["asked"]:
            client.challenge(model, "polyak", learner="polyak")
        number = state["counts"]["asked"]
        while not self._stopping.wait(self._pause):
            row: dict[str, Any] = dict(rows[number % len(rows)])
            del row[self._label]
            client.predict(model, row, id=f"row {number}")
            late = number - DELAY
            if late >= 0 and np.random.default_rng(late).random() >= self._lost:
                self._tell(late, rows[late % len(rows)][self._label])
            number += 1

    def _tell(self, number: int, label: str) -> None:
        """Tell a label; rows of an earlier start may have been forgotten meanwhile."""
        try:
            self._client.label(self._model, f"row {number}", label)
        except ServiceError as error:
            if error.status not in (404, 410):
                raise


def example(address: str, token: str | None) -> Replay:
    """Return a thread that sends made-up weather, which drifts."""
    rows = list(csv.DictReader(io.StringIO(example_text())))
    return Replay(address, token, "weather", "rain", rows)


def replay_of(
    path: Path, label: str | None, speed: float, address: str, token: str | None
) -> Replay:
    """Return a thread that sends the rows of a CSV file; its last column is the default label."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        try:
            rows: list[Any] = list(csv.DictReader(lines, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path} is no CSV file: {error}") from error
    if not rows:
        raise InputError(f"{path} has no rows")
    if any(None in row or None in row.values() for row in rows):
        raise InputError(f"{path}: rows have different numbers of cells")
    names = list(rows[0])
    label = names[-1] if label is None else label
    if label not in names:
        raise InputError(f"{path} has no column {label!r}: it has {', '.join(names[:8])}")
    model = re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem).lstrip("-_.")[:64] or "model"
    return Replay(address, token, model, label, rows, speed, lost=0.0)
