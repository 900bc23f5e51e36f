"""A row of a table that was predicted by name, and whose label is not known yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.errors import InputError
from driftline.learner import Ticket
from driftline.sets.level import of_label
from driftline.state import compact

__all__ = ["TableTicket"]

KIND = "TableTicket"


@dataclass(frozen=True, eq=False)
class TableTicket:
    """A prediction by name, and the ticket of the learner behind it.

    Plain data: :meth:`to_bytes` carries it through a file or to another process, where it is told
    to the same model. Of a model with sets, ``set`` has the labels of the row's set by name,
    ``chances`` those of all labels, and ``inside`` which of them are in the set.
    """

    prediction: Any
    ticket: Ticket
    set: list[str] | None = None
    chances: np.ndarray | None = None
    inside: np.ndarray | None = None

    @property
    def number(self) -> int:
        """The number of the ticket."""
        return self.ticket.number

    def told(self, label: int) -> tuple[float, bool]:
        """Return the chance that a label had, and whether it is in the set."""
        chances, inside = self.chances, self.inside
        if not (_is_row(chances, np.float64) and _is_row(inside, np.bool_)):
            raise InputError("the model has sets, and the ticket has none that could be its own")
        assert chances is not None and inside is not None
        if chances.shape != inside.shape:
            raise InputError(f"{len(chances)} chances do not belong to a set of {len(inside)}")
        if not ((chances >= 0.0) & (chances <= 1.0)).all():
            raise InputError(f"chances must lie between 0 and 1, but are {chances!r:.80}")
        return of_label(chances, inside, label)

    def to_bytes(self) -> bytes:
        """Return the ticket as bytes."""
        about, arrays = self.ticket.to_saved()
        made = {"kind": KIND, "prediction": self.prediction, "ticket": about, "set": self.set}
        sets = {} if self.chances is None else {"sets.chances": self.chances}
        sets |= {} if self.inside is None else {"sets.inside": self.inside}
        return compact.packed(made, arrays | sets)

    @classmethod
    def from_bytes(cls, content: bytes) -> TableTicket:
        """Return the ticket from what :meth:`to_bytes` returned, or refuse the bytes."""
        about, arrays = compact.unpacked(content, "the ticket")
        if about.get("kind") != KIND or not isinstance(about.get("ticket"), dict):
            raise InputError(f"expected a ticket of a table, but saw {about.get('kind')!r:.80}")
        sets = [arrays.get(name) for name in ("sets.chances", "sets.inside")]
        ticket = Ticket.from_saved(about["ticket"], arrays)
        return cls(about.get("prediction"), ticket, about.get("set"), *sets)


def _is_row(given: object, kind: type) -> bool:
    return isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype == kind
