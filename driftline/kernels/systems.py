"""Systems of equations with a quasi-definite matrix: positive on some unknowns, else negative.

They have a Cholesky factor with signs, in any order of the unknowns (Vanderbei, 1995, *Symmetric
quasidefinite matrices*). Matrices are vectors of m rows, of which the lower half is read.
"""

from __future__ import annotations

from driftline.kernels.compile import helper
from driftline.kernels.linalg import add_scaled, dot

__all__ = ["factorise", "solve_factored"]

#: The least size of a pivot, and that over what it is a difference of: what rounding leaves of it
#: decides no step.
LEAST, ROUNDED = 1e-300, 1e-14


@helper
def factorise(system, m, first, last, row):
    """Factorise a matrix in place; pivots from ``first`` to before ``last`` are negative.

    ``row`` is room for m numbers.
    """
    for j in range(m):
        sign = -1.0 if first <= j < last else 1.0
        pivot, size = system[j * m + j], LEAST
        for k in range(j):
            row[k] = system[j * m + k] * system[k * m + k]
            part = system[j * m + k] * row[k]
            pivot -= part
            size = max(size, abs(part))
        pivot = sign * max(sign * pivot, ROUNDED * max(size, abs(system[j * m + j])))
        system[j * m + j] = pivot
        for i in range(j + 1, m):
            less = dot(system[i * m : i * m + j], row[:j])
            system[i * m + j] = (system[i * m + j] - less) / pivot


@helper
def solve_factored(system, m, x):
    """Solve with the factors, in place."""
    for i in range(m):
        x[i] -= dot(system[i * m : i * m + i], x[:i])
    for i in range(m):
        x[i] /= system[i * m + i]
    for i in range(m - 1, -1, -1):
        add_scaled(x[:i], -x[i], system[i * m : i * m + i])
