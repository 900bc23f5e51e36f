"""Compiled code: the only package that knows Numba."""

from driftline.kernels.calls import call_decode as call_decode
from driftline.kernels.calls import call_mix as call_mix
from driftline.kernels.calls import call_values as call_values
from driftline.kernels.compile import Kernel as Kernel
from driftline.kernels.compile import cache_directory as cache_directory
from driftline.kernels.compile import helper as helper
from driftline.kernels.compile import kernel as kernel
from driftline.kernels.dense import play_dense as play_dense
from driftline.kernels.linalg import argmax as argmax
from driftline.kernels.program import Program as Program
from driftline.kernels.signatures import CONJUGATE as CONJUGATE
from driftline.kernels.signatures import DECODE as DECODE
from driftline.kernels.signatures import DRAW as DRAW
from driftline.kernels.signatures import ENCODE as ENCODE
from driftline.kernels.signatures import ENCODE_LOSS as ENCODE_LOSS
from driftline.kernels.signatures import LOSS as LOSS
from driftline.kernels.signatures import MIX as MIX
from driftline.kernels.signatures import POINT as POINT
from driftline.kernels.signatures import RATE as RATE
from driftline.kernels.signatures import VALUES as VALUES
from driftline.kernels.sorting import pool_decreasing as pool_decreasing
from driftline.kernels.sorting import sort_decreasing as sort_decreasing
from driftline.kernels.sorting import sorting_room as sorting_room
from driftline.kernels.sparse import play_sparse_32 as play_sparse_32
from driftline.kernels.sparse import play_sparse_64 as play_sparse_64
