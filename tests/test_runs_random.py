"""Where predictions are drawn at random, bounds are of what is expected, and this is said."""

from __future__ import annotations

import json
import re

import pytest
from commands import call, data, write_csv

import driftline as dl
from driftline.app.cli.screen import guarantee_lines
from driftline.app.runs import Journal
from driftline.app.runs.guarantee import Guarantee
from driftline.reports import ReportData, verdict, write_report


def run(path, folder, *options):
    """Return the screen, the summary and the words of the report."""
    done = call("run", path, "--out", folder, *options)
    assert done.exit_code == 0, done.output
    summary = json.loads((folder / "summary.json").read_text())
    report = re.search("<p class=verdict>(.*?)</p>", (folder / "report.html").read_text())
    return done.output, summary, report[1]


def line(screen, name):
    return next(line.split(maxsplit=1)[1] for line in screen.splitlines() if f"  {name} " in line)


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "t.csv", *data(600))


def test_the_expected_loss_is_held_to_its_bound(tmp_path, table):
    screen, summary, report = run(table, tmp_path / "out", "--learner", "paper")
    made, journal = summary["certificate"], Journal.load(tmp_path / "out" / "journal.driftline")
    assert made["random"] and made["paid"] == summary["loss"]
    assert made["expected"] == pytest.approx(journal.total("risk.0")) != made["paid"]
    assert made["expected"] <= made["bound"] == min(made["bounds"].values())
    assert "smallest bound of its expected loss" in line(screen, "at most")
    assert line(screen, "expected").startswith(f"{made['expected']:,.0f} over its random predict")
    assert line(screen, "paid") == f"{made['paid']:,.0f} by those drawn"
    assert f"drawn at random, {made['expected']:.4g} expected" in report
    assert f"bound of what is expected is {made['bound']:.4g}".replace(",", " ") in report


def test_certain_predictions_pay_what_is_expected(tmp_path, table):
    for learner in ("polyak", "auto"):
        screen, summary, report = run(table, tmp_path / learner, "--learner", learner)
        made = summary["certificate"]
        assert not made["random"] and made["expected"] == made["paid"]
        assert "random" not in screen + report and "  expected " not in screen


def test_a_vote_of_random_members_is_said_to_be_one():
    made = Guarantee(120, 30.0, 28.0, 40.0, 60.0, None, "nothing was kept", random=True, budget=5.0)
    assert made.expected is None
    screen = "\n".join(guarantee_lines(made))
    assert "by the predictions drawn; the bound is of what is expected" in line(screen, "paid")
    stream = dl.streams.LabelFlips(rounds=120, flips=1, form="matrix", seed=0)
    loss = dl.losses.Logistic(stream.task)
    pair = [dl.OGD(loss, rate=rate) for rate in (dl.rates.Polyak(), dl.rates.Constant(1.0))]
    data = ReportData.of(dl.Committee(pair).run(stream), name="a pair")
    assert data.random and data.expected is None
    data.bounds, data.trivial = {"best member": 50.0}, 60.0
    assert "drawn at random" in verdict(data) and "bound of what is expected is" in verdict(data)


def test_without_an_audit_the_expected_loss_is_there_too(tmp_path, table):
    screen, summary, _ = run(table, tmp_path / "out", "--learner", "paper", "--no-certify")
    assert summary["certificate"]["bound"] is None
    assert "over its random predictions" in line(screen, "expected")
    assert "best member" not in screen


@pytest.mark.parametrize("learner", ["paper", "polyak", "auto"])
def test_a_certificate_says_which_rounds_it_is_of(tmp_path, table, learner):
    screen, summary, _ = run(table, tmp_path / "out", "--learner", learner)
    assert "certificate\n" in screen and summary["certificate"]["rounds"] == 600
    model = tmp_path / "out" / "model.driftline"
    more = write_csv(tmp_path / "more.csv", *data(600, seed=1))
    screen, summary, report = run(more, tmp_path / "out", "--resume", model)
    made, alone = summary["certificate"], learner != "auto"
    where = "of this run alone" if alone else "since the first round of the model"
    assert f"certificate, {where}\n" in screen
    assert made["rounds"] == (600 if alone else 1200)
    # The report is about all rounds, and has no bound of some of them.
    assert "1\xa0200 rounds" in report and ("bound" in report) == (not alone)


def test_the_report_of_a_trace_says_it(tmp_path):
    stream = dl.streams.LabelFlips(rounds=500, flips=2, seed=0)
    trace = dl.OGD(dl.losses.Logistic(stream.task)).run(stream)
    data = ReportData.of(trace, stream.labels)
    assert data.random and data.expected.sum() == pytest.approx(trace.risk.sum())
    assert f"{trace.risk.sum():.4g} expected" in verdict(data)
    text = write_report(data, tmp_path / "report.html").read_text()
    assert "expected of its random predictions" in text
    votes = dl.auto(stream.task, effort="fast").run(stream)
    data = ReportData.of(votes)
    assert not data.random and data.expected is None and "expected" not in verdict(data)
    voted = dl.Committee([dl.OGD(dl.losses.Logistic(stream.task)) for _ in range(3)]).run(stream)
    assert ReportData.of(voted).random and ReportData.of(voted).expected is None
