"""A stream of weather for ``driftline serve --example``: rows now, labels later, and drift."""

from __future__ import annotations

import csv
import io
import threading
from contextlib import suppress

import numpy as np

from driftline.app.tables.example import example_text
from driftline.client import Client, ServiceError

__all__ = ["Example"]

MODEL, LABEL = "weather", "rain"
#: Rows a second, how many rows later labels come, and the share of labels that never come.
SPEED, DELAY, LOST = 40.0, 60, 0.02


class Example(threading.Thread):
    """Sends the example's rows to a service, over and over, as its users would."""

    def __init__(self, address: str, token: str | None = None):
        super().__init__(name="example", daemon=True)
        self._client = Client(address, token=token, tries=3)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Send nothing more."""
        self._stopping.set()
        self.join(5.0)

    def run(self) -> None:
        """Send rows and labels until the end."""
        with suppress(ServiceError):  # the service has stopped
            self._send()

    def _send(self) -> None:
        rows = list(csv.DictReader(io.StringIO(example_text())))
        labels = [row.pop(LABEL) for row in rows]
        columns = {"temperature": "number", "humidity": "number", "wind": "number"}
        towns = sorted({row["town"] for row in rows})
        client = self._client
        client.create(MODEL, LABEL, columns=columns | {"town": towns}, exist_ok=True)
        state = client.model(MODEL)
        if len(state["learners"]) == 1 and not state["counts"]["asked"]:
            client.challenge(MODEL, "polyak", learner="polyak")
        number = state["counts"]["asked"]
        while not self._stopping.wait(1.0 / SPEED):
            client.predict(MODEL, rows[number % len(rows)], id=f"example {number}")
            late = number - DELAY
            if late >= 0 and np.random.default_rng(late).random() >= LOST:
                self._label(late, labels[late % len(rows)])
            number += 1

    def _label(self, number: int, label: str) -> None:
        """Tell a label; rows of an earlier start may have been forgotten meanwhile."""
        try:
            self._client.label(MODEL, f"example {number}", label)
        except ServiceError as error:
            if error.status not in (404, 410):
                raise
