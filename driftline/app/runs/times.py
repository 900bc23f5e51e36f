"""When rounds were: the texts of a column of times, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

from driftline.errors import InputError
from driftline.typing import Json

__all__ = ["Times"]

#: The most rounds whose times are kept, and the most alarms.
MOST, MOST_ALARMS = 512, 1000


class Times:
    """Times of rounds that are equally far apart, of alarms, and of the first and the last round.

    When there are too many rounds, every second one is dropped: memory is bounded for any run. What
    is kept depends on the rounds alone, not on the batches they came in.

    >>> times = Times(most=4)
    >>> times.add([f"day {t}" for t in range(9)], alarms=[5])
    >>> times.kept
    {0: 'day 0', 4: 'day 4', 8: 'day 8'}
    >>> times.first, times.last, times.alarms
    ('day 0', 'day 8', {5: 'day 5'})
    """

    def __init__(self, most: int = MOST):
        self.most, self.span, self.rounds = most, 1, 0
        self.first, self.last = "", ""
        self.alarms: dict[int, str] = {}
        self._texts: list[str] = []

    def add(self, texts: Sequence[str], alarms: Sequence[int] = ()) -> None:
        """Add the times of the next rounds; alarms are given by the number of their round."""
        texts, start = list(texts), self.rounds
        if not texts:
            return
        self.rounds += len(texts)
        self._texts += texts[-start % self.span :: self.span]
        while len(self._texts) > self.most:
            self._texts, self.span = self._texts[::2], 2 * self.span
        known = [text for text in texts if text]
        if known:
            self.first, self.last = self.first or known[0], known[-1]
        for t in alarms:
            self.alarms[int(t)] = texts[int(t) - start]
        for t in list(self.alarms)[:-MOST_ALARMS]:
            del self.alarms[t]

    def begin(self) -> None:
        """Begin another run, which has a first round of its own."""
        self.first = self.last = ""

    @property
    def kept(self) -> dict[int, str]:
        """Times by round, where they are known."""
        return {k * self.span: text for k, text in enumerate(self._texts) if text}

    def of_alarms(self, rounds: Sequence[int]) -> list[str]:
        """Return the times of alarms, empty where they are not known."""
        return [self.alarms.get(t, "") for t in rounds]

    def to_saved(self) -> Json:
        """Return all as plain data."""
        ends = {"first": self.first, "last": self.last, "alarms": list(self.alarms.items())}
        return ends | {"span": self.span, "rounds": self.rounds, "texts": self._texts}

    @classmethod
    def from_saved(cls, saved: Json) -> Times:
        """Return the times from what :meth:`to_saved` returned."""
        made = cls()
        made.span, made.rounds = int(saved["span"]), int(saved["rounds"])
        made.first, made.last = str(saved["first"]), str(saved["last"])
        made.alarms = {int(t): str(text) for t, text in saved["alarms"]}
        made._texts = [str(text) for text in saved["texts"]]
        good = made.span > 0 and len(made._texts) == -(-made.rounds // made.span) <= MOST
        if not good or not all(0 <= t < made.rounds for t in made.alarms):
            raise InputError(f"{len(made._texts)} times cannot be those of {made.rounds} rounds")
        return made
