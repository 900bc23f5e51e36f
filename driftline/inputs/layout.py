"""How the input of a round and the weights make scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from driftline.inputs.items import Items
from driftline.inputs.rows import Rows, row_of, rows_of
from driftline.inputs.sequences import Sequences
from driftline.inputs.sparse_items import WIDE, SparseItems
from driftline.inputs.sparse_sequences import SparseSequences, sparse_positions
from driftline.parts import fact
from driftline.typing import Input, Inputs

__all__ = ["Layout", "OneVector", "VectorPerItem", "VectorPerPosition"]


class Layout(ABC):
    """What the input of a task is, and how many weights are needed to score it.

    Three layouts are here. A user's own layout has rows with the methods of :class:`LinearRows`.
    """

    @fact
    def ragged(self) -> bool:
        """Whether the input of a round is several vectors, one for each entry of its label."""
        return True

    @fact
    def scalable(self) -> bool:
        """Whether rows can be standardised: True for the layouts of this package.

        Rows of other layouts are not scaled.
        """
        return False

    @fact
    def constant(self) -> bool:
        """Whether a constant feature can be useful, as an intercept."""
        return True

    @fact
    def weight_rows(self) -> int:
        """How many rows the weights have."""
        return 1

    @fact
    def extra_columns(self) -> int:
        """How many columns the weights have beside those of the features."""
        return 0

    @abstractmethod
    def rows(self, inputs: Inputs) -> Rows:
        """Wrap the inputs of a stream."""

    def row(self, x: Input) -> Rows:
        """Wrap the input of one round."""
        return self.rows([x])

    @abstractmethod
    def norm_in_words(self, intercept: bool) -> str:
        """Return in words which norm is in a bound, with or without an intercept."""


@dataclass(frozen=True)
class OneVector(Layout):
    """One vector a round, and a weight vector for each of the scores."""

    scores: int
    ragged: ClassVar[bool] = False
    scalable: ClassVar[bool] = True

    @property
    def weight_rows(self) -> int:
        """One row of weights for each score."""
        return self.scores

    def rows(self, inputs: Inputs) -> Rows:
        """Wrap an array with a row for each round, or a CSR matrix."""
        return rows_of(inputs)

    def row(self, x: Input) -> Rows:
        """Wrap a vector, or a sparse row."""
        return row_of(x)

    def norm_in_words(self, intercept: bool) -> str:
        """Name the input."""
        return "an input" + (" with the constant 1" if intercept else "")


@dataclass(frozen=True)
class VectorPerItem(Layout):
    """A vector for each item (document) of a round, and one weight vector for all of them.

    Scores are compared within a round, so that a constant would change nothing.
    """

    scalable: ClassVar[bool] = True
    constant: ClassVar[bool] = False

    def rows(self, inputs: Inputs) -> Items | SparseItems:
        """Wrap a list of arrays or CSR matrices with a row for each item.

        CSR matrices of up to ``WIDE`` columns are made dense.
        """
        found = sparse_positions(inputs, Items.group)
        if found is None:
            return Items(inputs)
        items, places = found
        return (
            SparseItems(items, places) if items.features > WIDE else Items((items.matrix, places))
        )

    def norm_in_words(self, intercept: bool) -> str:
        """Name all documents."""
        return "all documents of a query together"


@dataclass(frozen=True)
class VectorPerPosition(Layout):
    """A vector for each position, a weight vector for each tag, and a number for each transition.

    These are shared by all positions.
    """

    tags: int
    transitions: bool = True
    scalable: ClassVar[bool] = True

    @property
    def constant(self) -> bool:
        """Whether a constant is useful: not with transitions, which learn how frequent tags are."""
        return not self.transitions

    @property
    def weight_rows(self) -> int:
        """One row of weights for each tag."""
        return self.tags

    @property
    def extra_columns(self) -> int:
        """The weights of transitions."""
        return self.tags if self.transitions else 0

    def rows(self, inputs: Inputs) -> Sequences:
        """Wrap a list of arrays or CSR matrices with a row for each position."""
        found = sparse_positions(inputs)
        if found is not None:
            return SparseSequences(*found, self.tags, self.transitions)
        return Sequences(inputs, self.tags, self.transitions)

    def norm_in_words(self, intercept: bool) -> str:
        """Name the sequence, or, without transitions, all positions together."""
        if self.transitions:
            return "a sequence, whose square is (2n - 1) max(n - 1, |x|^2) for n positions"
        return "all positions of a sequence" + (" with the constant 1" if intercept else "")
