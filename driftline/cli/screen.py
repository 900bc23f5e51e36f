"""What a run says on the screen."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["amount", "console_of", "promise_lines", "score_lines", "short"]

LOSSES = {
    "classes": "mistakes",
    "tags": "wrong tags",
    "levels": "distance",
    "ranking": "1 - NDCG",
}


def console_of(err: bool = False) -> Any:
    """Return a console that does not colour or break what is no terminal."""
    from rich.console import Console

    plain: dict[str, Any] = {"stderr": err, "highlight": False, "markup": False}
    made = Console(**plain)
    return made if made.is_terminal else Console(**plain, width=100)


def short(value: float) -> str:
    """Return a total as people read it.

    >>> short(3501.0), short(12.345)
    ('3,501', '12.3')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def amount(kind: str, share: float) -> str:
    """Return a mean loss as a share."""
    return f"{share:7.2%}" if kind != "ranking" else f"{share:7.4f}"


def score_lines(kind: str, scores: dict[str, float], rounds: int) -> list[str]:
    """Return the score beside those of the baselines."""
    what = LOSSES[kind]
    lines = []
    for name, share in scores.items():
        total = f"{short(share * rounds):>10}" if kind in ("classes", "levels") else ""
        lines.append(f"  {name:<12} {amount(kind, share)} {total}")
    return [f"{what}, of {rounds:,} rounds", *lines]


def promise_lines(made: Any, earlier: bool = False) -> list[str]:
    """Return the certificate in a few lines; ``earlier`` if the model had learned before."""
    lines = ["certificate" + (", since the first round of the model" if earlier else "")]
    audit, guessing = made.certificate, made.guessing
    if math.isfinite(made.bound):
        how = f"smallest bound of its own loss, {short(made.paid)}"
        if audit is None or len(audit.members) > 1:
            times = "" if made.factor == 1.0 else f"{made.factor:g} x "
            added = max(0.0, made.average - made.best)
            how = f"{times}(best member's {short(made.best)} + {short(added)} for the weights)"
        lines.append(f"  at most      {short(made.bound)}: {how}")
        if made.vacuous:
            lines.append(" " * 15 + "which is vacuous: guessing promises as much")
        lines.append(f"  paid         {short(made.paid)}")
    else:
        alone = made.factor == 1.0
        why = "without an audit" if alone else "is known for a vote under this loss"
        lines.append(f"  bound        none {why}")
        lines.append(f"  paid         {short(made.paid)}; the best member {short(made.best)}")
    if guessing is not None:
        lines.append(f"  guessing     {short(guessing)}")
    if audit is None:
        lines.append(f"  audit        none: {made.reason}")
        return lines
    bounds = [v for k, v in audit.bounds().items() if isinstance(v, float) and k == "exact"]
    if bounds and len(audit.members) > 1:
        useful = "" if bounds[0] < audit.trivial else ", which is vacuous"
        lines.append(f"  in hindsight {short(bounds[0])} by weights fitted afterwards{useful}")
    found = [*audit.findings, *(f"the bound {form!r} is exceeded" for form in audit.broken)]
    good = "every round replayed, nothing to object to"
    lines += [f"  audit        {finding}" for finding in found or [good]]
    return lines
