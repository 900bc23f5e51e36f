"""Sequences of weights to measure a learner against."""

from driftline.comparators.checking import check_comparator as check_comparator
from driftline.comparators.fixed import Fixed as Fixed
from driftline.comparators.piecewise import Piecewise as Piecewise
from driftline.comparators.sequence import Sequence as Sequence
