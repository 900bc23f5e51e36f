"""Charts as SVG text: lines over rounds, stacked shares, and a heat map.

Colours are CSS classes, so that the page can be light or dark; nothing is loaded from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from driftline.reports.time_axis import TimeAxis

__all__ = ["Line", "heat_map", "line_chart", "share_chart", "sparkline", "ticks"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 270, 58, 12, 20, 34

#: What times below the rounds add to the height.
TIMES = 15

SPARK_WIDTH, SPARK_HEIGHT = 150, 34

#: The most points of a line: more would not be visible.
MOST_POINTS = 400

#: As many shares are told apart as there are colours.
MOST_SHARES = 8


@dataclass(frozen=True)
class Line:
    """A line of a chart: its points, its name and its colour."""

    name: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    colour: int
    dashed: bool = False
    run: int = 0


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers between two others.

    >>> ticks(0.0, 97.0)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    span = max(high - low, 1e-12)
    size = 10.0 ** math.floor(math.log10(span / count))
    step = next(size * m for m in (1, 2, 5, 10, 20) if span / (size * m) <= count)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    r"""Return a number in few characters, which no line break parts.

    >>> [number(value) for value in (0.0123456, 3.0, 45312.0, 2e9)]
    ['0.01235', '3', '45\xa0312', '2e+09']
    """
    if 1e3 <= abs(value) < 1e8:
        return f"{value:,.0f}".replace(",", "\u00a0")
    return f"{value:.4g}"


class _Frame:
    """The coordinates of a chart."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]):
        self.x, self.y = x, y

    def across(self, value: npt.ArrayLike) -> np.ndarray:
        low, high = self.x
        return LEFT + (np.asarray(value) - low) / max(high - low, 1e-12) * (WIDTH - LEFT - RIGHT)

    def up(self, value: npt.ArrayLike) -> np.ndarray:
        low, high = self.y
        share = (np.asarray(value) - low) / max(high - low, 1e-12)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def axes(
        self, x_name: str, y_name: str, shares: bool = False, times: TimeAxis | None = None
    ) -> list[str]:
        made = []
        for value in ticks(*self.y):
            at = float(self.up(value))
            text = f"{100 * value:.3g}%" if shares else number(value)
            made.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
            made.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" class="end">{text}</text>')
        below, foot, bottom = ticks(*self.x, count=7), HEIGHT - BOTTOM + 16, HEIGHT - 4
        for value in below:
            at, kind = self._below(value)
            made.append(f'<text x="{at:.1f}" y="{foot}" class="{kind}">{number(value)}</text>')
        if times is not None:
            x_name, bottom = f"{x_name}, {times.name}", bottom + TIMES
            for k, (value, label) in enumerate(zip(below, times.labels(below), strict=True)):
                at, kind = self._below(value)
                made.append(
                    f'<text x="{at:.1f}" y="{foot + TIMES}" class="{kind} time{k % 2}">'
                    f"{escape(label)}<title>{escape(times.at(value))}</title></text>"
                )
        middle = (LEFT + WIDTH - RIGHT) / 2
        made.append(f'<text x="{middle}" y="{bottom}" class="mid name">{escape(x_name)}</text>')
        made.append(f'<text x="4" y="{TOP - 9}" class="name">{escape(y_name)}</text>')
        return made

    def _below(self, value: float) -> tuple[float, str]:
        """Return where a label below the chart is, and whether it ends there."""
        at = float(self.across(value))
        return at, "end" if at > WIDTH - 2 * RIGHT else "mid"


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    y_name: str = "",
    marks: dict[str, Sequence[float]] | None = None,
    shares: bool = False,
    x_name: str = "round",
    times: TimeAxis | None = None,
) -> str:
    """Return lines over rounds, with vertical marks at events, by kind.

    Over another quantity, which is named, the axis need not begin at 0. Times are below the rounds.
    """
    ends = [float(np.max(line.x)) for line in lines]
    start = 0.0 if x_name == "round" else min(float(np.min(line.x)) for line in lines)
    tops = [float(np.nanmax(line.y)) for line in lines]
    lows = [float(np.nanmin(line.y)) for line in lines]
    frame = _Frame((start, max(ends)), (min(0.0, *lows), max(*tops, 1e-9) * 1.05))
    made = frame.axes(x_name, y_name, shares, times)
    for kind, places in (marks or {}).items():
        path = "".join(f"M{frame.across(p):.1f} {TOP}V{HEIGHT - BOTTOM}" for p in places)
        if path:
            made.append(f'<path class="mark {escape(kind)}" d="{path}"/>')
    for line in lines:
        x, y = _thinned(np.asarray(line.x, float), np.asarray(line.y, float))
        points = zip(frame.across(x), frame.up(y), strict=True)
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        kind = f"line c{line.colour % 8} run{line.run}" + (" dashed" if line.dashed else "")
        last = number(float(np.asarray(line.y)[-1]))
        made.append(
            f'<path class="{kind}" d="{path}"><title>{escape(line.name)}: {last} at the end'
            "</title></path>"
        )
    legend = [(line.name, line.colour, line.dashed) for line in lines]
    return _figure(title, made, legend, HEIGHT + TIMES * (times is not None))


def share_chart(
    title: str,
    x: np.ndarray,
    shares: np.ndarray,
    names: Sequence[str],
    times: TimeAxis | None = None,
) -> str:
    """Return a stacked chart of shares that add up to 1; of many, the largest and all others."""
    shares, names = _largest(np.asarray(shares, float), names)
    x, stacked = np.asarray(x, float), np.cumsum(shares, axis=1)
    kept = _kept(len(x))
    x, stacked = x[kept], stacked[kept]
    frame = _Frame((0.0, float(x[-1])), (0.0, 1.0))
    made, below = frame.axes("round", "", True, times), np.zeros(len(x))
    for j, name in enumerate(names):
        upper = zip(frame.across(x), frame.up(stacked[:, j]), strict=True)
        lower = zip(frame.across(x)[::-1], frame.up(below)[::-1], strict=True)
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in (*upper, *lower)) + "Z"
        mean = float(shares[:, j].mean())
        made.append(
            f'<path class="area c{j % 8}" d="{path}"><title>{escape(name)}: {100 * mean:.3g}% on '
            "average</title></path>"
        )
        below = stacked[:, j]
    legend = [(name, j, False) for j, name in enumerate(names)]
    return _figure(title, made, legend, HEIGHT + TIMES * (times is not None))


def sparkline(
    title: str,
    middle: np.ndarray,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    marks: Sequence[float] = (),
) -> str:
    """Return a small chart for a line of a table, with marks at shares of its width."""
    bands = [middle] if low is None or high is None else [middle, low, high]
    bottom, top = min(map(np.min, bands)), max(map(np.max, bands))
    x = (np.arange(len(middle)) + 0.5) / len(middle) * SPARK_WIDTH
    up = SPARK_HEIGHT / max(float(top - bottom), 1e-300)

    def points(values: np.ndarray, x: np.ndarray) -> list[str]:
        y = SPARK_HEIGHT + 2 - (values - bottom) * up
        return [f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)]

    made = "".join(f"M{SPARK_WIDTH * mark:.1f} 0V{SPARK_HEIGHT + 4}" for mark in marks)
    drawn = f'<path class="mark alarm" d="{made}"/>'
    if low is not None and high is not None:
        outline = points(high, x) + points(low[::-1], x[::-1])
        drawn = f'<path class="band" d="M{"L".join(outline)}Z"/>{drawn}'
    drawn += f'<path class="line c0" d="M{"L".join(points(middle, x))}"/>'
    return (
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT + 4}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{drawn}</svg>'
    )


def _largest(shares: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, Sequence[str]]:
    """Return as many shares as there are colours: the largest on average, and all others.

    >>> shares, names = _largest(np.arange(10.0)[np.newaxis] / 45.0, "abcdefghij")
    >>> names, (45 * shares[0]).round().astype(int).tolist()
    (['d', 'e', 'f', 'g', 'h', 'i', 'j', '3 others'], [3, 4, 5, 6, 7, 8, 9, 3])
    """
    if len(names) <= MOST_SHARES:
        return shares, names
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    top, rest = np.sort(order[: MOST_SHARES - 1]), order[MOST_SHARES - 1 :]
    made = np.column_stack([shares[:, top], shares[:, rest].sum(axis=1)])
    return made, [*(names[j] for j in top), f"{len(rest)} others"]


def heat_map(title: str, names: Sequence[str], counts: np.ndarray) -> str:
    """Return a table of counts whose cells are the darker the larger their share of the row."""
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in names)
    rows = []
    for name, row, shares in zip(names, counts, counts / totals, strict=True):
        cells = "".join(
            f'<td style="--share:{share:.3f}" title="{100 * share:.3g}%">{int(count)}</td>'
            for count, share in zip(row, shares, strict=True)
        )
        rows.append(f"<tr><th scope=row>{escape(name)}</th>{cells}</tr>")
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><div class=wide><table class="heat">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "</figure>"
    )


def _figure(
    title: str, made: list[str], names: Sequence[tuple[str, int, bool]], height: int
) -> str:
    seen, legend = set(), []
    for name, colour, dashed in names:
        if name not in seen:
            kind = f"key c{colour % 8}" + (" dashed" if dashed else "")
            legend.append(f'<li><span class="{kind}"></span>{escape(name)}</li>')
        seen.add(name)
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(made)}</svg><ul class=legend>{''.join(legend)}</ul></figure>"
    )


def _kept(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = _kept(len(x))
    return x[kept], np.nan_to_num(y[kept])
