"""Budgets of memory: what connections hold together, and the bodies that are being read."""

from __future__ import annotations

from typing import Protocol

from driftline.app.service.requests import RefusedError

__all__ = ["Bodies", "Budget"]


class Holder(Protocol):
    """A connection, as a budget sees it."""

    def abort(self) -> None:
        """Close the connection at once, and forget what it holds."""
        ...


class Budget:
    """The bytes that connections hold: unsent answers, and requests that are not parsed yet.

    Over the budget, the connections with most bytes are aborted. Parameter ``most`` is the budget;
    one connection alone may hold more.
    """

    def __init__(self, most: int):
        self._most, self._total = most, 0
        self._held: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        """Note how many bytes a connection holds from now on."""
        self._total += size - self._held.pop(holder, 0)
        if size:
            self._held[holder] = size
        while self._total > self._most and len(self._held) > 1:
            largest = max(self._held, key=self._held.__getitem__)
            self._total -= self._held.pop(largest)
            largest.abort()


class Bodies:
    """The bytes of bodies that are being read; one body alone may have any number of them."""

    def __init__(self, most: int):
        self._most, self._total = most, 0

    def add(self, known: int, more: int) -> None:
        """Count more bytes of a body; refuse them if other bodies have most of the budget."""
        if self._total + more > self._most and self._total > known:
            raise RefusedError(503, "too many bodies are being read: try again in a second")
        self._total += more

    def release(self, known: int) -> None:
        """Count a body no longer."""
        self._total -= known
