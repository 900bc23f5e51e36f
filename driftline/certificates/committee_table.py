"""A committee's certificate in words."""

from __future__ import annotations

from driftline.certificates.committee_certificate import NO_GUARD, CommitteeCertificate, Guarded

__all__ = ["table"]


def table(made: CommitteeCertificate) -> str:
    """Return a table of totals, bounds, members and findings."""
    lines = [
        f"committee of {len(made.members)} {made.rule.how}, rounds {made.start} to "
        f"{made.stop}, {made.rounds} in all",
        _line("target loss", made.total, _above(made)),
        _line("weighted average", made.average, "of the members"),
        _line("best member", made.best_total, f"member {made.best}; regret {made.regret:.5g}"),
        _line(made.members[0].premises.guess, made.trivial),
    ]
    if made.guarded is not None:
        lines += _guarded(made, made.guarded)
    else:
        lines.append(f"no bound of the committee: {NO_GUARD}")
    lines += _members(made)
    if made.mapped:
        lines.append("comparators act on mapped inputs, and members' bounds hold for these")
    if made.outstanding is not None:
        lines.append(f"labels came late: {made.outstanding} have not come")
    return "\n".join(lines + made.audit_lines())


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
    if not made.deviation:
        return ""
    return f"at most {made.expected + made.deviation:.5g} but with chance {made.chance:g}"


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
