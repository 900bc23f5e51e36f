"""A learner's weights and state, and how rounds move them.

There are two engines with the same results. The compiled one hands all rounds to one
loop that calls the parts by address. The plain one is the paper's algorithm in Python, and
takes parts of any kind.
"""

from driftline.engines.base import Asked as Asked
from driftline.engines.base import Block as Block
from driftline.engines.base import Engine as Engine
from driftline.engines.base import Parts as Parts
from driftline.engines.choice import engine_for as engine_for
from driftline.engines.choice import warn_without_numba as warn_without_numba
from driftline.engines.compiled import CompiledEngine as CompiledEngine
from driftline.engines.plain import PlainEngine as PlainEngine
from driftline.engines.totals import Totals as Totals
