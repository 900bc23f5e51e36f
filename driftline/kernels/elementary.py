r"""The exponential function and the logarithm, in a few operations without branches.

Those of the C library are calls of functions. These are compiled into kernels, which compute them
for several numbers at a time where a loop allows it. They are made of additions, multiplications
and quotients that are rounded as IEEE 754 says, none of them fused: bits do not depend on the
machine. Both are off by less than one unit in the last place.

With :math:`k` the nearest whole number to :math:`x / \ln 2` and :math:`r = x - k \ln 2`, of which
the parts of :math:`\ln 2` leave 33 bits more than a number has,

.. math:: e^x = 2^k (1 + r + r^2 q(r)), \qquad \ln(1 + x) = k \ln 2 + \ln(1 + f),

where :math:`q` interpolates at eleven Chebyshev nodes, and in the second
:math:`2^k (1 + f) = 1 + x` with a series in :math:`f / (2 + f)`.

References
----------
Sun Microsystems (1993), *Freely Distributable LIBM*, s_log1p.c.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.kernels.backend import intrinsic, twin, types
from driftline.kernels.compile import helper
from driftline.kernels.lanes import DOUBLE, Lanes

__all__ = ["exp", "log", "log1p", "power", "where"]

#: Added to a whole number of less than 2^51, it moves the number to the last bits of the sum.
SHIFT = 1.5 * 2.0**52

#: What is added to the bits of a number so that its exponent grows from the root of 2 on.
FROM_ROOT = 0x3FF0000000000000 - 0x3FE6A09E00000000

#: ln 2 in two parts. Products of the first with whole numbers below 2^20 are exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

#: 1 / ln 2.
PER_LN2 = 1.44269504088896338700e00

#: Where the exponential function is 0, and infinite, in double precision.
LOWEST, HIGHEST = -746.0, 710.0


@intrinsic
def select(typing_context, condition, one, other):
    """Select by a bit."""

    def generate(context, builder, signature, given):
        return builder.select(*given)

    return types.float64(types.boolean, types.float64, types.float64), generate


@twin(select)
def where(condition, one, other):
    """``one if condition else other``, without a branch."""
    return one if condition else other


def lanes_of(builder, value):
    """Return the operations on values like this one, a number or a vector."""
    return Lanes(builder, DOUBLE, getattr(value.type, "count", 1))


@intrinsic
def shifted_power(typing_context, shifted):
    """Put the last bits of a number into the exponent of another."""

    def generate(context, builder, signature, given):
        lanes = lanes_of(builder, given[0])
        exponents = builder.add(builder.bitcast(given[0], lanes.integers), lanes.whole(1023))
        return builder.bitcast(builder.shl(exponents, lanes.whole(52)), lanes.type)

    return shifted(shifted), generate


@twin(shifted_power)
def power_of_two(shifted):
    """``2 ** k`` for the sum of k and :data:`SHIFT`, with k from -1022 to 1023; else anything."""
    k = shifted - SHIFT
    if isinstance(k, np.ndarray):
        return np.ldexp(1.0, k.astype(int))
    return math.ldexp(1.0, int(k)) if -1023.0 < k < 1024.0 else 0.0


@intrinsic
def exponent(typing_context, number):
    """Move the exponent to the last bits of a number, and take away what else that has."""

    def generate(context, builder, signature, given):
        lanes = lanes_of(builder, given[0])
        exponents = builder.add(builder.bitcast(given[0], lanes.integers), lanes.whole(FROM_ROOT))
        exponents = builder.lshr(exponents, lanes.whole(52))
        exponents = builder.or_(exponents, lanes.whole(0x433 << 52))  # 2^52 plus the exponent
        less = lanes.constant(2.0**52 + 1023.0)
        return builder.fsub(builder.bitcast(exponents, lanes.type), less)

    return number(number), generate


@twin(exponent)
def exponent_of(number):
    """Return k such that ``2 ** -k`` times a number above 0 lies between the roots of 1/2 and 2."""
    return ((np.float64(number).view(np.int64) + FROM_ROOT) >> 52) - 1023.0


@intrinsic
def mantissa(typing_context, number):
    """Take the exponent from the bits of a number."""

    def generate(context, builder, signature, given):
        lanes = lanes_of(builder, given[0])
        bits = builder.bitcast(given[0], lanes.integers)
        power = builder.and_(builder.add(bits, lanes.whole(FROM_ROOT)), lanes.whole(0x7FF << 52))
        bits = builder.sub(bits, builder.sub(power, lanes.whole(0x3FF << 52)))
        return builder.bitcast(bits, lanes.type)

    return number(number), generate


@twin(mantissa)
def mantissa_of(number):
    """Return ``2 ** -k`` times the number, with k of :func:`exponent_of`."""
    return np.ldexp(number, -exponent_of(number).astype(int))


@helper
def power(x):
    """``e ** x`` for a number or a vector, where that lies far inside of the range of numbers."""
    k = (x * PER_LN2 + SHIFT) - SHIFT
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    s = r * r
    first = (0.5 + r * 0.1666666666666667) + s * (0.04166666666666667 + r * 0.008333333333325985)
    second = (0.0013888888888883642 + r * 0.00019841269875342141) + s * (
        2.4801587325920163e-05 + r * 2.7557254740405416e-06
    )
    third = (2.7557273171941026e-07 + r * 2.5105490906986696e-08) + s * 2.091488256348507e-09
    q = first + (s * s) * (second + (s * s) * third)
    y = 1.0 + (high + (s * q - low))
    half = k * 0.5 + SHIFT
    rest = (k - (half - SHIFT)) + SHIFT
    return y * power_of_two(half) * power_of_two(rest)


@helper
def exp(x):
    """``e ** x``: exact at 0; 0 and infinite where that is the nearest number; NaN for NaN."""
    return where(x < LOWEST, 0.0, where(x > HIGHEST, math.inf, power(x)))


@helper
def log1p(x):
    """``log(1 + x)`` for x of 0 or more; infinity and NaN stay what they are."""
    u = 1.0 + x
    k = exponent_of(u)
    near = k == 0.0
    f = where(near, x, mantissa_of(u) - 1.0)
    lost = where(near, 0.0, where(x < 1.0, x - (u - 1.0), 1.0 - (u - x)) * (1.0 / u))
    return where(x < math.inf, log_of(k, f, lost), x)


@helper
def log(x):
    """Return the logarithm of a number or a vector, above 0 and no less than normal numbers are."""
    return log_of(exponent_of(x), mantissa_of(x) - 1.0, 0.0)


@helper
def log_of(k, f, lost):
    """Return the logarithm of ``2 ** k * (1 + f)``, of which rounding has lost a little."""
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = (6.666666666666735130e-01 + w * 2.857142874366239149e-01) + (w * w) * (
        1.818357216161805012e-01 + w * 1.479819860511658591e-01
    )
    even = 3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + (z * odd + w * even)) + (k * LN2_LOW + lost))) - f)
