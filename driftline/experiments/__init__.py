"""The paper's experiments, and what the library adds to them."""

from driftline.experiments.catalog import EXPERIMENTS as EXPERIMENTS
from driftline.experiments.figures import draw as draw
from driftline.experiments.methods import Method as Method
from driftline.experiments.one_certificate import certify_one as certify_one
from driftline.experiments.reproduce import Settings as Settings
from driftline.experiments.reproduce import reproduce as reproduce
from driftline.experiments.results import Results as Results
from driftline.experiments.sweep import SCALES as SCALES
from driftline.experiments.sweep import SWEEPS as SWEEPS
from driftline.experiments.sweep import SweepSettings as SweepSettings
from driftline.experiments.sweep import sweep as sweep
from driftline.experiments.sweep_report import draw_sweep as draw_sweep
from driftline.experiments.sweep_report import sweep_table as sweep_table
from driftline.experiments.sweep_report import write_sweep as write_sweep
from driftline.experiments.tables import tables as tables
from driftline.experiments.telling import sections_of as sections_of
