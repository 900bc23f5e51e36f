"""What notices that the world has changed."""

from driftline.detectors.base import Detector as Detector
from driftline.detectors.cusum import Cusum as Cusum
