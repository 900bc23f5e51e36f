"""Predictions as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from driftline.app.runs.model import Model
from driftline.app.runs.reading import Rounds
from driftline.app.tables.values import number
from driftline.learner.late import LateRun
from driftline.typing import CheckedLabels

__all__ = ["PredictionFile", "escaped"]

#: Spreadsheets take text that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class PredictionFile:
    """Predictions as CSV, a line a round: its number, the label, the prediction, the loss.

    Where every key has a learner of its own, its key follows the number.
    Where rounds do not all count once, a column has their weight, which losses were multiplied by.
    Without labels there are only numbers and predictions. ``write`` takes text, and ``first`` is
    the number of the first round to come. ``chances`` are the labels that have a column for their
    probability. With ``problems`` a last column says why a row was not predicted. Labels that begin
    like a formula are escaped.

    With ``late`` there is a column for the round with which a label came, and a line is written
    when its label comes, or at once if it never comes; ``held`` are the lines that wait.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        model: Model,
        labelled: bool,
        first: int = 1,
        problems: bool = False,
        chances: Sequence[str] = (),
        late: bool = False,
        held: Sequence[Sequence[str]] = (),
    ):
        self.labels, self.labelled, self.next = model.encoder.labels, labelled, first
        self._write, self.problems, self.chances = write, problems, list(chances)
        self.weighted = model.weighs and not problems
        self.late, self.held = late, [list(line) for line in held]
        self.sets = model.sets is not None and not problems
        self.keyed = model.encoder.key is not None

    def begin(self) -> None:
        """Write the names of the columns."""
        more = ["key"] if self.keyed else []
        more += ["label", "prediction", "loss"] if self.labelled else ["prediction"]
        more += ["arrival"] if self.late else []
        more += ["weight"] if self.weighted else []
        more += ["set"] if self.sets else []
        more += [f"p({name})" for name in self.chances]
        self._rows([["round", *more, *(["problem"] if self.problems else [])]])

    def write(
        self,
        predictions: CheckedLabels,
        rounds: Rounds,
        losses: Any = None,
        chances: np.ndarray | None = None,
        events: LateRun | None = None,
        sets: np.ndarray | None = None,
    ) -> None:
        """Write some rounds; what is not known of a row is empty.

        Where the table has labels and these rows have none, they are no rounds and have no number.
        Chances of labels beyond those that have a column are left out.
        """
        columns = [self._shown(predictions)]
        shares = [] if sets is None else [self._names(sets)]
        shares += [] if chances is None else self._shares(chances)
        if self.labelled and rounds.labels is None and not rounds.problems:
            rest = zip(*columns, *shares, strict=True)
            empty = [""] * (1 + self.weighted + self.late)
            lines = [["", made, *empty, *more] for made, *more in rest]
            keys = self._keys(rounds)
            self._rows(["", *keys[i], *line] for i, line in enumerate(lines))
            return
        if self.labelled:
            shown = [f"{loss:g}" for loss in np.round(losses, 6).tolist()]
            columns = [self._shown(rounds.labels), *columns, shown]
            if rounds.unlabelled is not None:
                for row in np.flatnonzero(rounds.unlabelled).tolist():
                    columns[0][row] = columns[2][row] = ""
        if self.late:
            columns.append(self._arrivals(rounds))
        if self.weighted:
            assert rounds.weights is not None
            columns.append([f"{weight:g}" for weight in rounds.weights.tolist()])
        columns += shares
        pairs = zip(self._keys(rounds), zip(*columns, strict=True), strict=True)
        rows = [[*key, *row] for key, row in pairs]
        if self.problems:
            rows = [[*row, ""] for row in rows]
            width = len(columns) + self.keyed
            for place, problem in sorted(rounds.problems.items()):
                rows.insert(place, [""] * width + [escaped(problem)])
        lines = [[str(self.next + i), *row] for i, row in enumerate(rows)]
        self.next += len(rows)
        self._rows(lines if events is None else self._settled(lines, events))

    def _keys(self, rounds: Rounds) -> list[list[str]]:
        """Return the cells that say whose rounds these are: one each, or none without keys."""
        if not self.keyed or rounds.keys is None:
            return [[]] * rounds.played
        return [[escaped(key)] for key in rounds.keys]

    def _arrivals(self, rounds: Rounds) -> list[str]:
        """Return the number of the round with which each label comes, empty for never."""
        assert rounds.delays is not None
        pairs = enumerate(rounds.delays.tolist(), self.next)
        return [str(own + delay) if delay >= 0 else "" for own, delay in pairs]

    def _settled(self, lines: list[list[str]], events: LateRun) -> list[list[str]]:
        """Return the lines that are written now, in the order of events; hold the others."""
        lines, made = [*self.held, *lines], []
        for place, asked in zip(events.rounds.tolist(), events.asked.tolist(), strict=True):
            if not asked:
                made.append(lines[place])
            elif events.due[place] < 0:
                made.append(_unlabelled(lines[place]))
        self.held = [lines[place] for place in events.left.tolist()]
        return made

    def write_held(self) -> None:
        """Write the lines that wait, without their labels, which have not come."""
        self._rows(map(_unlabelled, self.held))

    def _names(self, sets: np.ndarray) -> list[str]:
        """Return the labels of each set by name, with semicolons between them.

        A name that has one itself stands in quotes, as in CSV.
        """
        names = [self._shown(np.array([k]))[0] for k in range(len(self.labels.outcomes))]
        names = [_quoted(name) for name in names]
        pairs = (zip(names, row, strict=False) for row in sets.tolist())
        return [";".join(name for name, inside in row if inside) for row in pairs]

    def _shares(self, chances: np.ndarray) -> list[list[str]]:
        """Return the columns of chances as texts; a label that is not known yet has none."""
        made = np.zeros((len(chances), len(self.chances)))
        width = min(made.shape[1], chances.shape[1])
        made[:, :width] = chances[:, :width]
        return [[f"{p:.6g}" for p in column] for column in made.T.tolist()]

    def _shown(self, codes: CheckedLabels) -> list[str]:
        texts = self.labels.show(codes)
        if self.labels.numeric:
            return texts
        safe = {text: escaped(text) for text in set(texts)}
        return [safe[text] for text in texts]

    def _rows(self, rows: Iterable[Iterable[object]]) -> None:
        made = io.StringIO()
        csv.writer(made, lineterminator="\n").writerows(rows)
        self._write(made.getvalue())


def _unlabelled(line: list[str]) -> list[str]:
    """Return a line without label, loss and arrival."""
    number, _, prediction, _, _, *rest = line
    return [number, "", prediction, "", "", *rest]


def _quoted(name: str) -> str:
    """Return a name that has no semicolon outside of quotes.

    >>> _quoted("a"), _quoted("a;b")
    ('a', '"a;b"')
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if ";" in name or '"' in name else name


def escaped(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula; numbers are not changed.

    >>> escaped("=1+1"), escaped("-1"), escaped("+1e5"), escaped("-a"), escaped("a-b")
    ("'=1+1", '-1', '+1e5', "'-a", 'a-b')
    """
    return f"'{text}" if text.startswith(FORMULA) and number(text) is None else text
