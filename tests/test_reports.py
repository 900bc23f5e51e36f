"""Reports: one file that holds what it should, and nothing that it should not."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import driftline as dl
from driftline.errors import InputError
from driftline.reports import ReportData, verdict, write_report
from driftline.reports.chart import number, ticks

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Balanced(HTMLParser):
    """Raises where tags do not match, and counts them."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    text = path.read_text()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert not re.search(r"https?:|//[a-z]|src=|@import|url\(", text)
    assert len(text) < 1_000_000
    return parser


@pytest.fixture(scope="module")
def digits():
    return dl.streams.DigitTriples(rounds=1500, flips=3, seed=0)


@pytest.fixture(scope="module")
def told(digits):
    trace = dl.auto(digits.task, effort="fast").run(digits)
    certificate = dl.certify(trace, None, digits)
    return ReportData.of(trace, digits.labels, name="auto", certificate=certificate, changes=[375])


def test_a_committee_has_its_story(told, digits, tmp_path):
    page = read(write_report(told, tmp_path / "deep" / "report.html"))
    words = " ".join(page.text)
    assert verdict(told) in words
    assert f"{int(told.total)} mistakes in 1\xa0500 rounds" in words
    assert page.seen["svg"] == 3
    assert "2 Constant, diameter 200, restarts" in words
    assert told.counts.sum() == 1500
    assert told.counts.trace() == 1500 - told.total
    np.testing.assert_allclose(told.weights.sum(axis=1), 1.0)
    assert told.columns["loss"].sum() == told.total


def test_several_runs_lie_over_each_other(tmp_path):
    stream = dl.streams.LabelFlips(rounds=400, flips=1, seed=0)
    loss = dl.losses.Logistic(stream.task)
    stories = []
    for rate in (dl.rates.Polyak(), dl.rates.AdaGrad()):
        trace = dl.OGD(loss, rate=rate).run(stream)
        made = dl.certify(trace, stream.comparator.scaled(3.0), stream)
        stories.append(ReportData.of(trace, stream.labels, name=repr(rate), certificate=made))
    page = read(write_report(stories, tmp_path / "report.html", title="Two rates"))
    words = " ".join(page.text)
    assert "Two rates" in words
    assert page.seen["input"] == 2
    assert page.seen["svg"] == 2 + 2 * 2
    assert "vacuous" in words


@pytest.mark.parametrize(
    "stream",
    [
        dl.streams.Planted(dl.tasks.Multilabel(3), rounds=60, flips=1, seed=0),
        dl.streams.Planted(dl.tasks.Ordinal(3), rounds=60, flips=1, seed=0),
        dl.streams.PlantedRankings(dl.tasks.NDCG(2), rounds=60, flips=1, seed=0),
        dl.streams.PlantedSequences(rounds=30, flips=1, tags=3, longest=4, seed=0),
    ],
    ids=lambda stream: type(stream.task).__name__,
)
def test_every_task_can_be_told(stream, tmp_path):
    story = ReportData.of(dl.auto(stream.task, effort="fast").run(stream), stream.labels)
    read(write_report(story, tmp_path / "report.html"))
    assert story.rounds == len(stream)


def test_names_are_text_and_nothing_else(told, digits, tmp_path):
    wild = "<script>alert(1)</script>&\"'"
    trace = dl.auto(digits.task, effort="fast").run(digits)
    story = ReportData.of(trace, digits.labels, name=wild, classes=[wild, "b", "c"])
    page = read(write_report(story, tmp_path / "report.html"))
    assert page.seen["script"] == 1
    assert wild in "".join(page.text)


def test_one_round_is_enough(tmp_path):
    trace = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2))).run(np.ones((1, 2)), [1])
    read(write_report(ReportData.of(trace, [1]), tmp_path / "report.html"))


def test_nothing_to_tell_is_refused(tmp_path):
    with pytest.raises(InputError, match="one run or more"):
        write_report([], tmp_path / "report.html")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 97), (-3, 4), (0, 1e-9), (5, 5), (0, 3e7)])
def test_ticks_are_few_and_inside(low, high):
    made = ticks(low, high)
    assert len(made) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in made)


def test_numbers_are_short():
    assert [number(v) for v in (0.0, 1.5, 999.0, 12345.6)] == ["0", "1.5", "999", "12\xa0346"]


@pytest.mark.browser
@pytest.mark.parametrize("size", ["1000,1600", "400,1600"])
def test_a_browser_shows_it_without_a_word_of_complaint(told, tmp_path, size):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no chromium here")
    path = write_report(told, tmp_path / "report.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}"]
    picture = tmp_path / "report.png"
    shot = [browser, *options, f"--screenshot={picture}", path.as_uri()]
    subprocess.run(shot, check=True, capture_output=True, timeout=60)
    assert picture.stat().st_size > 20_000
    page = [browser, *options, "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(page, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("<svg") == 3
    assert "CONSOLE" not in done.stderr


def test_sections_of_an_experiment(tmp_path):
    from driftline import paper

    settings = paper.Settings(data=("synthetic",), flips=(1, 2), rounds=60, trials=2)
    results = paper.reproduce(settings, jobs=1)
    sections = paper.sections_of(results)
    assert list(sections) == ["synthetic, 1 change", "synthetic, 2 changes"]
    for story in sections["synthetic, 2 changes"]:
        mean = results.mean("synthetic", 2, story.name, "mistakes").value
        assert story.total == pytest.approx(mean)
    page = read(write_report(sections, tmp_path / "report.html"))
    assert page.seen["svg"] == 4


def test_weights_of_many_members_are_added_up_by_what_they_see(digits):
    learner = dl.auto(dl.tasks.Multiclass(3))
    data = ReportData.of(learner.run(digits), digits.labels, name="auto")
    assert len(data.members) == data.weights.shape[1] < len(learner.members)
    np.testing.assert_allclose(data.weights.sum(axis=1), 1.0)
    assert data.members[0] == "linear (8)" and "Fourier of Ranks (4)" in data.members


def test_labels_that_came_late_are_told_in_their_order():
    stream = dl.streams.LabelFlips(rounds=300, flips=1, seed=0)
    for learner in (dl.auto(stream.task, effort="fast"), dl.OGD(dl.losses.Logistic(stream.task))):
        trace = learner.run(stream, delay=20)
        data = ReportData.of(trace, stream.labels)
        assert data.rounds == 280 and data.total == np.nansum(trace.target_loss)
        assert data.counts.sum() == 280
        assert np.trace(data.counts) == 280 - data.total


def test_what_late_labels_have_added_stands_beside_the_bounds(tmp_path):
    stream = dl.streams.LabelFlips(rounds=400, flips=3, seed=0)
    shown = {}
    for delay in (0, 20):
        trace = dl.OGD(dl.losses.Logistic(stream.task)).run(stream, delay=delay)
        certificate = dl.certify(trace, stream.comparator, stream)
        data = ReportData.of(trace, stream.labels, name="late", certificate=certificate)
        words = " ".join(read(write_report(data, tmp_path / "report.html")).text)
        shown[delay] = data.delay_cost, "Late labels have added" in words, verdict(data)
        several = " ".join(read(write_report([data, data], tmp_path / "several.html")).text)
        assert ("late: Late labels have added" in several) == (delay > 0)
    assert shown[0][:2] == (0.0, False) and "Late labels" not in shown[0][2]
    cost, told, said = shown[20]
    assert cost == certificate.delayed.cost
    words = f"Late labels have added {number(cost)} to every bound"
    assert cost > 1.0 and told and words in said
    data.delay_cost = -12.34
    assert f"have taken {number(12.34)} from" in verdict(data)
    data.bounds = {"self_bounding": "no theorem"}
    assert "Late labels" not in verdict(data)
