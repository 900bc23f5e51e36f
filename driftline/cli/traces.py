"""Traces from files, whoever made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["read_trace"]


def read_trace(path: Path) -> Any:
    """Return the trace of a learner or of a committee, whichever is in the file."""
    import numpy as np

    from driftline.committee import CommitteeTrace
    from driftline.trace import Trace

    try:
        with np.load(path, allow_pickle=False) as file:
            alone = "member_risk" not in file
    except Exception:
        alone = True  # and what is wrong with the file is said by who loads it
    return Trace.load(path) if alone else CommitteeTrace.load(path)
