"""The rounds that are kept for an audit, in a file that only grows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from driftline.app.runs.audit_buffer import AuditBuffer, joined, stacked
from driftline.app.runs.reading import Rounds
from driftline.committee import CommitteeTrace
from driftline.errors import InputError
from driftline.files import Appended
from driftline.state import archive
from driftline.state.loading import DAMAGE
from driftline.trace import Trace

__all__ = ["AuditFile"]

#: How long the length before a record is.
LENGTH = 8


class AuditFile:
    """Records of rounds behind each other: first what the committee was, then one a checkpoint.

    Parameters
    ----------
    path
        Made if it is not there.
    length, digest
        Of what is kept of it, as :class:`~driftline.files.Appended` has them.
    """

    def __init__(self, path: Path, length: int = 0, digest: str = ""):
        self.file = Appended(path, length, digest)

    def add(self, kept: AuditBuffer) -> None:
        """Write the rounds that were kept since the last time, for good."""
        rounds, traces = kept.unsaved()
        if not traces:
            return
        if not self.file.length:
            self._record(_beginning(traces[0]))
        self._record(_packed(rounds, traces))
        self.file.sync()
        kept.saved = len(kept.traces)

    def _record(self, content: bytes) -> None:
        self.file.write(len(content).to_bytes(LENGTH, "little") + content)

    def read(self, kept: AuditBuffer) -> None:
        """Keep all rounds of the file again."""
        with self.file.read() as file:
            records = _records(file, self.file.length)
            try:
                first = _begun(next(records))
                for record in records:
                    about, arrays = archive.unpacked(record, self.file.path)
                    kept.rounds.append(_rounds(about, arrays))
                    kept.traces.append(_trace(arrays, first))
                    bare = [replace(member, origin=None) for member in first.members]
                    first = replace(first, origin=None, members=tuple(bare))
            except (*DAMAGE, StopIteration) as error:
                raise InputError(f"{self.file.path} is damaged or was edited: {error}") from error
        kept.saved = len(kept.traces)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def _records(file: BinaryIO, length: int) -> Iterator[bytes]:
    while file.tell() < length:
        size = int.from_bytes(file.read(LENGTH), "little")
        if size > length - file.tell():
            raise InputError(f"a record of {size} bytes does not fit into it")
        yield file.read(size)


def _beginning(trace: CommitteeTrace) -> bytes:
    """Return a trace of one round as bytes, with what the committee was before."""
    members = tuple(_columns(member, 1, member) for member in trace.members)
    one = replace(_columns(trace, 1, trace), members=members)
    with tempfile.TemporaryDirectory() as folder:
        return one.save(Path(folder) / "first.npz").read_bytes()


def _begun(content: bytes) -> CommitteeTrace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first.npz"
        path.write_bytes(content)
        return CommitteeTrace.load(path)


def _columns(trace: Any, count: int, whole: Any) -> Any:
    return replace(trace, **{name: column[:count] for name, column in _by_name(whole).items()})


def _by_name(trace: CommitteeTrace | Trace) -> dict[str, np.ndarray]:
    """Return what a trace has for every round."""
    columns = {field.name: getattr(trace, field.name) for field in fields(trace)}
    return {k: c for k, c in columns.items() if isinstance(c, np.ndarray)}


def _packed(rounds: list[Rounds], traces: list[CommitteeTrace]) -> bytes:
    trace = joined(traces)
    arrays = {f"all.{name}": column for name, column in _by_name(trace).items()}
    for j, member in enumerate(trace.members):
        arrays |= {f"{j}.{name}": column for name, column in _by_name(member).items()}
    inputs, labels = stacked(rounds)
    about: dict[str, Any] = {"kind": "Rounds", "rows": sum(part.rows for part in rounds)}
    if isinstance(inputs, list):
        arrays["lengths"] = np.array([len(group) for group in inputs], dtype=np.int64)
        arrays |= {"inputs": np.concatenate(inputs), "labels": np.concatenate(labels)}
    else:
        arrays["labels"] = labels
        if hasattr(inputs, "indptr"):
            about |= {"width": inputs.shape[1], "index": inputs.indices.dtype.name}
            arrays |= {"inputs": inputs.data, "indices": inputs.indices.astype(np.int64)}
            arrays["indptr"] = inputs.indptr.astype(np.int64)
        else:
            arrays["inputs"] = inputs
    return archive.packed(about, arrays)


def _rounds(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Rounds:
    inputs: Any = arrays["inputs"]
    labels: Any = arrays["labels"]
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
    return Rounds(inputs, labels, len(labels), int(about["rows"]))


def _trace(arrays: dict[str, np.ndarray], first: CommitteeTrace) -> CommitteeTrace:
    members = tuple(
        replace(member, **_part(arrays, f"{j}.")) for j, member in enumerate(first.members)
    )
    return replace(first, **_part(arrays, "all."), members=members)


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
