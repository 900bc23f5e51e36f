"""Sets of labels that keep their coverage, whatever drifts."""

from driftline.sets.adaptive import Adaptive as Adaptive
from driftline.sets.level import SetLevel as SetLevel
from driftline.sets.run import SetRun as SetRun
