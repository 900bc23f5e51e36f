"""Tables from files, read piece by piece, and how their columns become inputs and labels."""

from driftline.tables.delimited import DelimitedTable as DelimitedTable
from driftline.tables.encoder import Batch as Batch
from driftline.tables.encoder import Encoder as Encoder
from driftline.tables.guessing import guess as guess
from driftline.tables.mark import BEGINNING as BEGINNING
from driftline.tables.mark import Mark as Mark
from driftline.tables.opening import open_table as open_table
from driftline.tables.piece import Piece as Piece
from driftline.tables.piece import Table as Table
from driftline.tables.wishes import Wishes as Wishes
