"""Several learners as one."""

from driftline.committee.committee import Committee as Committee
from driftline.committee.lineup import auto as auto
from driftline.committee.lineup import guarded as guarded
from driftline.committee.named import LEARNERS as LEARNERS
from driftline.committee.named import named as named
from driftline.committee.shares import Shares as Shares
from driftline.committee.trace import CommitteeTrace as CommitteeTrace

#: A learner, as `Keyed` is.
Guarded = guarded
