"""Who is told what happens in a run while it goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

__all__ = ["Sink"]


class Sink(ABC):
    """A listener: it is handed the trace of every batch, in order, and keeps what it likes.

    A run opens it before its first round by ``with``, and closes it after its last. If the run is
    refused or interrupted, and so was never made, ``__exit__`` is told of the error. Only the trace
    of the first batch has the digest of the stream and the state before the first round, from which
    an audit starts. An error of the sink's own ends the run, which then was never made either.

    Examples
    --------
    >>> import driftline as dl
    >>> class Mistakes(dl.Sink):
    ...     count = 0
    ...
    ...     def add(self, trace):
    ...         self.count += int(trace.target_loss.sum())
    >>> stream = dl.streams.LabelFlips(rounds=20_000, flips=3, seed=0)
    >>> mistakes = Mistakes()
    >>> dl.OGD(dl.losses.Logistic(stream.task)).run(stream, sink=mistakes)
    >>> mistakes.count == dl.OGD(dl.losses.Logistic(stream.task)).run(stream).target_loss.sum()
    np.True_
    """

    def __enter__(self) -> Sink:
        """Begin to listen."""
        return self

    @abstractmethod
    def add(self, trace: Any) -> None:
        """Take the trace of a batch, whose columns are the sink's to keep."""

    def __exit__(  # noqa: B027
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish; or, if there was an error, forget what was handed over."""
