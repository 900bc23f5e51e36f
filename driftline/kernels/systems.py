"""The steps of interior-point methods: systems of equations, and how far a step may go.

Matrices are quasi-definite, positive on some unknowns and negative on the others.
They have a Cholesky factor with signs, in any order of the unknowns (Vanderbei, 1995, *Symmetric
quasidefinite matrices*). Matrices are vectors with rows of a padded length, of which the upper half
is read: row j of the factor needs all rows before it, in one pass over them.
"""

from __future__ import annotations

from driftline.kernels.compile import helper
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.products import padded, pitch_of, product_from

__all__ = ["factorise", "furthest", "solve_factored", "system_room"]

#: The least size of a pivot, and that over what it is a difference of: what rounding leaves of it
#: decides no step.
LEAST, ROUNDED = 1e-300, 1e-14


def system_room(m: int) -> int:
    """Return the room for a matrix of m rows, and for finding its factor."""
    return (m + 3) * padded(m)


@helper
def factorise(system, m, first, last):
    """Factorise a matrix in place; pivots from ``first`` to before ``last`` are negative.

    Behind the matrix there is room for three rows; the last has the inverse pivots.
    """
    pitch = pitch_of(m)
    row, less = system[m * pitch : (m + 1) * pitch], system[(m + 1) * pitch : (m + 2) * pitch]
    inverse = system[(m + 2) * pitch :]
    for j in range(m):
        own = system[j * pitch : (j + 1) * pitch]
        sign, size = -1.0 if first <= j < last else 1.0, max(LEAST, abs(own[j]))
        for k in range(j):
            row[k] = system[k * pitch + j] * inverse[k]
            size = max(size, abs(row[k] * system[k * pitch + j]))
        product_from(row, 1, j, system, pitch, j, less)
        for k in range(j, m):
            own[k] -= less[k]
        own[j] = sign * max(sign * own[j], ROUNDED * size)
        inverse[j] = 1.0 / own[j]


@helper
def solve_factored(system, m, x):
    """Solve with the factors, in place."""
    pitch = pitch_of(m)
    inverse = system[(m + 2) * pitch :]
    for k in range(m):
        own = system[k * pitch + k + 1 : k * pitch + m]
        add_scaled(x[k + 1 :], -x[k] * inverse[k], own)
    for k in range(m - 1, -1, -1):
        own = system[k * pitch + k + 1 : k * pitch + m]
        x[k] = (x[k] - dot(own, x[k + 1 :])) * inverse[k]


@helper
def furthest(values, steps, most):
    """Return how far a step may go before a number becomes 0, at most ``most``."""
    for j in range(values.size):
        if steps[j] < 0.0:
            most = min(most, -values[j] / steps[j])
    return most
