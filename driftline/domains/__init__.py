"""Where weights may lie."""

from driftline.domains.ball import Ball as Ball
from driftline.domains.ball_around import BallAround as BallAround
from driftline.domains.base import Domain as Domain
from driftline.domains.unbounded import Unbounded as Unbounded
