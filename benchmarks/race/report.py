"""The race as tables and as a file of runs."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from functools import partial
from pathlib import Path

from benchmarks.race.board import Board, Match, label
from benchmarks.race.contest import ALL, BUDGETS, SMOOTHING, Run
from benchmarks.race.ours import EFFORTS, ROW_BY_ROW
from benchmarks.race.peers import OURS, PEERS, everybody
from benchmarks.race.sheet import Sheet
from benchmarks.race.streams import FIXED, GROUPS, WIDE

#: The stream that speeds are told of.
SPEED_STREAM = "digits 10"


def standings(board: Board, streams: list[str]) -> Sheet:
    """Return on how many streams each committee is ahead, by kind of stream, and the worst."""
    columns = ["who", "streams", "default: at or below", "worst", "mean"]
    sheet = Sheet("Summary", [*columns, "any setting: at or below", "worst", "mean"])
    kinds = {kind: [name for name in names if name in streams] for kind, names in GROUPS.items()}
    drawn = [name for name in streams if name not in FIXED]
    kinds |= {"all that are drawn from a seed": drawn, "all": streams}
    for ours in [name for name in EFFORTS if name in board.names]:
        sheet.sections.append([])
        for kind, names in kinds.items():
            if names:
                both = [_counts(board, names, pool, ours) for pool in pools(board).values()]
                sheet.sections[-1].append([ours, kind, *both[0], *both[1]])
    sheet.notes = [
        "Default: the best of all peers at their defaults. Any setting: the best of all peers at "
        "any of the settings below, chosen in hindsight for each stream.",
        "Worst and mean are our mistakes for one of that peer's, the mean a geometric one: below 1 "
        "we make fewer. `auto` is as it comes, `auto best` and `auto fast` have more and less "
        "`effort`.",
    ]
    return sheet


def pools(board: Board) -> dict[str, list[str]]:
    """Return the peers to choose the best one from."""
    return {"default": board.defaults, "any setting": board.group(*PEERS)}


def _counts(board: Board, streams: list[str], names: list[str], ours: str) -> list[str]:
    compare = partial(board.mistakes, ours=ours)
    found = {stream: board.best(names, stream, compare) for stream in streams}
    ratios = {s: 1.0 / max(m.ratio, 1e-9) for s, m in found.items() if m is not None}
    if not ratios:
        return ["-", "-", "-"]
    ahead = sum(match is not None and match.ours <= match.theirs for match in found.values())
    worst = max(ratios, key=lambda stream: ratios[stream])
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return [f"{ahead} of {len(ratios)}", f"{ratios[worst]:.2f} ({worst})", f"{mean:.2f}"]


def by_stream(board: Board, streams: list[str]) -> Sheet:
    """Return a row for every stream: the committee and the best of the others."""
    columns = ["stream", "rows"]
    committees = [name for name in EFFORTS if name in board.names]
    for name in committees:
        columns += [name, "rounds/s"]
    for kind in pools(board):
        columns += [f"best peer, {kind}", "rounds/s"]
    sheet = Sheet("Mistakes, stream by stream", [*columns, "best member", "best constant step"])
    sheet.sections.append([])
    for stream in streams:
        row = [stream, f"{board.rounds(stream):,}"]
        for name in committees:
            row += [board.cell(name, stream), _rate(board, name, [stream])]
        for names in pools(board).values():
            match = board.best(names, stream)
            rate = "-" if match is None else _rate(board, match.name, [stream])
            row += [_named(board, match, stream), rate]
        for group in ("members", "sgd"):
            row.append(_named(board, board.best(board.group(group), stream), stream))
        sheet.sections[0].append(row)
    sheet.notes.append(
        "Best is who has the fewest mistakes for one of auto's on the same rows and seeds; in "
        "brackets auto's own mistakes there, where these are not all. Bold: fewer than auto's."
    )
    for kind, names in pools(board).items():
        sheet.notes.append(_count(board, streams, kind, names))
    return sheet


def _rate(board: Board, name: str, streams: list[str]) -> str:
    rate = board.rate(name, streams)
    return "-" if rate is None else f"{rate:,.0f}"


def _named(board: Board, match: Match | None, stream: str) -> str:
    if match is None:
        return "-"
    alike = match.rounds == board.rounds(stream) and match.seeds == len(board.runs("auto", stream))
    rest = "" if alike else f" (auto {match.ours:.0f})"
    return f"{label(match.name)}: {_bold(match, f'{match.theirs:.0f}')}{rest}"


def _bold(match: Match, text: str) -> str:
    return f"**{text}**" if match.theirs < match.ours else text


def _count(board: Board, streams: list[str], kind: str, names: list[str]) -> str:
    found = {stream: board.best(names, stream) for stream in streams}
    lost = [
        f"{stream} with {match.more} more ({1 / match.ratio - 1:+.0%})"
        for stream, match in found.items()
        if match is not None and match.ours > match.theirs
    ]
    text = f"auto has at most as many mistakes as every peer ({kind}) on "
    text += f"{len(streams) - len(lost)} of {len(streams)} streams"
    return text + (f"; not on {', '.join(lost)}." if lost else ".")


def probabilities(board: Board, streams: list[str]) -> Sheet:
    """Return a row for every stream: the logarithmic loss of the committee and of the best."""
    columns = ["stream", "auto", *(f"best peer, {kind}" for kind in pools(board))]
    sheet = Sheet("Logarithmic loss, stream by stream", columns)
    sheet.sections.append([])
    for stream in streams:
        row = [stream, board.nats(ROW_BY_ROW, stream)]
        for names in pools(board).values():
            match = board.best(names, stream, board.log_losses)
            row.append("-" if match is None else _believed(board, match, stream))
        sheet.sections[0].append(row)
    sheet.notes.append(
        f"In nats a row. {SMOOTHING:g} of every probability, of auto's too, is given to all "
        "classes alike first. In brackets auto's own loss, where the seeds are not all. Bold: less "
        "than auto's. Peers without probabilities, and those that did not play all rows, are left "
        "out."
    )
    return sheet


def _believed(board: Board, match: Match, stream: str) -> str:
    alike = match.seeds == len(board.runs(ROW_BY_ROW, stream))
    rest = "" if alike else f" (auto {match.ours:.3f})"
    return f"{label(match.name)}: {_bold(match, f'{match.theirs:.3f}')}{rest}"


def everyone(board: Board, streams: list[str]) -> list[Sheet]:
    """Return mistakes and logarithmic losses of every contestant, by kind of stream."""
    sheets = []
    for kind, names in GROUPS.items():
        there = [name for name in names if name in streams]
        if there:
            sheets += [_everyone(board, kind, there), _believers(board, kind, there)]
    return sheets


def _everyone(board: Board, kind: str, streams: list[str]) -> Sheet:
    sheet = Sheet(f"Mistakes of all: {kind}", ["contestant", *_heads(streams), "rounds/s"])
    for group in (*OURS, *PEERS):
        section = [
            [label(name), *(board.cell(name, s) for s in streams), _rate(board, name, streams)]
            for name in board.group(group)
        ]
        if section:
            sheet.sections.append(section)
    sheet.notes = ["±: 95% interval by seeds. Rounds a second: the median of these streams."]
    raised = {
        f"{name} raised {error}"
        for name in board.names
        for stream in streams
        for error in board.errors(name, stream)
    }
    sheet.notes += sorted(raised)
    return sheet


def _believers(board: Board, kind: str, streams: list[str]) -> Sheet:
    sheet = Sheet(f"Logarithmic loss of all: {kind}", ["contestant", *_heads(streams)])
    for group in (*OURS, *PEERS):
        rows = [[label(n), *(board.nats(n, s) for s in streams)] for n in board.group(group)]
        section = [row for row in rows if set(row[1:]) != {"-"}]
        if section:
            sheet.sections.append(section)
    return sheet


def _heads(streams: list[str]) -> list[str]:
    return [stream.replace(" ", "\n") for stream in streams]


def who_played(board: Board, streams: list[str], seeds: list[int], full: bool) -> list[str]:
    """Return lines that say which seeds and rows contestants played, and their versions."""
    lines = [_versions(board)]
    if full:
        return [*lines, f"Everybody plays all rows of seeds {said(seeds)}."]
    played: dict[str, list[str]] = defaultdict(list)
    for cost, ((_, count), (rounds, wide)) in BUDGETS.items():
        text = f"Seeds {said(seeds[:count])}"
        if any(stream in WIDE for stream in streams):
            part = f", the first {rounds} rows (marked *)" if rounds < ALL else ""
            text += f" (on {', '.join(WIDE)}: {said(seeds[:wide])}{part})"
        played[text] += _families(board, cost)
    lines += [f"{text}: {'; '.join(names)}." for text, names in played.items() if names]
    return [*lines, f"Data in their own order have one run each, of seed {seeds[0]}."]


def _families(board: Board, cost: str) -> list[str]:
    """Return the contestants of a cost, by family where all of it costs the same."""
    costs: dict[str, set[str]] = defaultdict(set)
    for one in everybody().values():
        costs[label(one.name, one.family)].add(one.cost)
    found = [everybody()[name] for name in board.names if everybody()[name].cost == cost]
    wholes = {one.name: label(one.name, one.family) for one in found}
    return list(dict.fromkeys(w if len(costs[w]) == 1 else label(n) for n, w in wholes.items()))


def said(seeds: list[int]) -> str:
    """Return the first and the last of some seeds in words."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _versions(board: Board) -> str:
    found = {everybody()[name].package: everybody()[name].version for name in board.names}
    return ", ".join(f"{package} {version}" for package, version in found.items())


def write_runs(runs: list[Run], path: Path) -> Path:
    """Write every run as a line of CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        head = ("group", "contestant", "package", "version", "stream", "seed")
        writer.writerow((*head, "rounds", "mistakes", "log_loss", "seconds", "error"))
        for run in sorted(runs, key=lambda run: (run.stream, run.name, run.seed)):
            one = everybody()[run.name]
            mistakes = "" if run.error else run.mistakes
            nats = "" if run.log_loss is None else f"{run.log_loss:.6f}"
            about = (one.group, run.name, one.package, one.version, run.stream, run.seed)
            found = (run.rounds, mistakes, nats, f"{run.seconds:.4f}", run.error)
            writer.writerow((*about, *found))
    return path
