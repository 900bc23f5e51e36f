"""The rounds for an audit, in a file that only grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from driftline.app.runs.audit_buffer import (
    AuditBuffer,
    stacked,
    stacked_delays,
    stacked_weights,
)
from driftline.app.runs.reading import Rounds
from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.files import Appended
from driftline.state import archive
from driftline.state.loading import DAMAGE
from driftline.typing import Inputs, Json, Labels

__all__ = ["AuditFile", "load_inputs", "save_inputs"]

#: How long the length before a record is.
LENGTH = 8
#: The kind of a file of inputs.
KIND = "Inputs"


class AuditFile:
    """Records of rounds, one for each checkpoint: their trace, inputs and labels.

    Parameters
    ----------
    path
        The file; created if it is missing.
    length, digest
        How many bytes are kept, and their digest, as in :class:`~driftline.files.Appended`.
    """

    def __init__(self, path: Path, length: int = 0, digest: str = ""):
        self.file = Appended(path, length, digest)

    def add(self, buffer: AuditBuffer) -> None:
        """Append the rounds since the last call, and sync the file."""
        rounds, traces = buffer.unsaved()
        if not traces:
            return
        record = _packed(rounds, traces)
        self.file.write(len(record).to_bytes(LENGTH, "little") + record)
        self.file.sync()
        buffer.saved = len(buffer.traces)

    def read(self, buffer: AuditBuffer) -> None:
        """Add all rounds of the file to a buffer."""
        with self.file.read() as file:
            try:
                for record in _records(file, self.file.length):
                    about, arrays = archive.unpacked(record, self.file.path)
                    buffer.rounds.append(_rounds(about, arrays))
                    buffer.traces.append(CommitteeTrace.from_saved(about, arrays))
            except DAMAGE as error:
                raise InputError(f"{self.file.path} is damaged or was edited: {error}") from error
        buffer.saved = len(buffer.traces)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _records(file: BinaryIO, length: int) -> Iterator[bytes]:
    while file.tell() < length:
        size = int.from_bytes(file.read(LENGTH), "little")
        if size > length - file.tell():
            raise InputError(f"a record of {size} bytes does not fit into it")
        yield file.read(size)


def save_inputs(path: Path, buffer: AuditBuffer) -> Path:
    """Write inputs and labels of all rounds, as the learner took them, to one file."""
    about, arrays = _to_saved(buffer.rounds)
    return archive.write(path, {"kind": KIND, **about}, arrays)


def load_inputs(path: Path) -> Rounds:
    """Read what :func:`save_inputs` wrote, or refuse the file."""
    about, arrays = archive.read(path)
    if about.get("kind") != KIND:
        raise InputError(f"{path} does not hold inputs: expected what driftline run --trace writes")
    try:
        return _rounds(about, arrays)
    except DAMAGE as error:
        raise InputError(f"{path} is damaged or was edited: {error}") from error


def _packed(rounds: list[Rounds], traces: list[CommitteeTrace]) -> bytes:
    about, arrays = CommitteeTrace.join(traces).to_saved()
    more, inputs = _to_saved(rounds)
    return archive.packed(about | more, arrays | inputs)


def _to_saved(rounds: list[Rounds]) -> tuple[Json, dict[str, np.ndarray]]:
    about: Json = {"rows": sum(part.rows for part in rounds)}
    arrays: dict[str, np.ndarray] = {}
    inputs, labels = stacked(rounds)
    if (weights := stacked_weights(rounds)) is not None:
        arrays["counts"] = weights
    if (delays := stacked_delays(rounds)) is not None:
        arrays["delays"] = delays
    if isinstance(inputs, list):
        arrays["lengths"] = np.array([len(group) for group in inputs], dtype=np.int64)
        arrays |= {"inputs": np.concatenate(inputs), "labels": np.concatenate(labels)}
    else:
        arrays["labels"] = np.asarray(labels)
        if hasattr(inputs, "indptr"):
            about |= {"width": inputs.shape[1], "index": inputs.indices.dtype.name}
            arrays |= {"inputs": inputs.data, "indices": inputs.indices.astype(np.int64)}
            arrays["indptr"] = inputs.indptr.astype(np.int64)
        else:
            arrays["inputs"] = inputs
    return about, arrays


def _rounds(about: Json, arrays: dict[str, np.ndarray]) -> Rounds:
    inputs: Inputs = arrays["inputs"]
    labels: Labels = arrays["labels"]
    if "lengths" in arrays:
        ends = np.cumsum(arrays["lengths"])[:-1]
        inputs, labels = np.split(inputs, ends), np.split(labels, ends)
    elif "indptr" in arrays:
        from scipy.sparse import csr_array

        index = np.dtype(about["index"])
        places = arrays["indices"].astype(index), arrays["indptr"].astype(index)
        shape = (len(places[1]) - 1, int(about["width"]))
        inputs = csr_array((inputs, *places), shape=shape)
        inputs.check_format(full_check=True)
    weights, delays, rows = arrays.get("counts"), arrays.get("delays"), int(about["rows"])
    return Rounds(inputs, labels, len(labels), rows, weights=weights, delays=delays)
