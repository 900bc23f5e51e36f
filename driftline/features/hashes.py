r"""Keys to columns and signs, and rows of them.

Hashes are polynomials of degree 3 modulo the prime :math:`p = 2^{31} - 1`, with coefficients from a
seed: any four keys are hashed independently, which is what that variance asks for. A pair of
feature and value becomes a key by a linear hash of the feature and of the value's bits modulo p, so
that two pairs have one key with chance 1 / p (Carter and Wegman, 1979).
"""

from __future__ import annotations

import math

from driftline.kernels import HASH, helper, kernel

__all__ = ["DEGREE", "PRIME", "hashed"]

#: The prime that hashes are taken by.
PRIME = 2**31 - 1

#: Coefficients of each of the three hashes.
DEGREE = 4


@helper
def polynomial(key, coefficients):
    """Return a hash of a key, any four of which are independent."""
    value = 0
    for i in range(DEGREE):
        value = (value * key + int(coefficients[i])) % PRIME
    return value


@helper
def key_of(column, value, coefficients):
    """Return the key of a feature and its value, by all bits of the latter."""
    mantissa, exponent = math.frexp(abs(value))
    whole = int(mantissa * 2.0**53)
    sign = 1 if value < 0.0 else 0
    total = int(coefficients[0]) * column % PRIME
    total += int(coefficients[1]) * (whole >> 26) % PRIME
    total += int(coefficients[2]) * (whole & (2**26 - 1)) % PRIME
    total += int(coefficients[3]) * (2 * (exponent + 1100) + sign) % PRIME
    return total % PRIME


@kernel(HASH)
def hashed(values, columns, starts, constants, room, out, out_columns, out_starts):
    """Write hashed rows, columns rising; room is for two numbers an entry of a row, and one."""
    wide, categories = int(constants[0]), constants[1] > 0.0
    of_place, of_sign, of_pair = constants[2:6], constants[6:10], constants[10:14]
    most = room.size // 2
    keys, counts = room[:most], room[most:]
    out_starts[0], made = 0, 0
    for t in range(starts.size - 1):
        first, entries, largest = made, 0, 1.0 if categories else 0.0
        for i in range(starts[t], starts[t + 1]):
            if values[i] != 0.0:
                key = int(columns[i])
                if categories:
                    key = key_of(key, values[i], of_pair)
                else:
                    largest = max(largest, abs(values[i]))
                place = polynomial(key, of_place) % wide
                keys[entries] = 2 * place + polynomial(key, of_sign) % 2
                entries += 1
        # as many buckets as entries, so that few share one; what does is sorted afterwards
        for b in range(entries + 1):
            counts[b] = 0
        for k in range(entries):
            counts[keys[k] // 2 * entries // wide + 1] += 1
        for b in range(entries):
            counts[b + 1] += counts[b]
        k, before = 0, 0.0
        for i in range(starts[t], starts[t + 1]):
            if values[i] != 0.0:
                share = 1.0 if categories else values[i] / largest
                before += share * share
                place = keys[k] // 2
                b = place * entries // wide
                out[first + counts[b]] = share if keys[k] % 2 == 1 else -share
                out_columns[first + counts[b]] = place
                counts[b] += 1
                k += 1
        for i in range(first + 1, first + entries):
            share, place, at = out[i], out_columns[i], i
            while at > first and out_columns[at - 1] > place:
                out[at], out_columns[at] = out[at - 1], out_columns[at - 1]
                at -= 1
            out[at], out_columns[at] = share, place
        for i in range(first, first + entries):
            if made > first and out_columns[made - 1] == out_columns[i]:
                out[made - 1] += out[i]
            else:
                out[made], out_columns[made] = out[i], out_columns[i]
                made += 1
        after = 0.0
        for i in range(first, made):
            after += out[i] * out[i]
        length = math.sqrt(max(before, after))
        for i in range(first, made):
            out[i] /= length
        out_starts[t + 1] = made
    return starts.size - 1
