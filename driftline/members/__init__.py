"""Members that make no gradient steps: counts, tables, neighbours, trees, models of others.

No theorem bounds them alone. A committee of them is still bounded, by the loss of its best members.
"""

from driftline.members.column import Column as Column
from driftline.members.forest import Forest as Forest
from driftline.members.naive_bayes import NaiveBayes as NaiveBayes
from driftline.members.neighbours import Neighbours as Neighbours
from driftline.members.river import River as River
from driftline.members.river import member_of as member_of
from driftline.members.tables import Tables as Tables
