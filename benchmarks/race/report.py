"""The race as tables and as a file of runs."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.race.board import Board, Match, label
from benchmarks.race.contest import BUDGETS, Run
from benchmarks.race.peers import PEERS, everybody
from benchmarks.race.sheet import Sheet

#: The stream that speeds are told of.
SPEED_STREAM = "digits 10"


def everyone(board: Board, streams: list[str], seeds: list[int], full: bool) -> Sheet:
    """Return a row for every contestant, a column for every stream."""
    title = f"Mistakes, mean of seeds {seeds[0]} to {seeds[-1]} ±95% interval"
    heads = [stream.replace(" ", "\n") for stream in streams]
    sheet = Sheet(title, ["contestant", *heads, f"rounds/s\n{SPEED_STREAM}"])
    for group in ("ours", "members", "sgd", *PEERS):
        section = []
        for name in board.group(group):
            rate = board.rate(name, SPEED_STREAM) if SPEED_STREAM in streams else None
            cells = [board.cell(name, stream) for stream in streams]
            section.append([label(name), *cells, "-" if rate is None else f"{rate:,.0f}"])
        if section:
            sheet.sections.append(section)
    sheet.notes = [
        _versions(board),
        "Without ±: one seed. -: not played. Rates are of runs side by side.",
    ]
    if not full:
        rounds = BUDGETS["slowest"][0][0]
        sheet.notes.append(
            f"*: the first {rounds} rows only. River plays three seeds at most, scikit-learn one; "
            "on MNIST River plays one, Vowpal Wabbit three."
        )
    raised = {
        f"{name} raised {error}"
        for name in board.names
        for stream in streams
        for error in board.errors(name, stream)
    }
    sheet.notes += sorted(raised)
    return sheet


def _versions(board: Board) -> str:
    found = {everybody()[name].package: everybody()[name].version for name in board.names}
    return ", ".join(f"{package} {version}" for package, version in found.items())


def summary(board: Board, streams: list[str]) -> Sheet:
    """Return a row for every stream: the committee and the best of the others."""
    columns = ["stream", "auto", "best peer, default", "best peer, any setting"]
    sheet = Sheet("The committee beside the best of the others", columns)
    sheet.columns += ["best member", "best constant step"]
    pools = {"default": board.defaults, "any setting": board.group(*PEERS)}
    rest = [board.group("members"), board.group("sgd")]
    sheet.sections.append([])
    for stream in streams:
        row = [stream, board.cell("auto", stream)]
        for names in (*pools.values(), *rest):
            row.append(_named(board, board.best(names, stream), stream))
        sheet.sections[0].append(row)
    sheet.notes.append(
        "Best is who has the fewest mistakes for one of auto's on the same rows and seeds; in "
        "brackets auto's own mistakes there, where these are not all."
    )
    for kind, names in pools.items():
        sheet.notes.append(_count(board, streams, kind, names))
    return sheet


def _named(board: Board, match: Match | None, stream: str) -> str:
    if match is None:
        return "-"
    alike = match.rounds == board.rounds(stream) and match.seeds == len(board.runs("auto", stream))
    rest = "" if alike else f" (auto {match.ours:.0f})"
    return f"{match.name}: {match.theirs:.0f}{rest}"


def _count(board: Board, streams: list[str], kind: str, names: list[str]) -> str:
    found = {stream: board.best(names, stream) for stream in streams}
    lost = [
        f"{stream} with {match.more} more ({1 / match.ratio - 1:+.0%})"
        for stream, match in found.items()
        if match is not None and match.ours >= match.theirs
    ]
    text = f"auto has fewer mistakes than every peer ({kind}) on {len(streams) - len(lost)} of "
    return text + f"{len(streams)} streams" + (f"; not on {', '.join(lost)}." if lost else ".")


def write_runs(runs: list[Run], path: Path) -> Path:
    """Write every run as a line of CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        head = ("group", "contestant", "package", "version", "stream", "seed")
        writer.writerow((*head, "rounds", "mistakes", "seconds", "error"))
        for run in sorted(runs, key=lambda run: (run.stream, run.name, run.seed)):
            one = everybody()[run.name]
            mistakes = "" if run.error else run.mistakes
            about = (one.group, run.name, one.package, one.version, run.stream, run.seed)
            writer.writerow((*about, run.rounds, mistakes, f"{run.seconds:.4f}", run.error))
    return path
