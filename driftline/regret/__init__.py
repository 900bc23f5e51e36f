"""The regret of a run against a comparator, round by round and in sums."""

from driftline.regret.tally import Tally as Tally
from driftline.regret.tally import Watched as Watched
from driftline.regret.watch import Watch as Watch
from driftline.regret.watch import mark_idle as mark_idle
