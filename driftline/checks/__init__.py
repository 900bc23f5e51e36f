"""Laws that parts must obey, for parts of one's own too.

Each check draws scores and labels, states every law that the part claims, and raises
:class:`BrokenLawError` with the numbers that break it. Nothing is returned when all hold.
"""

from driftline.checks.base import BrokenLawError as BrokenLawError
from driftline.checks.decoder import check_decoder as check_decoder
from driftline.checks.loss import check_loss as check_loss
from driftline.checks.rate import check_detector as check_detector
from driftline.checks.rate import check_rate as check_rate
from driftline.checks.task import check_task as check_task
