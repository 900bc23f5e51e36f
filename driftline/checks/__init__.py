"""Laws that parts and learners must obey, also for parts of your own.

Each check draws scores and labels, tests every law that the part claims, and raises
:class:`BrokenLawError` with the numbers that break it. It returns None if all laws hold.
"""

from driftline.checks.base import BrokenLawError as BrokenLawError
from driftline.checks.decoder import check_decoder as check_decoder
from driftline.checks.geometry import check_domain as check_domain
from driftline.checks.geometry import check_polytope as check_polytope
from driftline.checks.geometry import check_regularizer as check_regularizer
from driftline.checks.learner import check_learner as check_learner
from driftline.checks.loss import check_loss as check_loss
from driftline.checks.rate import check_detector as check_detector
from driftline.checks.rate import check_rate as check_rate
from driftline.checks.task import check_task as check_task
