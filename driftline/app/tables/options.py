"""Options on the columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Options on the columns of a table; what is None or empty is guessed.

    ``label``, ``ignore`` and ``text`` may hold patterns such as ``tag_*``. ``time`` is a column of
    dates or times, and ``weight`` one of sample weights: both are no inputs. With ``balance`` rows
    count by how rare their class has been so far. ``abstain`` is the cost of no answer, where a
    wrong one costs 1; None for an answer to every row. ``delay_column`` says after how many more
    rows a label comes, and is no input; ``key`` says whose a row is, and is no input either: every
    key has a learner of its own. ``champion`` has a model's predictions, which are followed and
    guarded, and is no input for others.
    """

    label: Sequence[str] = ()
    task: str | None = None
    ignore: Sequence[str] = ()
    text: Collection[str] = ()
    query: str | None = None
    levels: Sequence[str] = ()
    missing: str = "refuse"
    decimal: str = "."
    highest: int | None = None
    unlabelled: str = "refuse"
    time: str | None = None
    weight: str | None = None
    balance: bool = False
    abstain: float | None = None
    delay_column: str | None = None
    key: str | None = None
    champion: str | None = None
