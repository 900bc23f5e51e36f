"""What is predicted, and what a mistake costs."""

from driftline.tasks.base import Distribution as Distribution
from driftline.tasks.base import Task as Task
from driftline.tasks.binary import Binary as Binary
from driftline.tasks.cost_sensitive import CostSensitive as CostSensitive
from driftline.tasks.multiclass import Multiclass as Multiclass
