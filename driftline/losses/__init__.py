"""Surrogate losses: convex in the scores, and what a learner descends."""

from driftline.losses.base import Loss as Loss
from driftline.losses.hinge import Hinge as Hinge
from driftline.losses.logistic import Logistic as Logistic
from driftline.losses.scaled import Scaled as Scaled
from driftline.losses.smooth_hinge import SmoothHinge as SmoothHinge
