"""The learner on one page, what a committee asks of one, online gradient descent, tickets."""

from driftline.engines import Asked as Asked
from driftline.learner.balance import Balance as Balance
from driftline.learner.base import Learner as Learner
from driftline.learner.core import Given as Given
from driftline.learner.late import Account as Account
from driftline.learner.late import Kept as Kept
from driftline.learner.late import Waiting as Waiting
from driftline.learner.member import Member as Member
from driftline.learner.member import Round as Round
from driftline.learner.member import check_longer as check_longer
from driftline.learner.member import round_rows as round_rows
from driftline.learner.ogd import OGD as OGD
from driftline.learner.predictor import Predictor as Predictor
from driftline.learner.probabilities import gives_probabilities as gives_probabilities
from driftline.learner.probabilities import labels_of as labels_of
from driftline.learner.probabilities import log_probabilities as log_probabilities
from driftline.learner.probabilities import tag_log_probabilities as tag_log_probabilities
from driftline.learner.sample_weight import LEAST_WEIGHT as LEAST_WEIGHT
from driftline.learner.sample_weight import MOST_WEIGHT as MOST_WEIGHT
from driftline.learner.sample_weight import checked_weights as checked_weights
from driftline.learner.sample_weight import multiplied as multiplied
from driftline.learner.shell import Shell as Shell
from driftline.learner.shell import checked_stream as checked_stream
from driftline.learner.shield import Shield as Shield
from driftline.learner.ticket import CODES as CODES
from driftline.learner.ticket import Ticket as Ticket
