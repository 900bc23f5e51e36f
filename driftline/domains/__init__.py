"""Where weights may lie."""

from driftline.domains.ball import Ball as Ball
from driftline.domains.ball_around import BallAround as BallAround
from driftline.domains.base import Domain as Domain
from driftline.domains.box import Box as Box
from driftline.domains.row_balls import RowBalls as RowBalls
from driftline.domains.unbounded import Unbounded as Unbounded
