"""Twelve messy files reach a result in two commands at most, the second copied from a message."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from commands import call

ROWS = 400


def people():
    """Rows of a table with something to learn: who is older than 45 stays, unless in Bath."""
    random = np.random.default_rng(0)
    rows = []
    for i in range(ROWS):
        age, income = int(random.integers(18, 80)), round(float(random.uniform(900, 9000)), 2)
        town = ("York", "Bath", "Ely")[int(random.integers(3))]
        will = "stay" if (age > 45) != (town == "Bath") else "go"
        rows.append({"id": f"c{i:04}", "age": age, "income": income, "town": town, "will": will})
    return rows


def table(rows, sign=",", header=True):
    lines = [sign.join(map(str, row.values())) for row in rows]
    return "\n".join([sign.join(rows[0])] * header + lines) + "\n"


def without(rows, *names):
    return [{key: row[key] for key in row if key not in names} for row in rows]


def missing_values():
    rows = without(people(), "id")
    for i, row in enumerate(rows):
        if i % 9 == 4:
            row["income"] = ("", "NA", "?", "inf")[i % 4]
        if i % 31 == 7:
            row["town"] = ""
    return "t.csv", table(rows)


def dates():
    days = (f"{1 + i % 28}.{1 + i % 12}.2024 {i % 24:02}:30" for i in range(ROWS))
    return "t.csv", table([{"when": day, **row} for day, row in zip(days, people(), strict=True)])


def ids():
    notes = (f"called on day {i} and asked for {i * 7 % 401}" for i in range(ROWS))
    return "t.csv", table([{"note": n, **row} for n, row in zip(notes, people(), strict=True)])


def typos():
    rows = without(people(), "id")
    for i, row in enumerate(rows):
        if i % 17 == 3:
            row["town"] = ("york", " Bath ", "Elly", "BATH")[i % 4]
        if i % 43 == 5:
            row["will"] = row["will"].capitalize()
    return "t.csv", table(rows)


def quoted_commas():
    rows = without(people(), "id")
    for row in rows:
        row["town"] = f'"{row["town"]}, UK"'
        row["income"] = f'"{row["income"]:,.2f} EUR"'
    return "t.csv", table(rows)


def byte_order_mark():
    return "t.csv", "\ufeff" + table(people()).replace("\n", "\r\n")


def semicolons():
    rows = without(people(), "id")
    for row in rows:
        row["income"] = f"{row['income']:.2f}".replace(".", ",")
    return "t.csv", table(rows, ";")


def no_header():
    return "t.csv", table(without(people(), "id", "town"), header=False)


def comment_lines():
    lines = table(without(people(), "id")).splitlines()
    lines.insert(200, "# half time, so far so good")
    return "t.csv", "\n".join(["# exported, by hand", "# do not edit", "", *lines]) + "\n"


def json_lines():
    rows = people()
    for i, row in enumerate(rows):
        row["tags"], row["at"] = ["a"] * (i % 3), {"day": i}
        if i % 12 == 5:
            del row["income"]
    return "t.jsonl", "".join(json.dumps(without([row], "id")[0]) + "\n" for row in rows)


def money_and_percents():
    rows = without(people(), "id")
    for i, row in enumerate(rows):
        row["income"] = f'"${row["income"]:,.2f}"'
        row["town"] = f"{('York', 'Bath', 'Ely').index(row['town']) * 10}%"
        if i % 50 == 20:
            row["income"] = ""
    return "t.csv", table(rows)


def labels_missing():
    rows = people()
    for row in rows[3::10]:
        row["will"] = ""
    return "t.csv", table(rows)


FILES = {
    made.__name__: made
    for made in (
        missing_values,
        dates,
        ids,
        typos,
        quoted_commas,
        byte_order_mark,
        semicolons,
        no_header,
        comment_lines,
        json_lines,
        money_and_percents,
        labels_missing,
    )
}


@pytest.mark.parametrize("kind", FILES)
def test_a_messy_file_reaches_a_result(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    name, text = FILES[kind]()
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    options = [] if kind == "no_header" else ["--label", "will"]
    done = call("run", name, *options)
    commands = [done.exit_code]
    if done.exit_code:
        words = shlex.split(done.output.splitlines()[-1])
        assert words[:2] == ["driftline", "run"], done.output
        done = call(*words[1:])
        commands.append(done.exit_code)
    assert commands[-1] == 0, done.output
    summary = json.loads((tmp_path / "results/run/t/summary.json").read_text())
    assert summary["rounds"] == ROWS - (ROWS // 10 if kind == "labels_missing" else 0)
    if kind not in ("no_header", "typos"):  # where what matters is left
        assert summary["beaten_by"] is None, summary["mean_loss"]
