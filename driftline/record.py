"""What a run writes down, as it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftline.engines import Block, Parts
from driftline.errors import InputError
from driftline.kernels import program as at
from driftline.models import Rows
from driftline.trace import Origin, Trace

__all__ = ["Record", "checked_stream"]


def checked_stream(task: Any, inputs: Any, labels: Any) -> tuple[Rows, Any]:
    """Return rows and labels that fit each other and the task."""
    if labels is None:
        try:
            inputs, labels = inputs.inputs, inputs.labels
        except AttributeError:
            raise InputError(
                f"expected inputs and labels, or a stream that has both, but got only "
                f"{type(inputs).__name__}"
            ) from None
    rows, labels = task.rows_of(inputs), task.check_labels(labels)
    if rows.rounds != len(labels):
        raise InputError(f"there are {rows.rounds} inputs but {len(labels)} labels")
    if rows.rounds == 0:
        raise InputError("the stream is empty: expected at least one round")
    rows.check_labels(labels)
    return rows, labels


class Record:
    """Room for the rounds of a run, and the labels they are played with.

    Rounds are written one after the other, from rows that may come in pieces. ``generator`` is the
    state of what random numbers come from, ``ahead`` one that was drawn before.
    """

    def __init__(
        self,
        parts: Parts,
        names: tuple[str, ...],
        labels: Any,
        generator: Mapping[str, Any],
        ahead: np.ndarray | None,
    ):
        rounds, task = len(labels), parts.loss.task
        self.task: Any = task
        self.labels, self.rounds, self.done = labels, rounds, 0
        self.generator = generator
        self.ahead = None if ahead is None else float(ahead[0, 0])
        self._columns = np.empty((len(names), rounds))
        width = task.prediction_width(labels)
        self._predictions = np.full((rounds, width), -1, dtype=np.int64)
        self._gaps = np.zeros(rounds) if parts.loss.inexact else None
        self._restarted = None if parts.restart is None else np.zeros(rounds, dtype=bool)

    def block(self, rows: Rows, start: int, stop: int, uniforms: np.ndarray) -> Block:
        """Return the next rounds, which meet rows ``start`` to ``stop``."""
        part = slice(self.done, self.done + stop - start)
        return Block(
            rows,
            start,
            stop,
            self.labels[part],
            uniforms,
            self._columns[:, part],
            self._predictions[part],
            None if self._gaps is None else self._gaps[part],
            restarted=None if self._restarted is None else self._restarted[part],
        )

    @property
    def risk(self) -> np.ndarray:
        """The expected target loss of every round."""
        return self._columns[at.TRACE_COLUMNS.index("risk")]

    def trace(self, config: dict[str, Any], origin: Origin | None, digest: str = "") -> Trace:
        """Return all that was written."""
        return Trace(
            **dict(zip(at.TRACE_COLUMNS, self._columns, strict=False)),
            prediction=self.task.predictions(self._predictions),
            origin=origin,
            gap=self._gaps,
            restarted=self._restarted,
            config=config,
            digest=digest,
        )
