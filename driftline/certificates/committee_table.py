"""A committee's certificate in words."""

from __future__ import annotations

import math

from driftline.certificates.committee_certificate import CommitteeCertificate, Guarded

__all__ = ["table"]


def table(made: CommitteeCertificate) -> str:
    """Return a table of totals, bounds, members and findings."""
    claimed = math.isfinite(made.factor)
    lines = [
        f"committee of {len(made.members)} {made.rule.how}, rounds {made.start} to "
        f"{made.stop}, {made.rounds} in all",
        _line("target loss", made.total, _above(made)),
        _line("weighted average", made.average, _pays(made)),
        _line("best member", made.best_total, f"member {made.best}; regret {made.regret:.5g}"),
        *_sequence(made),
        _line(made.members[0].premises.guess, made.trivial),
    ]
    if made.guarded is not None:
        lines += _guarded(made, made.guarded)
    elif made.no_regret_bound:
        lines.append(f"no bound of the committee: {made.no_regret_bound}")
    elif claimed:
        sums = "the members' and what the weights add"
        sums = sums if made.factor == 1.0 else f"{made.factor:g} x ({sums})"
        lines.append(f"bounds of the expected loss: {sums}")
    else:
        lines.append(
            f"no bound of the predictions: {made.rule.no_bound}\n"
            "bounds of the weighted average: the members' and what the weights add"
        )
    if not made.no_regret_bound:
        lines += _bounds(made, claimed)
    lines += _members(made)
    if made.scaled:
        lines.append("comparators act on the scaled inputs, and members' bounds hold for these")
    if made.outstanding is not None:
        older = f"that weights of predictions were older cost {made.bill:.5g}, part of the bounds; "
        lines.append(
            f"labels came late: {older if made.bills else ''}{made.outstanding} have not come"
        )
    found = [*made.findings, *(f"the bound {form!r} is exceeded" for form in made.broken)]
    lines += [f"audit: {finding}" for finding in found or ["nothing to object to"]]
    lines += [f"not checked: {note}" for note in made.unchecked]
    return "\n".join(lines)


def _guarded(made: CommitteeCertificate, guarded: Guarded) -> list[str]:
    """Return what the book allows, and the formula against the comparators of sure members."""
    above = f"the book allows {guarded.book:.5g}, the budget is {guarded.budget:g}"
    lines = [
        "bounds of the expected loss: a guard compares it with a book that has a theorem",
        _line("book and budget", guarded.bound, above),
    ]
    if isinstance(guarded.formula, str):
        lines.append(f"  {'worst case':<24}         none   {guarded.formula}")
    else:
        vacuous = "vacuous" if guarded.formula >= made.trivial else "against the comparators"
        lines.append(_line("worst case", guarded.formula, vacuous))
    most = f"account and reserves were {guarded.account:.5g} at most"
    return [*lines, f"{most}; it acted in {guarded.acted} rounds"]


def _line(name: str, value: float, note: str = "") -> str:
    return f"  {name:<24} {value:12.5g}" + (f"   {note}" if note else "")


def _above(made: CommitteeCertificate) -> str:
    if not made.deviation or (made.guarded is None and math.isinf(made.factor)):
        return ""
    mean = made.factor * made.average if made.guarded is None else made.expected
    most = mean + made.deviation
    return f"at most {most:.5g} but with chance {made.chance:g}"


def _pays(made: CommitteeCertificate) -> str:
    if made.factor == 1.0 or math.isinf(made.factor):
        return made.rule.average
    return f"a {made.combine} pays at most {made.factor:g} times this"


def _sequence(made: CommitteeCertificate) -> list[str]:
    if not made.switches:
        return []
    note = f"with {made.switches} changes"
    return [_line("best sequence", made.sequences[made.switches], note)]


def _bounds(made: CommitteeCertificate, claimed: bool) -> list[str]:
    lines, totals, average = [], made.member_totals(), made.average_bounds()
    for form, value in (made.bounds() if claimed else average).items():
        if form == "best_sequence" and not made.switches:
            continue
        name, most, total = form.replace("_", " "), average[form], totals[form]
        if isinstance(value, str) or isinstance(most, str) or isinstance(total, str):
            lines.append(f"  {name:<24}         none   {value}")
        elif value >= made.trivial:
            guess = made.members[0].premises.guess.removeprefix("uniform ")
            lines.append(_line(name, value, f"vacuous: no better than {guess}"))
        else:
            lines.append(_line(name, value, f"the weights add {max(0.0, most - total):.5g}"))
    return lines


def _members(made: CommitteeCertificate) -> list[str]:
    lines = ["members            total        exact   worst case"]
    for j, member in enumerate(made.members):
        bounds = member.bounds()
        cells = [
            f"{bound:12.5g}" if isinstance(bound, float) else f"{'none':>12}"
            for bound in (bounds["exact"], bounds["worst_case"])
        ]
        note = "   comparator shrunk into its ball" if made.shrunk[j] else ""
        note = f"   {member.premises.no_bound}" if member.premises.no_bound else note
        lines.append(f"  {j:<10} {member.expected:12.5g} {cells[0]} {cells[1]}{note}")
    return lines
