"""Maps of inputs: scaling, curves, bins, products, trees, hashing; chains and unions of them."""

from driftline.features.base import Map as Map
from driftline.features.base import Mapper as Mapper
from driftline.features.bins import Bins as Bins
from driftline.features.block import Block as Block
from driftline.features.block import Categories as Categories
from driftline.features.block import check_categories as check_categories
from driftline.features.chain import Chain as Chain
from driftline.features.chain import Union as Union
from driftline.features.compiled import CompiledMap as CompiledMap
from driftline.features.crosses import Crosses as Crosses
from driftline.features.fitted import Fitted as Fitted
from driftline.features.fourier import Fourier as Fourier
from driftline.features.hashing import Hashing as Hashing
from driftline.features.hats import Hats as Hats
from driftline.features.inverse_counts import InverseCounts as InverseCounts
from driftline.features.lags import Lags as Lags
from driftline.features.narrow import Narrow as Narrow
from driftline.features.quadratic import Products as Products
from driftline.features.quadratic import Quadratic as Quadratic
from driftline.features.random_trees import RandomTrees as RandomTrees
from driftline.features.ranks import Ranks as Ranks
from driftline.features.raw import Raw as Raw
from driftline.features.recent import Recent as Recent
from driftline.features.shorten import Shorten as Shorten
from driftline.features.standardiser import Standardise as Standardise
from driftline.features.standardiser import Standardiser as Standardiser
