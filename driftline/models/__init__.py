"""How inputs and weights make scores: one weight vector per score, dense or sparse rows."""

from driftline.models.base import cast as cast
from driftline.models.csr import check_sparse as check_sparse
from driftline.models.dense import DenseRows as DenseRows
from driftline.models.groups import Groups as Groups
from driftline.models.items import Items as Items
from driftline.models.rows import Rows as Rows
from driftline.models.rows import fingerprint as fingerprint
from driftline.models.rows import largest_entry as largest_entry
from driftline.models.rows import refuse as refuse
from driftline.models.rows import row_of as row_of
from driftline.models.rows import rows_of as rows_of
from driftline.models.sequences import Sequences as Sequences
from driftline.models.sparse import SparseRows as SparseRows
from driftline.models.standardiser import Standardiser as Standardiser
