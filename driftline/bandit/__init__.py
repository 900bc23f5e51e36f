"""Learners that see only whether their prediction was right, or judgements of what they showed."""

from driftline.bandit.clicks import Clicks as Clicks
from driftline.bandit.hits import Bandit as Bandit
from driftline.bandit.loss_only import LossOnly as LossOnly
from driftline.bandit.policy import DEFAULT as DEFAULT
from driftline.bandit.policy import Policy as Policy
