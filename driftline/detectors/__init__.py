"""Detectors of drift: when to restart a learner."""

from driftline.detectors.base import Detector as Detector
from driftline.detectors.cusum import Cusum as Cusum
