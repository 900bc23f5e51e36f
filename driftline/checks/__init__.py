"""Laws that parts and learners must obey, for those of one's own too.

Each check draws scores and labels, states every law that the part claims, and raises
:class:`BrokenLawError` with the numbers that break it. Nothing is returned when all hold.
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
