"""Members that make no gradient steps: counts, tables, neighbours, trees, models of River.

They know no theorem. A committee that votes or draws is bounded all the same, by its best members.
"""

from driftline.members.forest import Forest as Forest
from driftline.members.naive_bayes import NaiveBayes as NaiveBayes
from driftline.members.neighbours import Neighbours as Neighbours
from driftline.members.river import River as River
from driftline.members.tables import Tables as Tables
