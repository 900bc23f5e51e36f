"""What counts as a comparator."""

from __future__ import annotations

from typing import Any

from driftline.errors import InputError

__all__ = ["check_comparator"]


def check_comparator(given: Any) -> None:
    """Refuse what does not give weights for rounds."""
    if isinstance(given, type) or not callable(getattr(given, "pieces", None)):
        raise InputError(
            f"expected a comparator, such as dl.comparators.Fixed(weights), but got {given!r:.80}"
        )
