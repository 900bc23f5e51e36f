"""Tables from files, read piece by piece, and how their columns become inputs and labels."""

from driftline.app.tables.delimited import DelimitedTable as DelimitedTable
from driftline.app.tables.encoder import Batch as Batch
from driftline.app.tables.encoder import Encoder as Encoder
from driftline.app.tables.guessing import guess as guess
from driftline.app.tables.mark import BEGINNING as BEGINNING
from driftline.app.tables.mark import Mark as Mark
from driftline.app.tables.opening import open_table as open_table
from driftline.app.tables.options import Options as Options
from driftline.app.tables.piece import Piece as Piece
from driftline.app.tables.piece import Table as Table
