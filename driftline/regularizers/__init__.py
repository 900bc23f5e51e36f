"""Regularizers, which map scores to a mean prediction."""

from driftline.regularizers.base import Regularizer as Regularizer
from driftline.regularizers.entropy import Entropy as Entropy
from driftline.regularizers.quadratic import Quadratic as Quadratic
