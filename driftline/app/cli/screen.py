"""The output of a run on the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from driftline.app.runs import Run
    from driftline.app.runs.guarantee import Guarantee
    from driftline.app.tables.labels import LabelCodec

__all__ = [
    "amount",
    "beaten_lines",
    "console_of",
    "far_lines",
    "guarantee_lines",
    "printable",
    "score_name",
    "score_lines",
    "set_lines",
    "short",
    "told_lines",
]


#: A class is rare below this share of the rows; and how many classes are told of.
RARE, MOST = 0.1, 5


def console_of(err: bool = False) -> Console:
    """Return a console, without colours and line breaks if the output is not a terminal."""
    from rich.console import Console

    plain: dict[str, Any] = {"stderr": err, "highlight": False, "markup": False}
    made = Console(**plain)
    return made if made.is_terminal else Console(**plain, width=100)


def short(value: float) -> str:
    """Return a total in a readable form.

    >>> short(3501.0), short(12.345)
    ('3,501', '12.3')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def amount(codec: LabelCodec, share: float) -> str:
    """Return a mean loss as a share."""
    return f"{share:7.4f}" if codec.numeric else f"{share:7.2%}"


def score_lines(run: Run) -> list[str]:
    """Return the score beside those of the baselines; with weights, also what was found."""
    if not run.rounds:
        return ["no score: rows were predicted, and no label came"]
    codec, lines = run.model.encoder.labels, []
    for name, share in run.scores.items():
        total = f"{short(share * run.weight):>10}" if codec.counts else ""
        lines.append(f"  {name:<12} {amount(codec, share)} {total}")
    if run.model.abstains:
        share = run.unanswered / max(run.rounds, 1)
        lines.append(f"  no answer    {share:7.2%} {short(run.unanswered):>10}")
    if not run.weight:
        lines.append("  all rows have weight 0: nothing was learned")
    return [f"{score_name(run)}, of {run.rounds:,} rounds", *lines, *_found_lines(run)]


def set_lines(run: Run) -> list[str]:
    """Return how often sets had the label, and how large they were; nothing without sets."""
    told = run.set_summary()
    if told is None or not run.rounds:
        return []
    goal, covered, size = told["goal"], told["coverage"], told["mean_size"]
    said = f"{covered:.2%} have the label, goal {goal:.4g}; {size:.2f} labels a set"
    return [f"  sets         {said}"]


def score_name(run: Run) -> str:
    """Say what is scored, and by which weights."""
    encoder = run.model.encoder
    how = f" by the weights in {encoder.weight!r}" if encoder.weight else ""
    how += " of classes that count alike" if encoder.balanced else ""
    return f"{encoder.labels.loss_name}{how}"


def printable(text: str) -> str:
    r"""Return a text without control characters, which a table may have, but for line breaks.

    >>> printable("a\x1b[31mb\nc")
    'a?[31mb\nc'
    """
    return "".join(c if c.isprintable() or c in "\n\u00a0" else "?" for c in text)


def _found_lines(run: Run) -> list[str]:
    """Say how many rows of each class were found, where rows do not all count once."""
    table, codec = run.counts.table, run.model.encoder.labels
    if not (run.model.weighs and codec.balances) or table is None or not table.any():
        return []
    rows, hits = table.sum(axis=1), table.diagonal()
    order = [k for k in rows.argsort(kind="stable").tolist() if rows[k]]
    told = [f"{codec.outcomes[k]} {hits[k] / rows[k]:.0%} of {rows[k]:,}" for k in order[:MOST]]
    more = f", and {len(order) - MOST} more classes" if len(order) > MOST else ""
    return [f"  found        {', '.join(told)}{more}"]


def beaten_lines(run: Run) -> list[str]:
    """Say first that a baseline was not beaten, and what to try; nothing if all were."""
    if not run.weight or not (name := run.beaten_by):
        return []
    codec, scores = run.model.encoder.labels, run.scores
    own, other = (amount(codec, scores[key]).strip() for key in ("learner", name))
    if name in run.model.others:
        said = f"{other} against {own} of one for every key"
        return [
            f"one learner for all keys does as well or better: {said}",
            "  try: leave --key out",
        ]
    return [
        f"the baseline {name!r} was not beaten: {other} against {own} of the learner",
        f"  try: {', '.join(_to_try(run))}",
    ]


def _to_try(run: Run) -> list[str]:
    columns, made = run.model.encoder.columns, []
    if run.model.about not in ("auto", "best"):
        made.append("--learner auto")
    elif run.model.about == "auto":
        made.append("--learner best")
    kinds = [] if isinstance(columns, int) else columns.columns
    texts = [column.name for column in kinds if len(column.categories) >= 20]
    if texts:
        made.append(f"--ignore {texts[0]} (a column of many texts)")
    if rare := _rare(run):
        made.append(f"--balance ({rare} of the rows)")
    made.append("another column by --label")
    if run.rounds < 1000:
        made.append(f"more rows than {run.rounds:,}")
    return made


def _rare(run: Run) -> str:
    """Say which class is rarest and how rare, empty if none is or they are balanced."""
    table, codec = run.counts.table, run.model.encoder.labels
    if run.model.weighs or not codec.balances or table is None or not table.any():
        return ""
    rows = table.sum(axis=1)
    seen = [k for k in range(len(rows)) if rows[k]]
    least = min(seen, key=lambda k: int(rows[k]))
    share = rows[least] / rows.sum()
    return f"{codec.outcomes[least]!r} is {share:.1%}" if len(seen) > 1 and share < RARE else ""


def far_lines(far: dict[str, int], most: int = 8) -> list[str]:
    """Return which columns had values far outside.

    >>> far_lines({"usage": 1, "age": 30})
    ['  age: 30 values far outside', '  usage: 1 value far outside']
    """
    columns = sorted(far, key=lambda name: -far[name])
    plural = {True: "value", False: "values"}
    lines = [
        f"  {name}: {far[name]:,} {plural[far[name] == 1]} far outside" for name in columns[:most]
    ]
    more = len(columns) - most
    return [*lines, f"  and {more} more columns"] if more > 0 else lines


def told_lines(name: str, texts: Sequence[str], width: int | None = None) -> list[str]:
    """Return texts beside a name, wrapped below each other if there is a width.

    >>> told_lines("inputs", ["a rose", "  in May"])
    ['  inputs       a rose', '                 in May']
    >>> told_lines("inputs", ["usage was higher"], width=27)
    ['  inputs       usage was', '                 higher']
    """
    left, made = " " * 15, list[str]()
    for text in texts:
        indent = left + " " * (len(text) - len(text.lstrip()))
        if width is None:
            made.append(left + text)
        else:
            made += textwrap.wrap(
                text.strip(),
                max(width, len(indent) + 10),
                initial_indent=indent,
                subsequent_indent=f"{indent}  ",
                break_on_hyphens=False,  # as in dates
            )
    return [f"  {name:<12} {made[0].strip()}", *made[1:]] if made else []


def guarantee_lines(made: Guarantee, where: str = "") -> list[str]:
    """Return the certificate in a few lines; ``where`` says which rounds it covers."""
    lines = [f"certificate{where}", *_bound_lines(made), *_paid_lines(made)]
    if made.guessing is not None:
        name = "guessing" if made.guess == "guessing" else "trivial"
        more = "" if name == "guessing" else f": {made.guess}"
        lines.append(f"  {name:<12} {short(made.guessing)}{more}")
    return lines + _audit_lines(made)


def _bound_lines(made: Guarantee) -> list[str]:
    if not math.isfinite(made.bound):
        return [f"  bound        none: {made.no_bound}"]
    if made.alone:
        own = "expected loss" if made.random else f"own loss, {short(made.paid)}"
        how = f"smallest bound of its {own}"
    else:
        how = f"{short(made.allowed)} that members with a theorem allow + {made.budget:g}"
    lines = [f"  at most      {short(made.bound)}: {how}"]
    if round(made.delay_cost, 1) > 0.0:
        lines.append(" " * 15 + f"{short(made.delay_cost)} of it since labels came late")
    if made.acted:
        lines.append(" " * 15 + f"the guard acted in {made.acted:,} rows")
    if made.vacuous:
        lines.append(" " * 15 + f"which is vacuous: {made.guess} promises as much")
    return lines


def _paid_lines(made: Any) -> list[str]:
    """Return the loss, and the expected loss where predictions are random."""
    paid, bounded = f"  paid         {short(made.paid)}", math.isfinite(made.bound)
    if made.random and made.alone:
        expected = f"  expected     {short(made.expected)} over its random predictions"
        return [expected, f"{paid} by those drawn"]
    if made.random:
        paid += " by the predictions drawn"
        paid += "; the bound is of what is expected of them" if bounded else ""
    elif made.acted:
        paid += "; the bound is of the expected loss"
    if not (bounded or made.alone):
        paid += f"; the best member {short(made.best)}"
    return [paid]


def _audit_lines(made: Guarantee) -> list[str]:
    audit = made.certificate
    if audit is None:
        return [f"  audit        none: {made.reason}"]
    bounds = audit.bounds()
    lines, bound = [], bounds.get("exact", bounds.get("worst_case"))
    if isinstance(bound, float) and not made.searched:
        lines.append("  in hindsight nothing was fitted, which would take long: ask by --certify")
    elif isinstance(bound, float) and not made.alone:
        useful = "" if bound < audit.trivial else ", which is vacuous"
        lines.append(f"  in hindsight {short(bound)} by weights fitted afterwards{useful}")
    found = [*audit.findings, *(f"the bound {form!r} is exceeded" for form in audit.broken)]
    good = "every round replayed, nothing to object to"
    return lines + [f"  audit        {finding}" for finding in found or [good]]
