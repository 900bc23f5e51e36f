"""One half of a round: an input that was predicted, and whose label is not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from driftline.errors import InputError
from driftline.inputs import DenseRows, Rows, SparseRows, SparseSequences
from driftline.state import compact
from driftline.typing import Input, Json, Prediction, Saved

__all__ = ["CODES", "Ticket"]

#: A vector or an array of items; of a sparse row, columns, values and the number of features.
PlainInput: TypeAlias = (
    np.ndarray | tuple[np.ndarray, np.ndarray, int] | tuple[np.ndarray, np.ndarray, int, np.ndarray]
)

#: The type of predictions that are labels.
CODES = np.dtype(np.int32)

#: The types of numbers that a ticket keeps as they are.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True, eq=False)
class Ticket:
    """A prediction, and all that is needed to learn from its label later.

    Plain data: it can be kept in a file or sent to another process (:meth:`to_bytes`), and told to
    the same learner there. A learner checks every field before it uses it.

    ``number`` is the number of the ticket, by which its random number is drawn; ``rounds`` is how
    many rounds the learner had learned from, which identifies the version of its weights and of its
    feature map; ``learner`` is the id of the learner. ``mean`` is the expected loss
    encoding of the prediction, from which the expected loss of every label follows. ``input`` is a
    vector, an array of items, or columns, values and the number of features of a sparse row;
    ``mapped`` is the input after the feature map, None without a map and for a committee, whose
    members have maps. ``means`` are the mean loss
    encodings of a committee's members, a row each, of its sets of weights, and last of its weights:
    these move by what predictions have cost, and so do their bounds. Where all of these are certain
    of one label, ``made`` has their predictions as whole numbers instead. ``book`` is what a guard
    needs: what the prediction and what the book may cost for every label, and whether the book
    predicts. ``probabilities`` are those of every label, if they were asked for; they are for who
    asked, and not in files.
    """

    number: int
    rounds: int
    learner: str
    prediction: Prediction
    mean: np.ndarray
    input: PlainInput
    mapped: PlainInput | None = None
    means: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    made: np.ndarray | None = None
    book: np.ndarray | None = None

    def to_bytes(self) -> bytes:
        """Return the ticket as bytes: see :mod:`driftline.state.compact`.

        >>> import driftline as dl
        >>> learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
        >>> ticket = learner.ask([0.6, 0.8])
        >>> learner.tell(Ticket.from_bytes(ticket.to_bytes()), 2)
        >>> learner.rounds
        1
        """
        return compact.packed(*self.to_saved())

    def to_saved(self) -> Saved:
        """Return all fields as plain data and arrays."""
        self._check()
        none = self.prediction is None
        prediction = np.asarray(-1 if none else self.prediction)
        about = {
            "kind": "Ticket",
            "number": self.number,
            "rounds": self.rounds,
            "learner": self.learner,
            "single": prediction.ndim == 0,
            "none": none,
            "features": {k: v[2] for k, v in self._inputs() if isinstance(v, tuple)},
        }
        kind = np.float64 if prediction.dtype.kind == "f" else np.int64
        arrays = {"mean": self.mean, "prediction": prediction.ravel().astype(kind)}
        if self.means is not None:
            arrays["means"] = self.means
        if self.made is not None:
            arrays["made"] = self.made.astype(np.int64)
        if self.book is not None:
            arrays["book"] = self.book
        for name, given in self._inputs():
            if isinstance(given, tuple):
                arrays[f"{name}.columns"], arrays[f"{name}.values"] = given[:2]
                if len(given) == 4:
                    arrays[f"{name}.starts"] = given[3]
            else:
                arrays[name] = given
        return about, arrays

    def _inputs(self) -> list[tuple[str, PlainInput]]:
        pairs = [("input", self.input), ("mapped", self.mapped)]
        return [(name, given) for name, given in pairs if given is not None]

    @classmethod
    def from_bytes(cls, content: bytes) -> Ticket:
        """Return the ticket from what :meth:`to_bytes` returned, or refuse the bytes."""
        return cls.from_saved(*compact.unpacked(content, "the ticket"))

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Ticket:
        """Return the ticket from what :meth:`to_saved` returned, or refuse it."""
        if about.get("kind") != "Ticket":
            raise InputError(f"expected a ticket, but the bytes hold {about.get('kind')!r}")
        try:
            made: dict[str, Any] = {k: about[k] for k in ("number", "rounds", "learner")}
            for name in ("input", "mapped"):
                if name in about["features"]:
                    pair = arrays[f"{name}.columns"], arrays[f"{name}.values"]
                    starts = arrays.get(f"{name}.starts")
                    more = () if starts is None else (starts,)
                    made[name] = (*pair, about["features"][name], *more)
                elif name in arrays:
                    made[name] = arrays[name]
            prediction = arrays["prediction"]
            made["prediction"] = prediction[0].item() if about["single"] else prediction
            if about["none"]:
                made["prediction"] = None
            if "made" in arrays:
                codes = arrays["made"]
                whole = codes.dtype == np.int64 and (abs(codes) < 2**31).all()
                made["made"] = codes.astype(CODES) if whole else codes  # which will be refused
            made |= {name: arrays.get(name) for name in ("means", "book")}
            return cls(**made, mean=arrays["mean"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"the ticket is not whole: {error!r}") from error

    def _check(self) -> None:
        """Refuse fields that no ticket can have: the ticket may come from anywhere."""
        number, rounds = self.number, self.rounds
        if type(number) is not int or type(rounds) is not int or number < 0 or rounds < 0:
            counts = number, rounds
            raise InputError(f"a ticket has a number and a count of rounds, not {counts!r:.80}")
        if not isinstance(self.learner, str):
            raise InputError(f"a ticket names its learner by a text, not {self.learner!r:.80}")

    def check_rounds(self, rounds: int) -> None:
        """Refuse a ticket from after more rounds than these."""
        self._check()
        if self.rounds > rounds:
            raise InputError(
                f"the ticket was asked for after {self.rounds!r:.40} rounds, but there were only "
                f"{rounds}"
            )

    def check(self, learner: str, tickets: int) -> None:
        """Refuse a ticket that is not one of this learner's."""
        self.check_rounds(tickets)  # no more than were asked for
        if self.learner != learner:
            raise InputError(
                f"the ticket is that of a learner {self.learner!r:.40}, but this one is {learner!r}"
            )
        if self.number >= tickets:
            raise InputError(
                f"there is no ticket {self.number} yet: the next one will be number {tickets}"
            )

    def checked_input(self) -> Input:
        """Return the input as a learner takes it."""
        return unwrapped(self.input)

    def checked_means(self, count: int, finite: bool = True) -> np.ndarray:
        """Return this number of mean loss encodings, if they can be some.

        ``finite`` says whether their numbers are checked, too.
        """
        means = self.means
        if isinstance(means, np.ndarray) and means.ndim == 2 and means.dtype == np.float64:
            if len(means) == count and (not finite or np.isfinite(means).all()):
                return means
        raise InputError(
            f"ticket {self.number} must have {count} distributions of what was predicted, not "
            f"{means!r:.80}"
        )

    def checked_made(self, count: int) -> np.ndarray:
        """Return this number of predictions, each one number, if they can be some."""
        made = self.made
        if isinstance(made, np.ndarray) and made.shape == (count,) and made.dtype == CODES:
            return made
        raise InputError(
            f"ticket {self.number} must have {count} predictions of members and their weights, not "
            f"{made!r:.80}"
        )

    def checked_book(self) -> np.ndarray:
        """Return what a guard must know, if it can be that."""
        book = self.book
        if isinstance(book, np.ndarray) and book.ndim == 1 and book.dtype == np.float64:
            if np.isfinite(book).all():
                return book
        raise InputError(f"ticket {self.number} needs what a guard has written, not {book!r:.80}")


def plain(rows: Rows) -> list[PlainInput]:
    """Return a copy of the input of every round, as plain arrays."""
    if isinstance(rows, DenseRows):
        array = rows.array if rows.array.dtype in FLOATS else rows.array.astype(np.float64)
        return [row.copy() for row in array]
    if isinstance(rows, SparseRows):
        return [_entries(rows, t) for t in range(rows.rounds)]
    if isinstance(rows, SparseSequences):
        return [_positions(rows.of_round(t)) for t in range(rows.rounds)]
    kinds = (own.dtype if own.dtype in FLOATS else np.float64 for own in rows.groups)
    return [np.array(own, kind, order="C") for own, kind in zip(rows.groups, kinds, strict=True)]


def _entries(rows: SparseRows, t: int) -> PlainInput:
    columns, values = rows.entries(t)
    return columns.astype(np.int64), values, rows.features


def _positions(own: SparseRows) -> PlainInput:
    starts = own.starts.astype(np.int64)
    return own.columns.astype(np.int64), own.values.astype(np.float64), own.features, starts


def unwrapped(given: PlainInput) -> Input:
    """Return a ticket's input in the form that users give inputs in, if it is valid."""
    if isinstance(given, np.ndarray):
        return given
    try:
        columns, values, features = given[:3]
        columns, values = np.asarray(columns), np.asarray(values)
        if type(features) is not int or columns.ndim != 1 or columns.dtype.kind != "i":
            raise InputError(
                f"a sparse row has columns and a number of features, not {given!r:.80}"
            )
    except (TypeError, ValueError) as error:
        raise InputError(f"a ticket has no input like {given!r:.80}") from error
    from scipy.sparse import csr_array

    made = csr_array((1, 1))
    starts = np.array([0, len(columns)]) if len(given) == 3 else np.atleast_1d(given[3])
    made.data, made.indices, made.indptr = values, columns, starts
    made._shape = (len(starts) - 1, features)  # checked where it is read, as all of a matrix is
    return made
