"""Traces from files, of learners or of committees."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

__all__ = ["read_trace"]


def read_trace(path: Path) -> Any:
    """Return the trace of a learner or of a committee, whichever is in the file."""
    from driftline.committee import CommitteeTrace
    from driftline.errors import InputError
    from driftline.trace import Trace

    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} was not written by driftline: expected a trace")
    with zipfile.ZipFile(path) as content:
        names = content.namelist()
    if "about.json" in names and "risk.npy" not in names:
        raise InputError(
            f"{path} is a model or a journal: expected a trace, as driftline run --trace or "
            "trace.save writes it"
        )
    return CommitteeTrace.load(path) if "member_risk.npy" in names else Trace.load(path)
