"""Convex hulls of encodings: best vertices, nearest points, mixtures of vertices."""

from driftline.polytopes.affine import Affine as Affine
from driftline.polytopes.base import Mixture as Mixture
from driftline.polytopes.base import Polytope as Polytope
from driftline.polytopes.birkhoff import Birkhoff as Birkhoff
from driftline.polytopes.chain import Chain as Chain
from driftline.polytopes.cube import Cube as Cube
from driftline.polytopes.frank_wolfe import ActiveSet as ActiveSet
from driftline.polytopes.frank_wolfe import Objective as Objective
from driftline.polytopes.frank_wolfe import SolverWarning as SolverWarning
from driftline.polytopes.frank_wolfe import minimize as minimize
from driftline.polytopes.frank_wolfe import nearest_point as nearest_point
from driftline.polytopes.frank_wolfe import warn_inexact as warn_inexact
from driftline.polytopes.hull import CachedOracle as CachedOracle
from driftline.polytopes.hull import Hull as Hull
from driftline.polytopes.hypersimplex import Hypersimplex as Hypersimplex
from driftline.polytopes.order_simplex import OrderSimplex as OrderSimplex
from driftline.polytopes.permutahedron import Permutahedron as Permutahedron
from driftline.polytopes.positions import Positions as Positions
from driftline.polytopes.relevance import PositiveRelevance as PositiveRelevance
from driftline.polytopes.relevance import Relevance as Relevance
from driftline.polytopes.simplex import Simplex as Simplex
from driftline.polytopes.solved import SolvedPolytope as SolvedPolytope
from driftline.polytopes.space import Space as Space
