"""Sinks: callbacks that receive the trace of a run batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

__all__ = ["Sink"]


class Sink(ABC):
    """A callback that receives the trace of every batch, in order, and keeps what it likes.

    A run enters it as a context manager before its first round, and exits it after its last. If the
    run is refused or interrupted, and so rolled back, ``__exit__`` is given the error. Only the
    trace of the first batch has the digest of the stream and the state before the first round, from
    which an audit starts. An error that the sink raises ends the run, which is then rolled back
    too.

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
        """Prepare for the first batch."""
        return self

    @abstractmethod
    def add(self, trace: Any) -> None:
        """Receive the trace of a batch. The sink may keep its columns: nobody else writes them."""

    def __exit__(  # noqa: B027
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish; or, if there was an error, drop all batches received."""
