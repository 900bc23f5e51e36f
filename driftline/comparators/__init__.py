"""Sequences of weights to measure a learner against."""

from driftline.comparators.fixed import Fixed as Fixed
from driftline.comparators.piecewise import Piecewise as Piecewise
from driftline.comparators.sequence import Sequence as Sequence
