"""The paper's experiments, and what the library adds to them."""

from driftline.experiments.catalog import EXPERIMENTS as EXPERIMENTS
from driftline.experiments.figures import draw as draw
from driftline.experiments.methods import Method as Method
from driftline.experiments.reproduce import Settings as Settings
from driftline.experiments.reproduce import reproduce as reproduce
from driftline.experiments.results import Results as Results
from driftline.experiments.tables import tables as tables
