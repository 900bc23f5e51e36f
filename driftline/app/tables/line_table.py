"""What tables with rows in lines have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driftline.app.tables.mark import Mark
from driftline.app.tables.piece import Piece
from driftline.app.tables.source import HURRY, Source

__all__ = ["LineTable"]


class LineTable:
    """Base of tables over a source of lines: keeps track of positions."""

    source: Source
    #: Rows that were read so far, and the last piece with the lines and rows before it.
    _count = 0
    _last: tuple[Piece, int, int] | None = None
    _start = (0, 0)
    #: Lines that were read ahead, for the next piece.
    _pending: Sequence[str] = ()

    def hurry(self) -> None:
        """Wait for no more than one line of a pipe: what columns hold is known."""
        self.source.patience = HURRY

    def pause_after(self, seconds: float) -> None:
        """Let pieces end if there is no row within some seconds; ``paused`` is true then."""
        self.source.idle = seconds

    @property
    def paused(self) -> bool:
        """Whether the last pieces have ended since no row came, and others may follow."""
        return self.source.paused

    def follow(self) -> None:
        """Wait for more rows at the end of the file from now on, if it is one to be followed."""
        self.source.follow()

    def _begins(self) -> None:
        """Record that the next piece begins here; the first one begins before the header."""
        if self._count:
            ahead = len(self._pending)
            self.source.forget_positions(ahead)
            self._start = self.source.number - ahead, self._count

    def _read(self, piece: Piece) -> Piece:
        self._last = (piece, *self._start)
        self._count += len(piece)
        return piece

    def marker(self, drop: int | None = None) -> Callable[[], Mark]:
        """Return a function for the position after the last piece, or after ``drop`` of its rows.

        It computes the digest when it is called, even if more has been read by then.
        """
        if drop is None or self._last is None or drop == len(self._last[0]):
            lines = through = self.source.number if self._count else 0
            drop, rows = 0, self._count
        else:
            piece, lines, before = self._last
            through, rows = piece.line(drop) - 1, before + drop
        digest = self.source.digests()
        bare = Mark(lines, drop, rows, through)
        return lambda: bare._replace(digest=self._digest(digest(through), rows))

    def _digest(self, lines: str, rows: int) -> str:
        """Return the digest of the first rows from that of their lines."""
        return lines

    def fits(self, mark: Mark) -> bool:
        """Read up to a mark, and return whether everything before it is unchanged."""
        self.source.skip(mark.through)
        found = self.source.digests()(mark.through)
        return found != "" and self._digest(found, mark.rows) == mark.digest

    def go_to(self, mark: Mark) -> None:
        """Move to the piece of a mark, which must not be before the current position."""
        if mark.lines:
            self._look_back(mark.lines)
            self.source.skip(mark.lines)
            self._count = mark.rows - mark.drop

    def _look_back(self, lines: int) -> None:
        """Of the rows that were read ahead, drop those in the first ``lines`` lines."""
        later = max(0, self.source.number - lines)
        self._pending = self._pending[len(self._pending) - later :]

    @property
    def progress(self) -> tuple[int, int | None]:
        """How much was read, and how much there is, in bytes."""
        return self.source.done, self.source.size

    def close(self) -> None:
        """Close the file."""
        self.source.close()
