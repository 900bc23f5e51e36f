"""Many learners over many streams and seeds, on all cores or a cluster."""

from driftline.sweeps.grid import grid
from driftline.sweeps.playing import sweep
from driftline.sweeps.table import SweepRow, SweepTable

__all__ = ["SweepRow", "SweepTable", "grid", "sweep"]
