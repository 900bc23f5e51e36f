"""Exponentials and logarithms of kernels: near the truth, with the same bits without Numba."""

from __future__ import annotations

import functools
import math
import operator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_without_numba import without_numba

from driftline.kernels import COMPILES, MIX, aligned_zeros, exp, kernel, log1p, vectors
from driftline.kernels.elementary import log, power_of_two
from driftline.kernels.inner import inner

pytestmark = pytest.mark.skipif(not COMPILES, reason="needs Numba")


@kernel(MIX)
def exponentials(values, squares, params, out):
    for i in range(values.size):
        out[i] = exp(values[i])


@kernel(MIX)
def logarithms(values, squares, params, out):
    for i in range(values.size):
        out[i] = log1p(values[i])


@kernel(MIX)
def products(values, squares, params, out):
    out[0] = inner(values, squares)


def room(size: int) -> np.ndarray:
    return aligned_zeros((1, max(1, size)), np.float64, apart=True)[0, :size]


def apply(function, *given) -> np.ndarray:
    """Return what a kernel makes of numbers, whose count is a multiple of eight."""
    vectors = [room(len(one)) for one in given]
    for vector, one in zip(vectors, given, strict=True):
        vector[:] = one
    out = room(len(given[0]))
    nothing = np.zeros(0)
    function(vectors[0], vectors[1] if len(vectors) > 1 else nothing, nothing, out)
    return out


def error_of(found: float, true: Decimal) -> float:
    """Return the error in units of the last place of the nearest number."""
    nearest = float(true)
    return float(abs(Decimal(found) - true) / Decimal(math.ulp(nearest)))


def true_exp(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(x).exp()


def true_log1p(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 400 if x < 1e-100 else 160
        return (1 + Decimal(x)).ln()


def numbers(low: float, high: float, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count)


@pytest.mark.parametrize("low, high", [(-745.0, 709.7), (-40.0, 0.0), (-0.4, 0.4), (-1e-8, 1e-8)])
def test_exponentials_are_off_by_less_than_a_unit_in_the_last_place(low, high):
    x = numbers(low, high, 4000, seed=1)
    found = apply(exponentials, x)
    assert max(error_of(*pair) for pair in zip(found, map(true_exp, x), strict=True)) < 1.0


@pytest.mark.parametrize("low, high", [(-40.0, 0.0), (-1.0, 1.0), (0.0, 4.0), (4.0, 700.0)])
def test_logarithms_are_off_by_less_than_a_unit_in_the_last_place(low, high):
    x = np.exp(numbers(low, high, 2000, seed=2))
    found = apply(logarithms, x)
    assert max(error_of(*pair) for pair in zip(found, map(true_log1p, x), strict=True)) < 1.0


@settings(max_examples=300, deadline=None)
@given(st.floats(-800.0, 720.0))
def test_exponentials_of_any_number(x):
    (found, *_) = apply(exponentials, np.full(8, x))
    true = true_exp(x)
    if true > Decimal(np.finfo(float).max):
        assert found in (math.inf, np.finfo(float).max)
    else:
        assert error_of(found, true) < 1.0


def test_exponentials_at_the_ends():
    x = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, -746.0, 710.0, 709.782712893384])
    made = apply(exponentials, x)
    assert made[:2].tolist() == [1.0, 1.0] and math.isnan(made[2])
    assert made[3:7].tolist() == [math.inf, 0.0, 0.0, math.inf] and made[7] < math.inf
    tiny = apply(exponentials, np.linspace(-745.2, -744.0, 8))
    assert tiny.tolist() == [float(true_exp(x)) for x in np.linspace(-745.2, -744.0, 8)]


def test_logarithms_at_the_ends():
    x = np.array([0.0, math.inf, math.nan, 1e-320, 2.0**-60, np.finfo(float).max, 1.0, 2.0**53])
    made = apply(logarithms, x)
    assert made[:2].tolist() == [0.0, math.inf] and math.isnan(made[2])
    assert made[3:5].tolist() == [1e-320, 2.0**-60]
    assert max(error_of(a, true_log1p(b)) for a, b in zip(made[5:], x[5:], strict=True)) < 1.0


@pytest.mark.parametrize("function", [exponentials, logarithms])
@pytest.mark.parametrize("start", [0.0, 0.34657359027997, 0.41421356237309, 1.0, 1.03972077084])
def test_both_are_monotone(function, start):
    """Neighbours, about where the number of halvings changes and elsewhere."""
    first = np.float64(start).view(np.int64)
    x = (max(0, first - 20_000) + np.arange(40_000)).view(np.float64)
    assert (np.diff(apply(function, x)) >= 0.0).all()
    if function is exponentials:
        assert (np.diff(apply(function, -x)) <= 0.0).all()


PLAIN = """
from driftline.kernels import exp, log1p
from test_elementary import FEW, SMALL
made = [exp(x) for x in FEW], [log1p(x) for x in SMALL]
"""
FEW = [*numbers(-745, 709, 400, seed=7).tolist(), 0.0, 1.0, -1.0, 1e-300, -746.5, 711.0, -0.3, 0.4]
SMALL = [
    *np.exp(numbers(-700, 700, 400, seed=8)).tolist(),
    0.0,
    0.3,
    0.5,
    1.0,
    2.0,
    9.0,
    1e9,
    4e307,
]


def test_plain_python_has_the_bits_of_compiled_code():
    """Where there is no Numba, kernels are the functions that they are written as."""
    (powers, logs), _ = without_numba(PLAIN)
    assert powers == apply(exponentials, FEW).tolist()
    assert logs == apply(logarithms, SMALL).tolist()


@pytest.mark.parametrize("k", [-1022, -1, 0, 1, 52, 1023])
def test_powers_of_two(k):
    @kernel(MIX)
    def powers(values, squares, params, out):
        out[0] = power_of_two(values[0] + 1.5 * 2.0**52)

    assert apply(powers, np.full(8, float(k)))[0] == math.ldexp(1.0, k)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 23, 40])
def test_sums_of_products_have_one_order(size):
    """Eight sums, added in halves, and one of the rest: numbers of few digits show the order."""
    generator = np.random.default_rng(size)
    a, b = generator.integers(-9, 10, (2, size)) * 2.0 ** generator.integers(-30, 31, (2, size))
    whole = size - size % 8
    eight, out = (a * b)[:whole].reshape(-1, 8), room(8)
    sums = [functools.reduce(operator.add, column, 0.0) for column in eight.T]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [left + right for left, right in zip(sums[:half], sums[half:], strict=True)]
    products(a, b, np.zeros(0), out)
    assert out[0] == sums[0] + functools.reduce(operator.add, (a * b)[whole:], 0.0)
    assert out[0] == pytest.approx(math.fsum(a * b), rel=1e-12, abs=1e-3)


@kernel(MIX)
def lanes(values, others, params, out):
    for i in range(0, values.size, vectors.LANES):
        one, other = vectors.load(values, i), vectors.load(others, i)
        made = vectors.above(one, other, one * other - other, vectors.power_down(0.0 - one))
        made = made + log(one) / other * vectors.squares(1.0 - 2.0**-9)
        vectors.store(made + vectors.total(one) * vectors.spread(2.0), out, i)


PLAIN_LANES = """
import numpy as np
from test_elementary import OTHERS, SMALL_ONES, lanes
made = np.zeros(len(OTHERS))
lanes(np.array(SMALL_ONES), np.array(OTHERS), None, made)
made = made.tolist()
"""
SMALL_ONES = np.exp(numbers(-690, 3, 400, seed=9)).tolist()
OTHERS = numbers(0.001, 0.3, 400, seed=10).tolist()


def test_vectors_have_the_bits_of_arrays():
    made, _ = without_numba(PLAIN_LANES)
    assert made == apply(lanes, SMALL_ONES, OTHERS).tolist()


def test_logarithms_of_vectors_are_off_by_less_than_a_unit_in_the_last_place():
    @kernel(MIX)
    def logs(values, squares, params, out):
        for i in range(0, values.size, vectors.LANES):
            vectors.store(log(vectors.load(values, i)), out, i)

    x = np.exp(numbers(-700.0, 700.0, 2000, seed=11))
    pairs = zip(apply(logs, x), x, strict=True)
    assert max(error_of(made, Decimal(own).ln()) for made, own in pairs) < 1.0
