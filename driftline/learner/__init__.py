"""The learner on one page, online gradient descent, tickets."""

from driftline.learner.base import Learner as Learner
from driftline.learner.ogd import OGD as OGD
from driftline.learner.ogd import Round as Round
from driftline.learner.ogd import check_longer as check_longer
from driftline.learner.predictor import Predictor as Predictor
from driftline.learner.shell import Shell as Shell
from driftline.learner.shell import checked_stream as checked_stream
from driftline.learner.ticket import Ticket as Ticket
