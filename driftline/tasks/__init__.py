"""What is predicted, and what a mistake costs."""

from driftline.tasks.abstaining import Abstaining as Abstaining
from driftline.tasks.base import Distribution as Distribution
from driftline.tasks.base import Task as Task
from driftline.tasks.binary import Binary as Binary
from driftline.tasks.cost_sensitive import CostSensitive as CostSensitive
from driftline.tasks.finite import Finite as Finite
from driftline.tasks.fixed_size import FixedSize as FixedSize
from driftline.tasks.fscore import FScore as FScore
from driftline.tasks.label_ranking import LabelRanking as LabelRanking
from driftline.tasks.matching import Matching as Matching
from driftline.tasks.multiclass import Multiclass as Multiclass
from driftline.tasks.multilabel import Multilabel as Multilabel
from driftline.tasks.ndcg import NDCG as NDCG
from driftline.tasks.oracle import Oracle as Oracle
from driftline.tasks.ordinal import Ordinal as Ordinal
from driftline.tasks.precision import PrecisionAtK as PrecisionAtK
from driftline.tasks.relevance import RelevanceTask as RelevanceTask
from driftline.tasks.sequence import Sequence as Sequence
from driftline.tasks.structured import StructuredTask as StructuredTask
