"""Names for values that have no narrower type, since a user or a file decides what they are.

Everything else has a type of its own: rows, states, traces, parts. These names are for readers; a
task and its layout check the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "CheckedLabels",
    "Input",
    "Inputs",
    "Json",
    "Label",
    "Labels",
    "Prediction",
    "Saved",
]

#: One label as the task takes it: a number, or a vector; or, checked, its row of integers.
Label: TypeAlias = Any

#: The labels of many rounds as a user gives them: an array, a column of a table, a list.
Labels: TypeAlias = Any

#: Labels after the task has checked them: an array with a row of integers for each, or a list
#: where lengths differ or the task has no kernels.
CheckedLabels: TypeAlias = np.ndarray | Sequence[Label]

#: What a task predicts, as users get it: a number, or a vector.
Prediction: TypeAlias = Any

#: The input of one round: a vector, a row of a CSR matrix, or an array with a row for each item.
Input: TypeAlias = Any

#: The inputs of many rounds: an array, a CSR matrix, a table, or a list of arrays of items.
Inputs: TypeAlias = Any

#: Plain data by name, as JSON has it.
Json: TypeAlias = dict[str, Any]

#: What a file keeps: plain data, and arrays by name.
Saved: TypeAlias = tuple[Json, dict[str, np.ndarray]]
