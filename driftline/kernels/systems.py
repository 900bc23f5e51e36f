"""The steps of interior-point methods: systems of equations, and how far a step may go.

Matrices are quasi-definite, positive on some unknowns and negative on the others.
They have a Cholesky factor with signs, in any order of the unknowns (Vanderbei, 1995, *Symmetric
quasidefinite matrices*). Matrices are vectors with rows of a padded length, of which the upper half
is read: row j of the factor needs all rows before it, in one pass over them.
"""

from __future__ import annotations

from driftline.kernels.compile import helper, routine
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.products import padded, pitch_of, product_from

__all__ = [
    "eliminate",
    "factorise",
    "furthest",
    "solve_backward",
    "solve_factored",
    "solve_forward",
    "system_room",
]

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
    eliminate(system, m, m, first, last)


@routine
def eliminate(system, m, count, first, last):
    """Do the same for the first ``count`` unknowns; what is left of the others takes their place.

    A chain of blocks is factorised so, each with its coupling to the next.
    """
    pitch = pitch_of(m)
    row, less = system[m * pitch : (m + 1) * pitch], system[(m + 1) * pitch : (m + 2) * pitch]
    inverse = system[(m + 2) * pitch :]
    for j in range(m):
        own, before = system[j * pitch : (j + 1) * pitch], min(j, count)
        sign, size = -1.0 if first <= j < last else 1.0, max(LEAST, abs(own[j]))
        for k in range(before):
            row[k] = system[k * pitch + j] * inverse[k]
            size = max(size, abs(row[k] * system[k * pitch + j]))
        product_from(row, 1, before, system, pitch, j, less)
        for k in range(j, m):
            own[k] -= less[k]
        if j < count:
            own[j] = sign * max(sign * own[j], ROUNDED * size)
            inverse[j] = 1.0 / own[j]


@helper
def solve_factored(system, m, x):
    """Solve with the factors, in place."""
    inverse = system[(m + 2) * pitch_of(m) :]
    solve_forward(system, inverse, m, m, x)
    solve_backward(system, inverse, m, m, x)


@helper
def solve_forward(rows, inverse, m, count, x):
    """Subtract from the right side what the first ``count`` unknowns take, by their rows."""
    pitch = pitch_of(m)
    for k in range(count):
        add_scaled(x[k + 1 :], -x[k] * inverse[k], rows[k * pitch + k + 1 : k * pitch + m])


@helper
def solve_backward(rows, inverse, m, count, x):
    """Find the first ``count`` unknowns, given the others."""
    pitch = pitch_of(m)
    for k in range(count - 1, -1, -1):
        own = rows[k * pitch + k + 1 : k * pitch + m]
        x[k] = (x[k] - dot(own, x[k + 1 :])) * inverse[k]


@helper
def furthest(values, steps, most):
    """Return how far a step may go before a number becomes 0, at most ``most``."""
    for j in range(values.size):
        if steps[j] < 0.0:
            most = min(most, -values[j] / steps[j])
    return most
