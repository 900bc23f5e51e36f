r"""Compiled code for doubly stochastic matrices.

*Oracle.* The assignment problem by shortest augmenting paths (Jonker and Volgenant, 1987).

*Projection and entropy.* With multipliers u of rows and v of columns the best matrix has the entries
:math:`f'(\theta_{ij} + u_i + v_j)`, where f is half the square of the positive part for the
projection, and the exponential for the entropy. The multipliers minimise the convex function

.. math:: \sum_{ij} f(\theta_{ij} + u_i + v_j) - \sum_i u_i - \sum_j v_j,

whose gradient is how far the sums of rows and columns are from 1. Newton's method takes second
derivatives f'' and eliminates the rows; where it gains nothing, all rows and then all columns are
balanced in turn. The entries that are positive settle after a few steps, and the next step is then
exact.

*Sampling.* Entries strictly between 0 and 1 form cycles through rows and columns. Along one of them
entries are raised and lowered in turn, up or down at random such that their means stay, until one is
0 or 1 (Gandhi, Khuller, Parthasarathy and Srinivasan, 2006): no more than n^2 times.
"""  # noqa: E501

from __future__ import annotations

import math

from driftline.kernels import CONJUGATE, POINT, helper, kernel, spread

__all__ = [
    "assign",
    "assign_room",
    "balance_room",
    "maximize",
    "project",
    "random_matching",
    "rounding_room",
    "sinkhorn",
]

#: Newton steps, and halvings of one; sweeps over rows and columns cost about as much as a step.
#: Where positive entries fall into blocks that balance only together, a step is as long as one
#: over ``PROXIMAL``: halvings must reach far below it.
MOST_STEPS, HALVINGS = 300, 60

#: How far sums may be from 1, over the size of entries.
CLOSE = 2e-15

#: Added to second derivatives, which are singular: nothing depends on a constant that moves from
#: rows to columns.
PROXIMAL = 1e-11

#: From this size of scores on, the best assignment is tried as a start.
DECIDED = 2.0

#: Entries that are nearer to 0 or 1 than this are not drawn.
WHOLE = 1e-12


def assign_room(n: int) -> int:
    """Return the scratch space that :func:`assign` needs."""
    return 6 * (n + 1)


def balance_room(n: int) -> int:
    """Return the scratch space of projections: the gap first."""
    return 1 + 10 * n + 2 * n * n + assign_room(n) + n


def rounding_room(n: int) -> int:
    """Return the scratch space that :func:`random_matching` needs."""
    return n * n + 6 * n + assign_room(n)


@helper
def assign(point, n, room, columns):
    """Write the column of each row in the best assignment, the first of several."""
    u, v = room[: n + 1], room[n + 1 : 2 * n + 2]
    row_of, came = room[2 * n + 2 : 3 * n + 3], room[3 * n + 3 : 4 * n + 4]
    least, used = room[4 * n + 4 : 5 * n + 5], room[5 * n + 5 : 6 * n + 6]
    for j in range(n + 1):
        u[j], v[j], row_of[j] = 0.0, 0.0, 0.0
    for i in range(1, n + 1):
        row_of[0] = i
        here = 0
        for j in range(n + 1):
            least[j], used[j], came[j] = math.inf, 0.0, 0.0  # where no cost is finite, from row i
        while row_of[here] != 0.0:
            used[here] = 1.0
            row, step, following = int(row_of[here]), math.inf, 0
            for j in range(1, n + 1):
                if used[j] == 0.0:
                    cost = -point[(row - 1) * n + j - 1] - u[row] - v[j]
                    if cost < least[j]:
                        least[j], came[j] = cost, here
                    if least[j] < step or following == 0:
                        step, following = least[j], j
            for j in range(n + 1):
                if used[j] > 0.0:
                    u[int(row_of[j])] += step
                    v[j] -= step
                else:
                    least[j] -= step
            here = following
        while here != 0:
            before = int(came[here])
            row_of[here] = row_of[before]
            here = before
    for j in range(1, n + 1):
        columns[int(row_of[j]) - 1] = j - 1


@kernel(POINT)
def maximize(point, params, scratch, out):
    """Write the best assignment as a matrix."""
    n = int(params[0])
    columns = scratch[:n]
    assign(point, n, scratch[n:], columns)
    for i in range(out.size):
        out[i] = 0.0
    for i in range(n):
        out[i * n + int(columns[i])] = 1.0


@helper
def decide(point, n, u, v, room):
    """Write multipliers of the best assignment, whose entries are then 1, and others at most 1."""
    assign(point, n, room[n:], room[:n])
    for i in range(n):
        u[i], v[i] = room[n + 1 + i] + 1.0, room[2 * n + 2 + i]


@helper
def dual(point, u, v, n, exponential, out):
    """Write the entries that multipliers lead to; return the function that these minimise."""
    total = 0.0
    for i in range(n):
        total -= u[i] + v[i]
        for j in range(n):
            value = point[i * n + j] + u[i] + v[j]
            if exponential:
                out[i * n + j] = math.exp(min(value, 700.0))
                total += out[i * n + j]
            else:
                out[i * n + j] = 0.0 if value < 0.0 else value  # NaN stays, to be noticed
                total += 0.5 * out[i * n + j] * out[i * n + j]
    return total


@helper
def missing(out, n, rows, columns):
    """Write by how much rows and columns fall short of 1; return the largest, signs apart."""
    for i in range(n):
        rows[i], columns[i] = 1.0, 1.0
    for i in range(n):
        for j in range(n):
            rows[i] -= out[i * n + j]
            columns[j] -= out[i * n + j]
    most = 0.0
    for i in range(n):
        most = max(most, abs(rows[i]), abs(columns[i]))
    return most


@helper
def threshold(point, u, v, n, i, exponential, by_rows):
    """Return the multiplier by which one row, or one column, adds up to 1."""
    top = -math.inf
    for j in range(n):
        value = point[i * n + j] + v[j] if by_rows else point[j * n + i] + u[j]
        top = max(top, value)
    if exponential:
        total = 0.0
        for j in range(n):
            value = point[i * n + j] + v[j] if by_rows else point[j * n + i] + u[j]
            total += math.exp(value - top)
        return -top - math.log(total)
    level = -1.0  # of entries over the largest one, which is at most 1 (Michelot, 1986)
    for _ in range(n + 1):
        total, kept = 0.0, 0
        for j in range(n):
            value = point[i * n + j] + v[j] if by_rows else point[j * n + i] + u[j]
            if value - top > level:
                total += value - top
                kept += 1
        root = (total - 1.0) / kept
        if not root > level:
            break
        level = root
    return -top - level


@helper
def sweep(point, u, v, n, exponential):
    """Balance all rows, and then all columns."""
    for i in range(n):
        u[i] = threshold(point, u, v, n, i, exponential, True)
    for j in range(n):
        v[j] = threshold(point, u, v, n, j, exponential, False)


@helper
def solve_columns(system, n, x):
    """Solve by Cholesky's method for the lower half of a matrix, in place."""
    for j in range(n):
        for k in range(j + 1):
            total = system[j * n + k]
            for i in range(k):
                total -= system[j * n + i] * system[k * n + i]
            if k < j:
                system[j * n + k] = total / system[k * n + k]
            else:
                system[j * n + j] = math.sqrt(max(total, 0.0) + PROXIMAL)
    for j in range(n):
        total = x[j]
        for i in range(j):
            total -= system[j * n + i] * x[i]
        x[j] = total / system[j * n + j]
    for j in range(n - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, n):
            total -= system[i * n + j] * x[i]
        x[j] = total / system[j * n + j]


@helper
def direction(out, n, exponential, rows, columns, by_rows, by_columns, sums, system):
    """Write Newton's step for the multipliers: rows are eliminated, and columns solved for."""
    for i in range(n):
        sums[i], by_columns[i] = PROXIMAL, columns[i]
        for j in range(n):
            system[i * n + j] = 0.0
    for i in range(n):
        for j in range(n):
            second = out[i * n + j]
            if not exponential and second > 0.0:
                second = 1.0
            sums[i] += second
            system[j * n + j] += second
    for i in range(n):
        for j in range(n):
            first = out[i * n + j]
            if first > 0.0:
                first = first if exponential else 1.0
                share = first / sums[i]
                by_columns[j] -= share * rows[i]
                for k in range(j + 1):
                    second = out[i * n + k]
                    if second > 0.0:
                        system[j * n + k] -= share * (second if exponential else 1.0)
    solve_columns(system, n, by_columns)
    for i in range(n):
        total = rows[i]
        for j in range(n):
            first = out[i * n + j]
            if first > 0.0:
                total -= (first if exponential else 1.0) * by_columns[j]
        by_rows[i] = total / sums[i]


@helper
def gap_of(u, v, rows, columns):
    """Return the duality gap of multipliers, from what sums of rows and columns lack."""
    n, middle, gap = u.size, 0.0, 0.0
    for i in range(n):
        middle += (u[i] - v[i]) / (2.0 * n)
    for i in range(n):
        gap += abs(u[i] - middle) * abs(rows[i]) + abs(v[i] + middle) * abs(columns[i])
    return gap


@helper
def search(point, n, exponential, u, v, by_rows, by_columns, slope, value, new_u, new_v, trial):
    """Go along a direction as far as the dual falls; return its value, infinite if nowhere."""
    step = 1.0
    for _ in range(HALVINGS if slope < 0.0 else 0):
        for i in range(n):
            new_u[i], new_v[i] = u[i] + step * by_rows[i], v[i] + step * by_columns[i]
        new = dual(point, new_u, new_v, n, exponential, trial)
        small = abs(new - value) <= 1e-13 * (1.0 + abs(value))  # rounding decides no more
        if new <= value + 1e-4 * step * slope or (small and step == 1.0):
            return new
        step *= 0.5
    return math.inf


@helper
def balance(point, n, exponential, room, out):
    """Write the balanced matrix, leave the duality gap first in the room; return the dual value."""
    u, v = room[1 : n + 1], room[n + 1 : 2 * n + 1]
    rows, columns = room[2 * n + 1 : 3 * n + 1], room[3 * n + 1 : 4 * n + 1]
    by_rows, by_columns = room[4 * n + 1 : 5 * n + 1], room[5 * n + 1 : 6 * n + 1]
    new_u, new_v = room[6 * n + 1 : 7 * n + 1], room[7 * n + 1 : 8 * n + 1]
    best_u, best_v = room[8 * n + 1 : 9 * n + 1], room[9 * n + 1 : 10 * n + 1]
    system = room[10 * n + 1 : 10 * n + 1 + n * n]
    trial = room[10 * n + 1 + n * n : 10 * n + 1 + 2 * n * n]
    size = 1.0
    for i in range(n * n):
        size = max(size, abs(point[i]))
    for i in range(n):
        u[i], v[i] = 0.0, 0.0
    sweep(point, u, v, n, exponential)
    least, idle = math.inf, 0
    value = dual(point, u, v, n, exponential, out)
    if size > DECIDED:
        decide(point, n, new_u, new_v, room[10 * n + 1 + 2 * n * n :])
        other = dual(point, new_u, new_v, n, exponential, trial)
        if other < value:
            value = other
            for i in range(n):
                u[i], v[i] = new_u[i], new_v[i]
            for i in range(n * n):
                out[i] = trial[i]
    for _ in range(MOST_STEPS):
        error = missing(out, n, rows, columns)
        if error < least:
            idle = 0 if error < 0.5 * least else idle + 1
            least = error
            for i in range(n):
                best_u[i], best_v[i] = u[i], v[i]
        else:
            idle += 1
        if error <= CLOSE * size or idle > 20:
            break
        direction(out, n, exponential, rows, columns, by_rows, by_columns, new_u, system)
        slope = 0.0
        for i in range(n):
            slope -= rows[i] * by_rows[i] + columns[i] * by_columns[i]
        given = (u, v, by_rows, by_columns, slope, value, new_u, new_v, trial)
        new = search(point, n, exponential, *given)
        if new < math.inf:
            value = new
            for i in range(n):
                u[i], v[i] = new_u[i], new_v[i]
            for i in range(n * n):
                out[i] = trial[i]
        else:
            sweep(point, u, v, n, exponential)
            value = dual(point, u, v, n, exponential, out)
    if least < missing(out, n, rows, columns):
        for i in range(n):
            u[i], v[i] = best_u[i], best_v[i]
    value = dual(point, u, v, n, exponential, out)
    missing(out, n, rows, columns)
    room[0] = gap_of(u, v, rows, columns)
    return value


@kernel(POINT)
def project(point, params, scratch, out):
    """Write the nearest doubly stochastic matrix; the scratch space begins with its gap."""
    balance(point, int(params[0]), False, scratch, out)


@kernel(CONJUGATE)
def sinkhorn(point, params, scratch, out):
    """Write the matrix of largest score and entropy; return the conjugate.

    At the solution the sum of all entries is n, and the conjugate the dual value less that.
    """
    n = int(params[0])
    return balance(point, n, True, scratch, out) - n


@helper
def between(matrix, n, first, stride, skip):
    """Return the first place of a row, or a column, with an entry between 0 and 1; -1 for none."""
    for k in range(n):
        if k != skip and WHOLE < matrix[first + k * stride] < 1.0 - WHOLE:
            return k
    return -1


@helper
def random_matching(mean, divisor, n, uniform, room, columns):
    """Draw the column of every row such that the matrix has the mean ``mean / divisor``."""
    matrix = room[: n * n]
    row_at, column_at = room[n * n : n * n + n], room[n * n + n : n * n + 2 * n]
    path_rows = room[n * n + 2 * n : n * n + 4 * n]
    path_columns = room[n * n + 4 * n : n * n + 6 * n]
    for i in range(n * n):
        matrix[i] = mean[i] / divisor
    first, drawn = 0, 0
    while first < n and drawn < n * n:
        start = between(matrix, n, first * n, 1, -1)
        if start < 0:
            first += 1
            continue
        for i in range(n):
            row_at[i], column_at[i] = -1.0, -1.0
        row, column, length, cycle = first, -1, 0, -1
        row_at[row] = 0.0
        while cycle < 0:
            column = between(matrix, n, row * n, 1, column)
            if column < 0:
                break
            path_rows[length], path_columns[length] = row, column
            length += 1
            if column_at[column] >= 0.0:
                cycle = int(column_at[column])
                break
            column_at[column] = length
            row = between(matrix, n, column, n, row)
            if row < 0:
                break
            path_rows[length], path_columns[length] = row, column
            length += 1
            if row_at[row] >= 0.0:
                cycle = int(row_at[row])
                break
            row_at[row] = length
        if cycle < 0:  # rounding has left a single entry between 0 and 1
            matrix[first * n + start] = math.floor(matrix[first * n + start] + 0.5)
            continue
        up, down = 1.0, 1.0
        for k in range(cycle, length):
            entry = matrix[int(path_rows[k]) * n + int(path_columns[k])]
            more, less = 1.0 - entry, entry
            if (k - cycle) % 2:
                more, less = less, more
            up, down = min(up, more), min(down, less)
        move = up if spread(uniform, drawn) < down / (up + down) else -down
        drawn += 1
        for k in range(cycle, length):
            place = int(path_rows[k]) * n + int(path_columns[k])
            matrix[place] += -move if (k - cycle) % 2 else move
            if matrix[place] < WHOLE:
                matrix[place] = 0.0
            elif matrix[place] > 1.0 - WHOLE:
                matrix[place] = 1.0
    assign(matrix, n, room[n * n + 6 * n :], columns)
