"""A row of a table that was predicted by name, and whose label is not known yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftline.errors import InputError
from driftline.learner import Ticket
from driftline.state import archive

__all__ = ["TableTicket"]

KIND = "TableTicket"


@dataclass(frozen=True, eq=False)
class TableTicket:
    """A prediction by name, and the ticket of the learner behind it.

    Plain data: :meth:`to_bytes` carries it through a file or to another process, where it is told
    to the same model.
    """

    prediction: Any
    ticket: Ticket

    @property
    def number(self) -> int:
        """The number of the ticket."""
        return self.ticket.number

    def to_bytes(self) -> bytes:
        """Return the ticket as the bytes of a sealed file."""
        about, arrays = self.ticket.to_saved()
        made = {"kind": KIND, "prediction": self.prediction, "ticket": about}
        return archive.packed(made, arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> TableTicket:
        """Return the ticket from what :meth:`to_bytes` returned, or refuse the bytes."""
        about, arrays = archive.unpacked(content, "the ticket")
        if about.get("kind") != KIND or not isinstance(about.get("ticket"), dict):
            raise InputError(f"expected a ticket of a table, but saw {about.get('kind')!r:.80}")
        return cls(about.get("prediction"), Ticket.from_saved(about["ticket"], arrays))
