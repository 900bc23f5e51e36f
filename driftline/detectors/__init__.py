"""Detectors of drift: when to restart a learner."""

from driftline.detectors.alarms import AlarmLog as AlarmLog
from driftline.detectors.alarms import alarms_of as alarms_of
from driftline.detectors.base import Detector as Detector
from driftline.detectors.cusum import Cusum as Cusum
from driftline.detectors.segments import LEAST_ROWS as LEAST_ROWS
from driftline.detectors.segments import change_points as change_points
