"""Runs that show the bounds of the theory: upper ones and the lower one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from driftline.paper.bounds import bound_table as bound_table
from driftline.paper.constant_mistakes import constant_mistakes as constant_mistakes
from driftline.paper.hinge_appendix import hinge_appendix as hinge_appendix
from driftline.paper.hinge_appendix import hinge_numbers as hinge_numbers
from driftline.paper.play_lower_bound import play_lower_bound as play_lower_bound
from driftline.typing import Json

__all__ = [
    "bound_table",
    "constant_mistakes",
    "hinge_appendix",
    "hinge_numbers",
    "play_lower_bound",
    "rows_table",
]


def rows_table(rows: Sequence[Json], title: str, caption: str = "") -> Table:
    """Return rows with the same names as a table for the terminal.

    >>> rows_table([{"rounds": 10, "loss": 0.5}], "One run").row_count
    1
    """
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for name, value in rows[0].items():
        right = not isinstance(value, str)
        table.add_column(name.replace("_", " "), justify="right" if right else "left")
    for row in rows:
        table.add_row(*[_cell(value) for value in row.values()])
    return table


def _cell(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
