"""Learners that see only whether their prediction was right."""

from driftline.bandit.learner import Bandit as Bandit
from driftline.bandit.policy import DEFAULT as DEFAULT
from driftline.bandit.policy import Policy as Policy
