"""What a run owes to a comparator, round by round and in sums."""

from driftline.accounts.tally import Tally as Tally
from driftline.accounts.tally import Watched as Watched
from driftline.accounts.watch import Watch as Watch
from driftline.accounts.watch import settled as settled
