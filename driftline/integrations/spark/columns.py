"""Rows of a key between Spark, which has them in columns, and a learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.keyed.events import Answer, Event, KeyPlayer
from driftline.state import archive
from driftline.state.loading import learner_from

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ABSENT", "ID", "INPUT", "LABEL", "ORDER", "Plan"]

#: The columns of rows on their way to a learner, beside those of the key.
ID, ORDER, INPUT, LABEL, ABSENT = ("_row_id", "_row_order", "_row_input", "_row_label", "_absent")

#: What is absent in a row, in the order of the bits of the column ``ABSENT``: a column of whole
#: numbers cannot have an empty place in pandas without becoming one of floats.
PARTS = ("key", "id", "order", "input", "label")


@dataclass(frozen=True)
class Plan:
    """What workers must know: the learner, by its saved form, its limits, and names of columns.

    ``id`` is None for tables without one: then the rows of a key are numbered.
    """

    learner: bytes
    limits: tuple[tuple[str, int | None], ...]
    keys: tuple[str, ...]
    id: str | None
    single: bool

    @property
    def player(self) -> KeyPlayer:
        """The player of all keys, one in a process."""
        return _player(self.learner, self.limits)

    def key(self, given: Sequence[Any]) -> Any:
        """Return the key from the values of its columns."""
        made = tuple(bytes(own) if isinstance(own, bytearray) else own for own in given)
        return made[0] if len(made) == 1 else made

    def events(self, frames: Sequence[pd.DataFrame]) -> Iterator[Event]:
        """Return the rows of a key."""
        first = 0
        for frame in frames:
            absent = frame[ABSENT].to_numpy()
            ids = range(first, first + len(frame)) if self.id is None else frame[ID].tolist()
            columns = zip(
                absent.tolist(),
                ids,
                frame[ORDER].tolist(),
                frame[INPUT].to_numpy(),
                frame[LABEL].tolist(),
                strict=True,
            )
            first += len(frame)
            for bits, id, order, x, label in columns:
                if not bits:
                    yield Event(id, order, x, label)
                    continue
                no_key, no_id, no_order, no_input, no_label = _bits(bits)
                yield Event(
                    None if no_id else id,
                    None if no_order else order,
                    None if no_input else x,
                    None if no_label else label,
                    "the row has no key" if no_key else None,
                )

    def frame(self, key: Sequence[Any], answers: Sequence[Answer]) -> pd.DataFrame:
        """Return answers as a table."""
        import pandas as pd

        keyless = [own.error == "the row has no key" for own in answers]
        columns: dict[str, Any] = {}
        for name, own in zip(self.keys, key, strict=True):
            columns[name] = _objects([None if bare else own for bare in keyless])
        if self.id is not None:
            columns[self.id] = _objects([own.id for own in answers])
        columns["prediction"] = _objects([self._plain(own.prediction) for own in answers])
        columns["rounds"] = _objects([own.rounds for own in answers])
        columns["error"] = _objects([own.error for own in answers])
        return pd.DataFrame(columns)

    def _plain(self, prediction: Any) -> Any:
        if prediction is None:
            return None
        return int(prediction) if self.single else np.ravel(prediction).tolist()

    def play_table(self, key: Sequence[Any], frame: pd.DataFrame) -> pd.DataFrame:
        """Play all rows of a key from its beginning."""
        answers, _ = self.player.play(self.key(key), self.events([frame]))
        return self.frame(key, answers)


def _bits(number: int) -> list[bool]:
    return [bool(number >> place & 1) for place in range(len(PARTS))]


def _objects(values: list[Any]) -> np.ndarray:
    """Return values as they are: lists stay entries, and whole numbers beside None stay whole."""
    made = np.empty(len(values), dtype=object)
    for place, own in enumerate(values):
        made[place] = own
    return made


@lru_cache(maxsize=8)
def _player(learner: bytes, limits: tuple[tuple[str, int | None], ...]) -> KeyPlayer:
    made: Any = learner_from(*archive.unpacked(learner, "the learner of the query"))
    return KeyPlayer(made, **dict(limits))  # type: ignore[arg-type]
