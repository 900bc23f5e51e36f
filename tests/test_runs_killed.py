"""A run that was killed, wherever it was, ends as one that never was: not one bit is different."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from commands import data, write_csv
from howmany import chosen, number
from kills import Killed, contents
from seeds import fresh_seed

KILLED = -9

#: Files are the same for any committee; those of attacks have the default one.
FAST = ("--learner", "fast")


@pytest.fixture(scope="module")
def killed():
    made = Killed()
    yield made
    made.close()


def classes(folder):
    inputs, labels = data(240)
    labels[150:170] = 2  # a class that comes up on the way
    return write_csv(folder / "t.csv", inputs, labels, "uvw"), ()


def audited(folder):
    return write_csv(folder / "t.csv", *data(240)), ("--trace", "--certify")


def drawn(folder):
    return write_csv(folder / "t.csv", *data(240)), ("--learner", "paper", "--seed", "7")


def means(folder):
    path = write_csv(folder / "t.csv", *data(240))
    lines = path.read_text().splitlines()
    for i in range(7, 240, 9):
        first, _, *rest = lines[i].split(",")
        lines[i] = ",".join([first, "", *rest])
    path.write_text("\n".join(lines) + "\n")
    return path, ("--missing", "mean")


def tags(folder):
    inputs, labels = data(240)
    rows = [f"{x[0]},{x[1]},{y},{1 - y}" for x, y in zip(inputs, labels, strict=True)]
    path = folder / "t.csv"
    path.write_text("\n".join(["a,b,tag_1,tag_2", *rows]) + "\n")
    return path, ("--label", "tag_*", "--trace")


def ranking(folder):
    inputs, labels = data(240)
    rows = zip(inputs, labels, strict=True)
    lines = [f"{y} qid:{i // 17} 1:{x[0]} 2:{x[1]}" for i, (x, y) in enumerate(rows)]
    path = folder / "t.svm"
    path.write_text("\n".join(lines) + "\n")
    return path, ("--trace",)


def sparse(folder):
    inputs, labels = data(240, features=8)
    rows = [
        " ".join([str(y), *(f"{j}:{v}" for j, v in enumerate(x) if v > 0.3)])
        for x, y in zip(inputs, labels, strict=True)
    ]
    path = folder / "t.svm"
    path.write_text("\n".join(rows) + "\n")
    return path, ("--features", "8", "--trace")


def without_labels(folder, *options):
    """Some labels are missing, as are all of a piece; a class comes up on the way."""
    inputs, labels = data(240)
    labels[150:170] = 2
    path = write_csv(folder / "t.csv", inputs, labels, "uvw")
    lines = path.read_text().splitlines()
    for i in [1, *range(6, 240, 29), *range(81, 121), 239, 240]:
        lines[i] = lines[i].rsplit(",", 1)[0] + ","
    for i in range(9, 240, 11):
        lines[i] = lines[i].replace(lines[i].split(",")[1], "", 1)
    path.write_text("\n".join(lines) + "\n")
    return path, ("--missing", "mean", *options)


def skipped(folder):
    return without_labels(folder, "--unlabelled", "skip", "--learner", "paper", "--trace")


def predicted(folder):
    return without_labels(folder, "--unlabelled", "predict", "--trace", *FAST)


def predicted_at_random(folder):
    return without_labels(folder, "--unlabelled", "predict", "--learner", "paper")


def probable(folder):
    return without_labels(folder, "--unlabelled", "predict", "--proba", *FAST)


def documents_skipped(folder):
    inputs, labels = data(240)
    rows = zip(inputs, labels, strict=True)
    lines = [
        f"q{i // 17},{x[0]},{x[1]},{y if i % 5 and not 80 <= i < 120 else ''}"
        for i, (x, y) in enumerate(rows)
    ]
    path = folder / "t.csv"
    path.write_text("\n".join(["q,a,b,grade", *lines]) + "\n")
    return path, ("--query", "q", "--unlabelled", "skip", "--trace")


def json_lines(folder):
    rows = zip(*data(240), strict=True)
    lines = [f'{{"a": {x[0]}, "b": {x[1]}, "y": "{"uv"[y]}"}}' for x, y in rows]
    path = folder / "t.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path, ("--trace",)


def times(folder):
    """Hours of some days, one of them missing."""
    inputs, labels = data(300)
    inputs[120:, 1] += 4.0  # an input that changes
    lines = write_csv(folder / "t.csv", inputs, labels).read_text().splitlines()
    hours = [f"2024-05-{1 + i // 24:02} {i % 24:02}:00" if i != 30 else "" for i in range(300)]
    pairs = zip(["when", *hours], lines, strict=True)
    (folder / "t.csv").write_text("\n".join(f"{hour},{line}" for hour, line in pairs) + "\n")
    return folder / "t.csv", ("--time", "when")


def balanced(folder):
    """Rows that count by a column, and by how rare their class is."""
    inputs, labels = data(300)
    inputs[:, 2] = np.abs(inputs[:, 2])
    path = write_csv(folder / "t.csv", inputs, labels * (inputs[:, 1] > 1.0))
    return path, ("--weight", "x2", "--balance", "--trace")


def late(folder):
    """Labels that come late or never; a class comes up on the way, and some rows have no label."""
    path, options = without_labels(folder, "--unlabelled", "predict", "--trace", *FAST)
    lines = path.read_text().splitlines()
    days = ["days", *("" if i % 13 == 5 else str(i * i % 53) for i in range(len(lines) - 1))]
    path.write_text(
        "\n".join(f"{day},{line}" for day, line in zip(days, lines, strict=True)) + "\n"
    )
    return path, (*options, "--delay-column", "days")


def late_chances(folder):
    options = ("--delay", "45", "--proba", "--sets", "0.9")
    return write_csv(folder / "t.csv", *data(160)), (*options, *FAST)


def resumed(folder):
    """Go on from a model, in its own folder, after some rows that are passed over."""
    second = write_csv(folder / "second.csv", *data(240, seed=1))
    return second, ("--resume", "OUT/model.driftline", "--skip", "17", "--trace")


def by_key(folder):
    """A learner for every key; a class and a key come up on the way, some rows have no label."""
    path, options = without_labels(folder, "--unlabelled", "predict", *FAST)
    lines = path.read_text().splitlines()
    keys = ["who", *(f"k{i % 7 + (i > 180)}" for i in range(len(lines) - 1))]
    path.write_text("\n".join(f"{k},{line}" for k, line in zip(keys, lines, strict=True)) + "\n")
    return path, (*options, "--key", "who")


def with_champion(folder, *options):
    """A model that is silent at times; a class comes up on the way, some rows have no label."""
    path, more = without_labels(folder, "--unlabelled", "predict", "--trace", *FAST)
    lines = path.read_text().splitlines()
    said = ["model", *("uvw"[i % 2 + (i > 190)] * (i % 9 > 0) for i in range(len(lines) - 1))]
    path.write_text("\n".join(f"{k},{line}" for k, line in zip(said, lines, strict=True)) + "\n")
    return path, (*more, "--champion", "model", *options)


def late_champion(folder):
    return with_champion(folder, "--delay", "30")


WITHOUT_LABELS = (skipped, predicted, predicted_at_random, documents_skipped, probable)
KINDS = (
    audited,
    classes,
    drawn,
    means,
    tags,
    ranking,
    sparse,
    json_lines,
    times,
    balanced,
    resumed,
    late,
    late_chances,
    by_key,
    with_champion,
    late_champion,
)
KINDS += WITHOUT_LABELS


class Case:
    """A command, what it leaves behind when nothing happens to it, and how many points it has."""

    def __init__(self, folder, kind, killed, learner=()):
        self.folder, self.killed = folder, killed
        self.path, self.options = kind(folder)
        self.options += learner
        self.before = None
        if kind is resumed:
            self.before = folder / "before"
            first = write_csv(folder / "first.csv", *data(100))
            assert killed.run("run", first, "--out", self.before)["code"] == 0
        whole = folder / "whole"
        assert self.run(folder / "warm", warm=True)["code"] == 0
        done = self.run(whole)
        assert done["code"] == 0, done["output"]
        self.points, self.expected = done["points"], contents(whole)
        self.tried = self.kills = 0

    def run(self, out, **how):
        if self.before is not None and not out.exists():
            shutil.copytree(self.before, out)
        options = [option.replace("OUT", str(out)) for option in self.options]
        return self.killed.run("run", self.path, *options, "--out", out, **how)

    def try_(self, *kills):
        """Kill runs in the same folder, one after the other, then let one be and compare."""
        self.tried += 1
        out = self.folder / f"out{self.tried}"
        for how in kills:
            code = self.run(out, **how)["code"]
            assert code in (KILLED, 0), how
            self.kills += code == KILLED
        done = self.run(out)
        assert done["code"] == 0, (kills, done["output"])
        found = contents(out)
        different = [name for name in self.expected if self.expected[name] != found.get(name)]
        assert not different and found.keys() == self.expected.keys(), (kills, different)
        third = self.run(out)
        assert third["code"] == 0 and "Nothing to do" in third["output"]
        assert contents(out) == self.expected


def test_killed_at_operations_on_files(tmp_path, killed):
    case = Case(tmp_path, audited, killed, FAST)
    assert case.points > 80
    points = np.linspace(0, case.points - 1, number(8, 14)).astype(int).tolist()
    for point in points:
        case.try_({"point": point})
    assert case.kills == len(points)


def test_killed_at_any_moment(tmp_path, killed):
    case = Case(tmp_path, classes, killed, FAST)
    random = np.random.default_rng(0)
    while case.kills < 6:
        case.try_(*({"after": float(random.uniform(0, 0.1))} for _ in range(3)))


@pytest.mark.parametrize(
    "kind",
    chosen(
        [json_lines, times, balanced, probable, late, by_key, late_champion],
        [*(kind for kind in KINDS if kind not in (audited, classes, drawn, tags, resumed))],
    ),
)
def test_killed_among_rows_of_all_kinds(tmp_path, killed, kind):
    learner = () if "--learner" in kind(tmp_path)[1] else FAST
    case = Case(tmp_path, kind, killed, learner)
    for point in np.linspace(0, case.points - 1, number(4, 9)).astype(int).tolist():
        case.try_({"point": point})


@pytest.mark.hard
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_operation_on_files(tmp_path, killed, kind):
    case = Case(tmp_path, kind, killed)
    for point in range(0, case.points, 1 if kind is audited else 3):
        case.try_({"point": point})
    print(f"{kind.__name__}: {case.kills} kills at {case.points} points, 0 different bits")


@pytest.mark.hard
@pytest.mark.parametrize("kind", [audited, resumed])
def test_runs_that_end_before_their_first_checkpoint(tmp_path, kind):
    killed = Killed(seconds=2.0)
    try:
        case = Case(tmp_path, kind, killed)
        for point in range(case.points):
            case.try_({"point": point})
        print(f"{kind.__name__}, short: {case.kills} kills, 0 different bits")
    finally:
        killed.close()


@pytest.mark.hard
def test_killed_twice_in_a_row(tmp_path, killed):
    """Before the first checkpoint is there, and while what that has left is swept."""
    case = Case(tmp_path, classes, killed)
    for first in range(4, 28, 3):
        for second in range(0, 12):
            case.try_({"point": first}, {"point": second})
    print(f"{case.kills} kills in pairs, 0 different bits")


@pytest.mark.hard
@pytest.mark.parametrize("kind", KINDS)
def test_killed_again_and_again(tmp_path, killed, kind):
    """Some deaths in the same folder, at moments and points that nobody has chosen."""
    case, random = Case(tmp_path, kind, killed), np.random.default_rng(fresh_seed())
    while case.kills < 24:
        moments = [{"after": float(random.uniform(0, 0.3))} for _ in range(3)]
        points = [{"point": int(random.integers(case.points))} for _ in range(3)]
        case.try_(*random.permutation(np.array(moments + points, dtype=object)).tolist())
