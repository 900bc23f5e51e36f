"""Laws of committees in which gradient learners sit beside others."""

import numpy as np
import pytest

import driftline as dl
from driftline.features import Hats, Ranks, Raw, Standardise
from driftline.members import Forest, NaiveBayes, Neighbours, Tables
from tests.test_members import stream

TASK, SIGN = dl.tasks.Multiclass(3), dl.tasks.Binary()


def ogd(task, features=None, random=False):
    loss = dl.losses.Scaled(dl.losses.Logistic(task), 2.0)
    return dl.OGD(loss, None if random else dl.decoders.Argmax(loss), features=features)


def others(task, features=None):
    return [
        NaiveBayes(task, half_life=20.0, features=features or Ranks()),
        Tables(task, bins=6, coarse=4, features=features or Ranks()),
        Neighbours(task, window=15, features=features or Standardise(constant=False)),
        Forest(task, trees=2, window=30, nodes=15, features=features or Raw()),
    ]


MAKERS = {
    "vote": lambda: dl.Committee([*others(TASK), ogd(TASK), ogd(TASK, Hats(4))]),
    "vote of signs": lambda: dl.Committee([ogd(SIGN, Ranks()), *others(SIGN)]),
    "guarded": lambda: dl.Committee([ogd(TASK, random=True), *others(TASK)], budget=1.5),
    "scaled": lambda: dl.Committee(
        [
            ogd(TASK, Standardise()),
            NaiveBayes(TASK, features=Standardise()),
            Neighbours(TASK, features=None, window=20),
            ogd(TASK, Standardise(), random=True),
        ]
    ),
    "one map for all": lambda: dl.Committee([*others(TASK, Ranks(8)), ogd(TASK, Ranks(8))]),
    "others alone": lambda: dl.Committee(others(TASK)),
}
every_committee = pytest.mark.parametrize("name", MAKERS)


@every_committee
def test_mixed_committee_keeps_the_page_of_learners(name):
    committee = MAKERS[name]()
    dl.checks.check_learner(committee, *stream(committee.task))


@every_committee
def test_members_play_as_if_alone(name):
    committee, X, y = MAKERS[name](), *stream(MAKERS[name]().task)
    alone = [member.copy() for member in committee.members]
    trace = committee.run(X, y)
    for member, own in zip(alone, trace.members, strict=True):
        wanted = member.run(X, y)
        assert np.array_equal(own.loss, wanted.loss)
        if member.facts.certain:
            assert np.array_equal(own.prediction, wanted.prediction)


@every_committee
def test_a_run_is_certified(name, tmp_path):
    committee, X, y = MAKERS[name](), *stream(MAKERS[name]().task)
    early = committee.run(X[:20], y[:20])
    late = committee.run(X[20:], y[20:])
    for trace, inputs, labels in ((early, X[:20], y[:20]), (late, X[20:], y[20:])):
        loaded = dl.CommitteeTrace.load(trace.save(tmp_path / "trace"))
        made = dl.certify(loaded, None, inputs, labels)
        assert made.valid, made.findings
        assert "NaiveBayes has no theorem" in str(made)
        made.to_dict()


@every_committee
def test_a_bad_row_takes_all_members_back(name):
    committee, X, y = MAKERS[name](), *stream(MAKERS[name]().task)
    committee.run(X[:20], y[:20])
    before, bad = committee.to_saved(), X.copy()
    bad[50, 2] = np.inf
    with pytest.raises(dl.InputError):
        committee.run(bad[20:], y[20:])
    with pytest.raises(dl.InputError):
        committee.step(bad[50], y[50])
    with pytest.raises(KeyboardInterrupt):
        committee.run(X[20:], y[20:], progress=interrupt)
    about, arrays = committee.to_saved()
    assert about == before[0]
    for key, array in before[1].items():
        np.testing.assert_array_equal(arrays[key], array)


def interrupt(rounds):
    raise KeyboardInterrupt


@every_committee
def test_what_is_described_says_who_has_no_theorem(name):
    committee = MAKERS[name]()
    lines = committee.describe().splitlines()
    for member, line in zip(committee.members, lines[-len(committee.members) :], strict=True):
        assert ("no theorem" in line) == (not member.facts.steps)


@every_committee
def test_beliefs_follow_log_chances(name):
    committee, X, y = MAKERS[name](), *stream(MAKERS[name]().task, rounds=400)
    trace = committee.run(X, y)
    assert [member.facts.nats for member in committee.members].count(None) == 0
    scores = committee.score_rows(X[:5])
    assert scores.shape == (len(committee.members), 5, committee.task.dim)
    assert np.isfinite(scores).all()
    weights = committee.beliefs
    assert weights.sum() == pytest.approx(1.0) and len(weights) == len(trace.members)


def test_an_estimator_takes_a_mixed_committee_and_a_member_alone(tmp_path):
    X, y = stream(TASK, rounds=300)
    words = np.array(["a", "b", "c"])[y]
    for make in (
        lambda task: dl.Committee([ogd(task), *others(task)]),
        lambda task: NaiveBayes(task),
    ):
        fitted = dl.DriftClassifier(learner=make).fit(X, words)
        chances = fitted.predict_proba(X[:50])
        assert np.allclose(chances.sum(axis=1), 1.0)
        assert (fitted.predict(X[:50]) == fitted.classes_[chances.argmax(axis=1)]).all()
        assert fitted.score(X, words) > 0.6


def test_an_estimator_with_a_member_is_saved(tmp_path):
    X, y = stream(TASK, rounds=300)
    fitted = dl.DriftClassifier().fit(X, y)
    fitted.learner_ = dl.Committee(others(dl.tasks.Multiclass(3)))
    fitted.learner_.run(X, y)
    again = dl.load(fitted.save(tmp_path / "model"))
    assert np.array_equal(again.predict(X), fitted.predict(X))


def test_members_that_are_none_are_refused():
    with pytest.raises(dl.InputError, match="members must be learners such as dl.OGD"):
        dl.Committee([ogd(TASK), dl.Committee([ogd(TASK)])])


def test_a_file_with_a_member_of_no_kind_is_refused():
    about, arrays = dl.Committee(others(TASK)).to_saved()
    for kind in ("Committee", "DriftClassifier", "os", None, 3):
        about["members"][0]["kind"] = kind
        with pytest.raises(dl.InputError, match="no members of the kind"):
            dl.Committee.from_saved(about, arrays)


def test_a_report_names_members_by_their_kind():
    from driftline.reports.report_data import ReportData

    committee, X, y = MAKERS["vote"](), *stream(TASK)
    data = ReportData.of(committee.run(X, y))
    assert data.members[:3] == ["0 NaiveBayes", "1 Tables", "2 Neighbours"]


def test_a_model_of_a_run_predicts_and_is_inspected():
    from driftline.app.cli.inspect import _members

    committee, X, y = MAKERS["vote"](), *stream(TASK)
    committee.run(X, y)
    assert "NaiveBayes" in _members(committee)["member 0"]
    assert "Ball" in _members(committee)["member 4"]


def test_a_run_of_the_command_line_is_audited_and_goes_on(tmp_path, monkeypatch):
    import json

    from commands import call

    def mixed(name, task, seed=0, column=False, categories=()):
        linear, plain = ogd(task, Standardise()), NaiveBayes(task, features=None)
        return dl.Committee([linear, ogd(task, Hats(4)), *others(task), plain], seed=seed)

    monkeypatch.setattr("driftline.app.runs.committee_model.named", mixed)
    monkeypatch.chdir(tmp_path)
    X, y = stream(TASK, rounds=240)
    words = np.array(["dry", "rain", "snow"])[np.where(np.arange(240) < 100, y % 2, y)]
    lines = [",".join([*map(str, row), word]) for row, word in zip(X, words, strict=True)]
    for name, part in (("first", lines[:160]), ("second", lines[160:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,c,d,w", *part]) + "\n")
    done = call("run", "first.csv", "--label", "w")
    assert done.exit_code == 0, done.output
    summary = json.loads((tmp_path / "results/run/first/summary.json").read_text())
    assert summary["certificate"]["findings"] == []
    model = "results/run/first/model.driftline"
    assert "NaiveBayes" in call("inspect", model).output
    assert call("predict", model, "second.csv").exit_code == 0
    done = call("run", "second.csv", "--resume", model)
    assert done.exit_code == 0, done.output
    assert dl.load(model).rounds == 240
