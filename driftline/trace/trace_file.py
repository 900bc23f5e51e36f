"""A trace that is written to disk while it grows."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from driftline import files
from driftline.errors import InputError
from driftline.state import archive
from driftline.trace.sink import Sink
from driftline.trace.trace import BATCHES, batch_name, with_suffix
from driftline.typing import Json

__all__ = ["TraceFile"]

#: Rounds are buffered until there are this many, and then written.
ROUNDS = 1 << 16


class TraceFile(Sink):
    """A sink that writes a run to one file, for ``Trace.load`` or ``CommitteeTrace.load``.

    However long the run is, at most 65 536 rounds are buffered in memory. When the run has ended,
    the file is complete and synced; a run that was refused or interrupted writes no file, and
    leaves an older one unchanged.

    Parameters
    ----------
    path
        The path of the file; it gets the suffix ``.npz``, as all traces do.

    Examples
    --------
    >>> import tempfile
    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=10_000, flips=3, seed=0)
    >>> learner = dl.OGD(dl.losses.Logistic(stream.task))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.run(stream, seed=0, sink=dl.TraceFile(f"{folder}/run.npz"))
    ...     dl.Trace.load(f"{folder}/run.npz")
    Trace(10000 rounds, target loss 431, risk 434.326, surrogate loss 1117.5)
    """

    def __init__(self, path: str | Path):
        self.path = with_suffix(path)
        self._stack: ExitStack | None = None

    def __enter__(self) -> TraceFile:
        """Begin a draft."""
        if self._stack is not None:
            raise InputError(f"{self.path} is being written already: a sink is for one run")
        self._waiting: list[Any] = []
        self._about: Json = {}
        self._rounds = self._batches = 0
        with ExitStack() as stack:
            handle = files.disk.open(stack.enter_context(files.drafted(self.path)))
            stack.callback(os.close, handle)
            self._writer = archive.Writer(lambda content: files.disk.write(handle, content))
            self._stack = stack.pop_all()
        return self

    def add(self, trace: Any) -> None:
        """Buffer the trace of a batch, and write when there are enough rounds."""
        self._waiting.append(trace)
        self._rounds += len(trace)
        if self._rounds >= ROUNDS:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        trace = type(self._waiting[0]).join(self._waiting)
        about, arrays = trace.to_saved()
        columns = trace.columns()
        if not self._batches:
            self._about = about
            for name in arrays.keys() - columns.keys():
                self._writer.add(name, arrays[name])
        for name, column in columns.items():
            self._writer.add(batch_name(name, self._batches), column)
        self._waiting, self._rounds, self._batches = [], 0, self._batches + 1

    def __exit__(self, *error: Any) -> None:
        """Finish the file; or, if there was an error, delete the draft."""
        assert self._stack is not None
        stack, self._stack = self._stack, None
        if error[0] is not None:
            self._writer.discard()
            stack.__exit__(*error)
            return
        with stack:
            try:
                self._write()
                self._writer.finish(self._about | {BATCHES: self._batches})
            except BaseException:
                self._writer.discard()
                raise
