"""What Spark calls with the rows of a key, in a worker: state in, state out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from driftline.integrations.spark.columns import Plan
from driftline.keyed.events import Event

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STATE", "TIMED", "Processor"]

#: The name of the state variable, and of its only column.
STATE, COLUMN = "learner", "content"
#: How Spark calls timers by the clock, and none.
TIMED, UNTIMED = "processingTime", "none"


class Processor(StatefulProcessor):
    """Keeps one value for every key: the bytes of :class:`~driftline.keyed.events.KeyPlayer`."""

    def __init__(self, plan: Plan, timed: bool):
        self._plan, self._timed = plan, timed

    def init(self, handle: Any) -> None:
        """Name the state that Spark keeps."""
        self._handle = handle
        self._state = handle.getValueState(STATE, f"{COLUMN} BINARY")

    def handleInputRows(  # noqa: N802
        self, key: Sequence[Any], rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Play the rows of a key in a micro batch."""
        known = self._state.get()
        content = None if known is None else bytes(known[0])
        yield from self._play(key, self._plan.events(list(rows)), content, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self, key: Sequence[Any], timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """Give up what has waited for too long."""
        known = self._state.get()
        if known is not None:
            content = self._plan.player.alarmed(bytes(known[0]))
            yield from self._play(key, iter(()), content, timerValues)

    def _play(
        self, key: Sequence[Any], events: Iterator[Event], content: bytes | None, times: Any
    ) -> Iterator[pd.DataFrame]:
        player, key = self._plan.player, tuple(key)
        now = times.getCurrentProcessingTimeInMs() if self._timed else 0
        answers, content = player.play(self._plan.key(key), events, content, now)
        if self._timed:
            content, due = player.alarm(content)
            if due is not None:
                self._handle.registerTimer(due)
        self._state.update((content,))
        if answers:
            yield self._plan.frame(key, answers)

    def close(self) -> None:
        """Do nothing: Spark keeps all there is."""
