"""Step sizes."""

from driftline.rates.adagrad import AdaGrad as AdaGrad
from driftline.rates.base import Rate as Rate
from driftline.rates.base import Setting as Setting
from driftline.rates.base import StepRange as StepRange
from driftline.rates.constant import Constant as Constant
from driftline.rates.decaying import Decaying as Decaying
from driftline.rates.polyak import Polyak as Polyak
from driftline.rates.relative import Relative as Relative
