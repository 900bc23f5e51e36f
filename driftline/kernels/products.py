"""Products of a vector and a matrix, and exponentials, several entries at a time.

A pass goes over the rows of a matrix with up to 32 columns at a time, whose sums stay in registers.
The order of a sum is the same for every column. Small matrices are padded, so that their rows are a
multiple of 8 entries (:func:`padded`) and are read in whole SIMD vectors: loops that a compiler
vectorises by itself lose half of their time in rows of 5 to 30 entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftline.kernels.backend import COMPILES, cgutils, intrinsic, types
from driftline.kernels.compile import helper
from driftline.kernels.lanes import DOUBLE, INDEX, Lanes, array_of, index

__all__ = [
    "LEAST_EXPONENT",
    "best_sums",
    "exponentials",
    "padded",
    "pitch_of",
    "product",
    "product_from",
    "turn",
]

#: How many entries a padded row is a multiple of.
WIDTH = 8

#: Exponentials of smaller numbers are 0.
LEAST_EXPONENT = -400.0

#: The logarithm of 2 in two parts, the first with few enough digits to be multiplied exactly.
LOG_2_HIGH, LOG_2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6

#: Added to a number below 2^51 in size, it leaves the nearest integer in the last bits.
ROUNDER = 1.5 * 2.0**52

#: The Taylor coefficients of the exponential, the highest first: at half of ln 2 the rest is 4e-18.
TAYLOR = [1.0 / math.factorial(i) for i in range(13, -1, -1)]


def padded(size: int) -> int:
    """Return a size rounded up to whole SIMD vectors."""
    return (size + WIDTH - 1) // WIDTH * WIDTH


#: The same for kernels.
pitch_of = helper(padded)


def build_block(vectors: int, width: int, sums: bool) -> Callable[..., None]:
    """Make a pass over the rows of a flat matrix, for some columns from column k on.

    These are ``vectors`` times ``width``.

    It writes ``sum of a[i stride] matrix[i]`` over rows i, or else the largest of ``a[i stride] +
    matrix[i]``. The matrix may be in single precision.
    """

    @intrinsic
    def block(typing_context, a, stride, rows, matrix, pitch, k, out):
        def generate(context, builder, signature, given):
            lanes = Lanes(builder, DOUBLE, width)
            given_as = Lanes(builder, context.get_value_type(signature.args[3].dtype), width)
            start, _ = array_of(context, builder, signature.args[0], given[0])
            entries, _ = array_of(context, builder, signature.args[3], given[3])
            written, _ = array_of(context, builder, signature.args[6], given[6])
            stride, rows, pitch, k = given[1], given[2], given[4], given[5]
            first = lanes.zero if sums else lanes.constant(-math.inf)
            totals = [cgutils.alloca_once_value(builder, first) for _ in range(vectors)]
            places = [builder.add(k, index(i * width)) for i in range(vectors)]
            with cgutils.for_range_slice(builder, index(0), rows, index(1), INDEX) as (i, _):
                x = lanes.spread(builder.load(builder.gep(start, [builder.mul(i, stride)])))
                start_of_row = builder.mul(i, pitch)
                for place, total in zip(places, totals, strict=True):
                    row = given_as.load(entries, builder.add(start_of_row, place))
                    row, before = given_as.widen(row), builder.load(total)
                    if sums:
                        after = lanes.add_product(before, x, row)
                    else:
                        added = builder.fadd(x, row)
                        larger = builder.fcmp_ordered(">", added, before)
                        after = builder.select(larger, added, before)
                    builder.store(after, total)
            for place, total in zip(places, totals, strict=True):
                lanes.store(builder.load(total), written, place)
            return context.get_dummy_value()

        whole = types.int64
        return types.void(a, whole, whole, matrix, whole, whole, out), generate

    return block


def build_pass(sums: bool) -> Callable[..., None]:
    """Make ``run(a, stride, rows, matrix, pitch, k, out)``, from column k of a flat matrix on."""
    if not COMPILES:

        def plainly(a, stride, rows, matrix, pitch, k, out):
            x = a[: max(0, (rows - 1) * stride + 1) : stride, np.newaxis]
            entries = matrix[: rows * pitch].reshape(rows, pitch)[:, k:]
            out[k:pitch] = (x * entries).sum(axis=0) if sums else (x + entries).max(axis=0)

        return plainly

    most, three, two, one = (build_block(vectors, WIDTH, sums) for vectors in (4, 3, 2, 1))
    single = build_block(1, 1, sums)

    @helper
    def run(a, stride, rows, matrix, pitch, k, out):
        while pitch - k >= 32:
            most(a, stride, rows, matrix, pitch, k, out)
            k += 32
        if pitch - k >= 24:
            three(a, stride, rows, matrix, pitch, k, out)
            k += 24
        elif pitch - k >= 16:
            two(a, stride, rows, matrix, pitch, k, out)
            k += 16
        elif pitch - k >= WIDTH:
            one(a, stride, rows, matrix, pitch, k, out)
            k += WIDTH
        while k < pitch:
            single(a, stride, rows, matrix, pitch, k, out)
            k += 1

    return run


_product_from, _best_sums_from = build_pass(sums=True), build_pass(sums=False)


@helper
def product(a, stride, rows, matrix, pitch, out):
    """Write ``sum of a[i stride] matrix[i]``."""
    _product_from(a, stride, rows, matrix, pitch, 0, out)


@helper
def product_from(a, stride, rows, matrix, pitch, k, out):
    """Write the same from column k on, and a few columns before it."""
    _product_from(a, stride, rows, matrix, pitch, k // WIDTH * WIDTH, out)


@helper
def best_sums(a, stride, rows, matrix, pitch, out):
    """Write the largest ``a[i stride] + matrix[i]``."""
    _best_sums_from(a, stride, rows, matrix, pitch, 0, out)


@intrinsic
def _turn(typing_context, matrix, pitch, out):
    """Write the transpose of a padded square matrix; a compiler would scatter, which is slow."""

    def generate(context, builder, signature, given):
        lanes, pitch = Lanes(builder, DOUBLE, WIDTH), given[1]
        entries, _ = array_of(context, builder, signature.args[0], given[0])
        written, _ = array_of(context, builder, signature.args[2], given[2])
        with cgutils.for_range_slice(builder, index(0), pitch, index(1), INDEX) as (k, _):
            row = builder.mul(k, pitch)
            with cgutils.for_range_slice(builder, index(0), pitch, index(WIDTH), INDEX) as (i, _):
                column = lanes.zero
                for j in range(WIDTH):
                    place = builder.mul(builder.add(i, index(j)), pitch)
                    entry = builder.load(builder.gep(entries, [builder.add(place, k)]))
                    column = builder.insert_element(column, entry, index(j))
                lanes.store(column, written, builder.add(row, i))
        return context.get_dummy_value()

    return types.void(matrix, types.int64, out), generate


def _plain_turn(matrix, pitch, out):
    out[: pitch * pitch] = matrix[: pitch * pitch].reshape(pitch, pitch).T.ravel()


#: Write the transpose of a square matrix of padded rows, as many as they have entries.
turn = _turn if COMPILES else _plain_turn


@intrinsic
def _exponentials(typing_context, values):
    """Replace the entries of a vector, of a padded size, by their exponentials."""

    def generate(context, builder, signature, given):
        lanes = Lanes(builder, DOUBLE, WIDTH)
        entries, (size,) = array_of(context, builder, signature.args[0], given[0])
        bits = lanes.integers
        rounder = lanes.constant(ROUNDER)
        with cgutils.for_range_slice(builder, index(0), size, index(WIDTH), INDEX) as (i, _):
            x = lanes.load(entries, i)
            shifted = lanes.add_product(rounder, x, lanes.constant(1.0 / math.log(2.0)))
            power = builder.fsub(shifted, rounder)
            rest = lanes.add_product(x, power, lanes.constant(-LOG_2_HIGH))
            rest = lanes.add_product(rest, power, lanes.constant(-LOG_2_LOW))
            total = lanes.constant(TAYLOR[0])
            for coefficient in TAYLOR[1:]:
                total = lanes.add_product(lanes.constant(coefficient), total, rest)
            exponent = builder.shl(builder.bitcast(shifted, bits), lanes.whole(52))
            exponent = builder.add(exponent, lanes.whole(1023 << 52))
            total = builder.fmul(total, builder.bitcast(exponent, lanes.type))
            small = builder.fcmp_ordered("<", x, lanes.constant(LEAST_EXPONENT))
            lanes.store(builder.select(small, lanes.zero, total), entries, i)
        return context.get_dummy_value()

    return types.void(values), generate


def _plain_exponentials(values):
    values[:] = np.where(values < LEAST_EXPONENT, 0.0, np.exp(values))


#: Replace numbers up to 700, as many as a padded row has, by their exponentials; those of numbers
#: below :data:`LEAST_EXPONENT` are 0.
exponentials = _exponentials if COMPILES else _plain_exponentials
