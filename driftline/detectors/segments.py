r"""Change points of a series in hindsight: where its level has changed for good.

With :math:`S_k` the sum of the first k of n values minus k times their mean,

.. math::

    T = \max_k \frac{|S_k|}{\hat\sigma \sqrt n}

is large if the level before some k differs from that after it. While nothing changes, T is
distributed as the largest size of a Brownian bridge, whose tail is Kolmogorov's:
:math:`P(T > t) \approx 2 e^{-2 t^2}`. Of ranks, T is the statistic of Pettitt (1979): it asks
nothing of the distribution of the values, and outliers do not matter.

Successive values may depend on each other. Therefore :math:`\hat\sigma^2` is the *long-run*
variance, the sum of the autocovariances of what is left when the level before and after the change
has been subtracted, with Bartlett's weights up to a lag of n/32. So what wanders up and down within
a 32nd part of the series is its noise, and only what lasts longer is a change. It is no less than
that of an autoregression of first order, and no less than the median over quarters of the series.

Levels that go up and down again may hide from a test of the whole series. So its halves and its
quarters are tested as well, each half overlapping the next one, and the largest T of all eleven
counts, at a level divided by eleven (seeded binary segmentation). If there is a change, both parts
are searched in the same way, by those windows that lie within them, until there is none. A part is
never shorter than two lags, a 16th of the series. At last each change is moved to its most likely
place between its neighbours.

References
----------
Pettitt (1979), *A non-parametric approach to the change-point problem*, Applied Statistics 28.
Newey and West (1987), *A simple, positive semi-definite, heteroskedasticity and autocorrelation
consistent covariance matrix*, Econometrica 55.
Kovacs, Buehlmann, Li and Munk (2023), *Seeded binary segmentation: a general methodology for fast
and optimal changepoint detection*, Biometrika 110.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import kolmogi

from driftline.errors import InputError

__all__ = ["LEAST_ROWS", "change_points"]

#: The fewest values of a series that is searched.
LEAST_ROWS = 256

#: The longest lag is this part of the series, and at least so many values.
LAGS, LEAST_LAG = 32, 16

#: How many of the windows are quarters.
QUARTERS = 7


def change_points(series: npt.ArrayLike, level: float = 0.01) -> list[int]:
    """Return where values begin that differ from those before, in order.

    Parameters
    ----------
    series
        A column for each of several series that change together, such as the shares of categories;
        or one vector.
    level
        How probable a change may be found in one of the columns where there is none.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal(1000)
    >>> change_points(noise), change_points(noise + (np.arange(1000) >= 400))
    ([], [400])
    """
    values = np.asarray(series, dtype=np.float64)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    if values.ndim != 2 or not np.isfinite(values).all() or not 0.0 < level < 1.0:
        raise InputError("expected a finite value of each series for every time, and a level")
    if len(values) < LEAST_ROWS or not values.shape[1]:
        return []
    windows = _windows(len(values))
    lag, top = max(LEAST_LAG, len(values) // LAGS), float(kolmogi(level / len(windows)))
    scans = {window: _scan(values[slice(*window)], lag) for window in windows}
    usual = np.median([scans[window][2] for window in windows[-QUARTERS:]], axis=0)
    found, parts = [], [(0, len(values))]
    while parts:
        start, stop = parts.pop()
        if (start, stop) not in scans:
            scans[start, stop] = _scan(values[start:stop], lag)
        inner = [(a, b) for a, b in scans if start <= a and b <= stop]
        at, size = max((_largest(a, *scans[a, b], usual) for a, b in inner), key=lambda one: one[1])
        if size > top and stop - start >= 4 * lag:
            at = min(max(at, start + 2 * lag), stop - 2 * lag)
            found.append(at)
            parts += [(start, at), (at, stop)]
    ends = [0, *sorted(found), len(values)]
    for k in range(1, len(ends) - 1):
        ends[k] = _placed(values[ends[k - 1] : ends[k + 1]], 2 * lag) + ends[k - 1]
    return ends[1:-1]


def _windows(count: int) -> list[tuple[int, int]]:
    """Return the whole, halves and quarters, each overlapping the next.

    >>> _windows(16)[:5], len(_windows(16))
    ([(0, 16), (0, 8), (4, 12), (8, 16), (0, 4)], 11)
    """
    sizes = [(size, 2 * size - 1) for size in (1, 2, 4)]
    return [
        (k * count // (2 * parts), (k + 2) * count // (2 * parts))
        for parts, many in sizes
        for k in range(many)
    ]


def _placed(values: np.ndarray, least: int) -> int:
    """Return the most likely place of a change in normal values, by the series that shows it best.

    The largest sum, which has a simple law, is drawn to the middle.
    """
    variances = values.var(axis=0)
    moving = variances > 0.0
    sums = np.cumsum((values - values.mean(axis=0))[:, moving], axis=0)
    at = np.arange(least, len(values) - least + 1)
    gains = (sums[at - 1] ** 2 / variances[moving]).max(axis=1) / (at * (len(values) - at))
    return int(at[gains.argmax()])


def _largest(
    start: int, places: np.ndarray, sums: np.ndarray, variances: np.ndarray, usual: np.ndarray
) -> tuple[int, float]:
    """Return where the largest T of all series is, and its value.

    A series that is constant before and after its change has no noise at all.
    """
    sigma = np.sqrt(np.maximum(variances, usual))
    sizes = np.divide(sums, sigma, out=np.where(sums > 0.0, np.inf, 0.0), where=sigma > 0.0)
    best = int(sizes.argmax())
    return start + int(places[best]), float(sizes[best])


def _scan(values: np.ndarray, lag: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of each series its most probable change, the sum up to it, and the variance."""
    count, least = len(values), 2 * lag
    if count < 2 * least:
        return tuple(np.zeros((3, values.shape[1])))  # type: ignore[return-value]
    sums = np.cumsum(values - values.mean(axis=0), axis=0)
    inner = np.abs(sums[least - 1 : count - least])
    places = inner.argmax(axis=0)
    variances = np.zeros(len(places))
    for j, at in enumerate((least + places).tolist()):
        own = values[:, j]
        rest = np.r_[own[:at] - own[:at].mean(), own[at:] - own[at:].mean()]
        variances[j] = _long_run(rest, lag)
    return least + places, inner.max(axis=0) / np.sqrt(count), variances


def _long_run(rest: np.ndarray, lag: int) -> float:
    """Return the variance of sums of the values, per value.

    Two means were subtracted, which takes a share of 2 lag / n away. An estimate that happens to be
    small would make a change of nothing: it is no less than that of an autoregression with the
    same correlation of neighbours, and of independent values if that is negative.
    """
    plain = more = float(rest @ rest)
    if plain == 0.0:
        return 0.0
    lags = np.arange(1, lag + 1)
    weights = 2.0 * (1.0 - lags / (lag + 1))
    for k, weight in zip(lags.tolist(), weights.tolist(), strict=True):
        more += weight * float(rest[k:] @ rest[:-k])
    near = min(max(float(rest[1:] @ rest[:-1]) / plain, 0.0), 1.0)
    least = plain * (1.0 + float(weights @ near**lags))
    return max(least, more / (1.0 - 2.0 * lag / len(rest))) / len(rest)
