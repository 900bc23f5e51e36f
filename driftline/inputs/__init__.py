"""Inputs: rows, items and chains, and how weights make scores of them."""

from driftline.inputs.base import cast as cast
from driftline.inputs.base import float_type as float_type
from driftline.inputs.csr import check_sparse as check_sparse
from driftline.inputs.dense import DenseRows as DenseRows
from driftline.inputs.groups import Groups as Groups
from driftline.inputs.items import Items as Items
from driftline.inputs.layout import Layout as Layout
from driftline.inputs.layout import OneVector as OneVector
from driftline.inputs.layout import VectorPerItem as VectorPerItem
from driftline.inputs.layout import VectorPerPosition as VectorPerPosition
from driftline.inputs.missing import FILLS as FILLS
from driftline.inputs.missing import running_sums as running_sums
from driftline.inputs.rows import Rows as Rows
from driftline.inputs.rows import fingerprint as fingerprint
from driftline.inputs.rows import largest_entry as largest_entry
from driftline.inputs.rows import refuse as refuse
from driftline.inputs.rows import row_of as row_of
from driftline.inputs.rows import rows_of as rows_of
from driftline.inputs.sequences import Sequences as Sequences
from driftline.inputs.sparse import SparseRows as SparseRows
from driftline.inputs.sparse_items import WIDE as WIDE
from driftline.inputs.sparse_items import SparseItems as SparseItems
from driftline.inputs.sparse_sequences import SparseSequences as SparseSequences
