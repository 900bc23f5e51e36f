"""The paper's experiments, and what the library adds to them."""

from driftline.paper.catalog import EXPERIMENTS as EXPERIMENTS
from driftline.paper.figures import draw as draw
from driftline.paper.methods import Method as Method
from driftline.paper.one_certificate import certify_one as certify_one
from driftline.paper.reproduce import Settings as Settings
from driftline.paper.reproduce import reproduce as reproduce
from driftline.paper.results import Results as Results
from driftline.paper.sweep import SCALES as SCALES
from driftline.paper.sweep import SWEEPS as SWEEPS
from driftline.paper.sweep import SweepSettings as SweepSettings
from driftline.paper.sweep import sweep as sweep
from driftline.paper.sweep_report import draw_sweep as draw_sweep
from driftline.paper.sweep_report import sweep_table as sweep_table
from driftline.paper.sweep_report import write_sweep as write_sweep
from driftline.paper.tables import tables as tables
from driftline.paper.telling import sections_of as sections_of
