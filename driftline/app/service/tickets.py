"""Tickets of rows that wait for their labels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from driftline.app.service.hosted import Hosted
from driftline.app.service.records import Stored

__all__ = ["FRESH", "Tickets"]

#: The most rows whose tickets are in memory only.
FRESH = 4_000
#: How many bytes of tickets that are written, or will be with the next commit, stay in memory.
MEMORY = 64 << 20
#: About how many bytes of tickets are in memory only.
UNWRITTEN = 256 << 20

#: The tickets of a row, one for each learner.
Several: TypeAlias = dict[int, Any]


class Tickets:
    """Tickets by the record of their row, the newest in memory only.

    A ticket follows from the log, so that it need not be written, until a snapshot has its row: a
    replay then begins after it. Most labels come before that, and their tickets are never packed.

    Parameters
    ----------
    stored
        Returns what is written of a record.
    failed
        Called with a model whose tickets cannot be packed, and why; nothing is written of these.
    fresh
        The most rows whose tickets are in memory only.
    """

    def __init__(
        self,
        stored: Callable[[int], Iterable[Stored]],
        failed: Callable[[Hosted, Exception], object],
        fresh: int = FRESH,
    ):
        self._stored, self._failed, self._most = stored, failed, fresh
        self._fresh: OrderedDict[int, tuple[Hosted, Several, int]] = OrderedDict()
        self._known: OrderedDict[int, tuple[int, Several]] = OrderedDict()
        self._unwritten, self._size = 0, 0

    def add(self, hosted: Hosted, seq: int, tickets: Several) -> None:
        """Keep the tickets of a row."""
        size = sum(hosted.readers[number].served.ticket_bytes for number in tickets)
        self._fresh[seq] = hosted, tickets, size
        self._unwritten += size

    def add_late(self, hosted: Hosted, seq: int, learner: int, ticket: Any) -> Stored | None:
        """Keep the ticket of a learner that came after its row; return what is to be written."""
        if seq in self._fresh:
            self._fresh[seq][1][learner] = ticket
            return None
        if seq in self._known:
            self._known[seq][1][learner] = ticket
        return Stored(seq, learner, b"", hosted.readers[learner].served.pack(ticket))

    def take(self, hosted: Hosted, seq: int) -> Several:
        """Return the tickets of a row whose label has come, and keep them no longer."""
        if (fresh := self._fresh.pop(seq, None)) is not None:
            self._unwritten -= fresh[2]
            return fresh[1]
        if (known := self._known.pop(seq, None)) is not None:
            self._size -= known[0]
            return known[1]
        readers = hosted.readers
        return {
            own.learner: readers[own.learner].served.unpack(own.kept)
            for own in self._stored(seq)
            if own.kept and own.learner in readers
        }

    def drop(self, hosted: Hosted) -> None:
        """Keep the tickets of a model no longer."""
        for seq in [seq for seq, own in self._fresh.items() if own[0] is hosted]:
            self._unwritten -= self._fresh.pop(seq)[2]

    def to_store(self, most: int | None = None) -> list[Stored]:
        """Return what is to be written so that this many rows at most are in memory only.

        Fewer where their tickets are large.
        """
        most, made = self._most if most is None else most, []
        while len(self._fresh) > most or self._unwritten > UNWRITTEN:
            seq, (hosted, tickets, held) = self._fresh.popitem(last=False)
            self._unwritten -= held
            try:
                packed = [
                    Stored(seq, number, b"", hosted.readers[number].served.pack(ticket))
                    for number, ticket in tickets.items()
                    if number in hosted.readers
                ]
            except Exception as error:  # the tickets of other models are written all the same
                self._failed(hosted, error)
                continue
            made += packed
            size = sum(len(own.kept) for own in packed)
            self._known[seq] = size, tickets
            self._size += size
        while self._size > MEMORY:
            self._size -= self._known.popitem(last=False)[1][0]
        return made
