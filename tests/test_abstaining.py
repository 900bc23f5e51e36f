"""Predictions that may be none: the guarantee, the vote, and that all ways to play are one."""

import dataclasses
import json
import math

import numpy as np
import pytest
from commands import call, data, predictions, write_csv
from strategies import adversarial_scores

import driftline as dl
from driftline.engines import PlainEngine
from driftline.tasks.abstaining import odds_of
from tests import naive
from tests.howmany import chosen, examples, number

COSTS = (0.1, 0.25, 0.4, 0.5, 0.75)


def decoder(classes=3, cost=0.25, factor=1.0, base=2.0):
    loss = dl.losses.Logistic(dl.tasks.Multiclass(classes), base)
    return dl.decoders.Abstain(loss if factor == 1.0 else dl.losses.Scaled(loss, factor), cost)


def stream(rounds=300, classes=3, features=4, seed=0, noise=0.2):
    """Return rows, and labels of a linear rule with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, features)) / 2.0
    y = (X @ rng.normal(size=(features, classes))).argmax(axis=1)
    return X, np.where(rng.random(rounds) < noise, rng.integers(0, classes, rounds), y)


def learner(classes=3, cost=0.25, **options):
    made = decoder(classes, cost)
    return dl.OGD(made.loss, made, **options)


# -- the guarantee


@pytest.mark.parametrize("cost", (1e-3, *COSTS, 0.999))
def test_odds_solve_their_equation(cost):
    u = odds_of(cost)
    assert u > 1.0 and 2.0 ** (-cost * u) + 2.0**-u == pytest.approx(1.0, abs=1e-14)
    assert u == pytest.approx(naive.odds(cost), rel=1e-9)


def doubtful_scores(classes, chance):
    """Return scores at which the most probable class is just probable enough, or just not."""
    for others in range(1, classes):
        for near in (1.0 - 1e-9, 1.0 + 1e-9):
            p = np.full(classes, 1e-13)
            p[0], p[1 : 1 + others] = chance * near, (1.0 - chance * near) / others
            yield np.log(p)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("classes", chosen((2, 3, 6), range(2, 7)))
def test_cost_is_at_most_the_loss_over_u_and_this_is_tight(classes, cost):
    made, rng = decoder(classes, cost), np.random.default_rng(classes)
    u, worst, missed = naive.odds(cost), 0.0, 0.0
    near = doubtful_scores(classes, 2.0 ** (-cost * u))
    for theta in (*adversarial_scores(classes, rng, number(2, 50)), *near):
        prediction = made.draw(theta, np.empty(0))
        for label in range(classes):
            value, _ = naive.logistic(theta, label)
            paid = naive.paid(prediction, label, cost)
            assert paid <= value / u + 1e-12
            assert made.risk(theta, label) == paid
            if prediction is None:
                worst = max(worst, paid * u / value)
            else:
                missed = max(missed, paid * u / value if value > 0 else 0.0)
    assert worst > 1.0 - 1e-7 and missed > 1.0 - 1e-7  # both sides are attained


@pytest.mark.parametrize(
    "made",
    [decoder(3, 0.25), decoder(5, 0.1, factor=2.0), decoder(2, 0.4, base=2.5), decoder(4, 0.75)],
    ids=repr,
)
def test_laws_of_decoders(made):
    dl.checks.check_decoder(made, trials=number(10, 50))
    assert made.surrogate_gap == pytest.approx(1.0 - 1.0 / (made.task.odds * made.loss.unit))


def test_gap_and_threshold_of_the_page():
    found = [(decoder(3, c).surrogate_gap, decoder(3, c).task.least_chance) for c in COSTS]
    gaps, chances = np.round(found, 3).T
    assert gaps.tolist() == [0.615, 0.462, 0.347, 0.280, 0.131]
    assert chances.tolist() == [0.835, 0.724, 0.654, 0.618, 0.550]


def test_losses_without_a_guarantee_are_refused_with_a_way_out():
    task = dl.tasks.Multiclass(3)
    for loss, words in (
        (dl.losses.SmoothHinge(task), "use dl.losses.Logistic"),
        (dl.losses.Logistic(dl.tasks.Binary()), r"Multiclass\(2\)"),
        (dl.losses.Logistic(task, base=4.0), "use a base below"),
        (dl.losses.Scaled(dl.losses.Logistic(task), 0.3), "Scaled by more than"),
    ):
        with pytest.raises(dl.NoGuaranteeError, match=words):
            dl.decoders.Abstain(loss, cost=0.4)
    for cost in (0.0, 1.0, -0.1, math.nan, "0.2", True, None):
        with pytest.raises(dl.InputError, match="cost"):
            decoder(3, cost)
    with pytest.raises(dl.InputError, match="Logistic takes"):
        dl.losses.Logistic(dl.tasks.Abstaining(task))
    with pytest.raises(dl.InputError, match=r"Multiclass\(2\)"):
        dl.tasks.Abstaining(dl.tasks.Binary())


# -- the task


@pytest.mark.parametrize("cost", [*COSTS, 2.0 / 3.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_laws_of_tasks(classes, cost):
    task = dl.tasks.Abstaining(dl.tasks.Multiclass(classes), cost)
    dl.checks.check_task(task, None, [*range(classes), None], trials=number(8, 30))
    assert task.loss(-1, 0) == task.loss(None, 1) == cost and task.loss(1, 0) == 1.0
    assert task.guess.loss == min(cost, 1.0 - 1.0 / classes)
    more = dl.tasks.with_classes(task, 9)
    assert more.answers.classes == 9 and more.cost == cost


# -- the vote


def test_vote_is_that_of_the_worst_label_and_rows_are_single_votes():
    rng = np.random.default_rng(0)
    for _ in examples(40, 400):
        classes, members = int(rng.integers(2, 5)), int(rng.integers(1, 6))
        cost = float(rng.choice(COSTS))
        task = dl.tasks.Abstaining(dl.tasks.Multiclass(classes), cost)
        made = [rng.integers(-1, classes, (7, 1)) for _ in range(members)]
        weights = rng.dirichlet(np.ones(members), 7)
        rows = task.many.average(made, weights)
        for t in range(7):
            said = [task.predictions.value(own[t]) for own in made]
            one = task.average(said, weights[t])
            assert one == task.predictions.value(rows[t])
            assert one == naive.cautious_vote(said, weights[t], cost)


# -- runs


def polyak(value, risk, grad_sq, etas):
    return min([2.0 * (value - risk) / grad_sq, *(e for e in etas if not math.isnan(e))])


@pytest.mark.parametrize("cost", chosen([0.25], COSTS))
def test_compiled_and_plain_rounds_are_the_naive_ones(cost):
    X, y = stream(200)
    rows, predictions, W = naive.run(
        X, y, 3, naive.logistic, naive.abstain(cost), polyak, uniforms=np.full(200, 0.5), cost=cost
    )
    made = learner(3, cost)
    trace = made.run(X, y)
    assert type(made.engine).__name__ == "CompiledEngine" or not dl.kernels.COMPILES
    plain = learner(3, cost)
    plain.engine = PlainEngine(plain.parts)
    for own in (trace, plain.run(X, y)):
        assert own.prediction.tolist() == predictions.tolist()
        columns = [own.loss, own.risk, own.target_loss, own.eta, own.grad_sq]
        np.testing.assert_allclose(np.array(columns), rows, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(made.weights, W, rtol=1e-6, atol=1e-9)
    assert 0 < np.count_nonzero(predictions == -1) < 200


def makers():
    task = dl.tasks.Abstaining(dl.tasks.Multiclass(3), 0.25)
    return {
        "OGD": lambda: learner(),
        "bayes": lambda: dl.members.NaiveBayes(task),
        "forest": lambda: dl.members.Forest(task, trees=3),
        "tables": lambda: dl.members.Tables(task),
        "neighbours": lambda: dl.members.Neighbours(task, window=50),
        "vote": lambda: dl.auto(task, effort="fast"),
        "guarded vote": lambda: dl.auto(task, effort="fast", combine="vote", budget=1.5),
        "all": lambda: dl.auto(task),
    }


every_maker = pytest.mark.parametrize("make", makers().values(), ids=makers())


@every_maker
def test_steps_runs_pieces_tickets_and_files_are_one(make, tmp_path):
    X, y = stream(number(60, 200))
    whole = make().run(X, y)
    none = whole.prediction == -1
    assert none.any() and not none.all()
    assert (whole.target_loss[none] == 0.25).all()
    assert set(whole.target_loss[~none].tolist()) <= {0.0, 1.0}
    single, pieces, asked = make(), make(), make()
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        expected = None if none[t] else int(whole.prediction[t])
        assert single.predict(x) == expected
        made = single.step(x, label)
        assert made.prediction == expected and made.target_loss == whole.target_loss[t]
        ticket = dl.Ticket.from_bytes(asked.ask(x).to_bytes())
        assert ticket.prediction == expected
        asked.tell(ticket, label)
    half = len(y) // 2
    first = pieces.run(X[:half], y[:half])
    pieces.save(tmp_path / "model")
    pieces = dl.load(tmp_path / "model")
    second = pieces.run(X[half:], y[half:])
    for name in ("prediction", "risk", "target_loss"):
        joined = np.r_[getattr(first, name), getattr(second, name)]
        np.testing.assert_array_equal(joined, getattr(whole, name))
    assert make().run(X, y, delay=0).prediction.tolist() == whole.prediction.tolist()


@every_maker
def test_late_labels_and_growth_are_no_special_case(make):
    X, y = stream(80)
    trace = make().run(X, y, delay=7)
    live, tickets = make(), []
    for t, x in enumerate(X):
        if t > 7:
            live.tell(tickets[t - 8], y[t - 8])
        tickets.append(live.ask(x))
    said = [-1 if ticket.prediction is None else ticket.prediction for ticket in tickets]
    assert said == trace.prediction.tolist()
    few = make()
    few.run(X[:40], y[:40])
    before = few.predict(X[40])
    ticket = few.ask(X[40])
    many = few.grown(classes=5)
    assert many.task.dim == 5 and many.task.cost == 0.25
    assert before is None or many.predict(X[40]) in (None, before)
    assert ticket.mean.shape == (3,)


def test_a_late_ticket_of_a_committee_that_has_grown_costs_what_it_did():
    X, y = stream(60)
    made = dl.auto(dl.tasks.Abstaining(dl.tasks.Multiclass(3)), effort="fast")
    made.run(X[:30], y[:30])
    ticket = made.ask(X[30])
    grown, none = made.grown(classes=5), ticket.made == -1
    paid = grown._paid_then([ticket], [grown.task.labels.check(4)], grown._row(X[30]))[0]
    assert (paid[none] == 0.25).all() and (paid[~none] == 1.0).all()
    grown.step(X[31], y[31])
    grown.tell(ticket, 4)
    assert grown.rounds == 32


def test_sample_weights_multiply_what_no_answer_costs():
    X, y = stream(80)
    h = np.random.default_rng(1).uniform(0.5, 3.0, 80)
    for make in (makers()["OGD"], makers()["bayes"], makers()["all"]):
        trace = make().run(X, y, sample_weight=h)
        none = trace.prediction == -1
        np.testing.assert_allclose(trace.target_loss[none], 0.25 * h[none])


def test_laws_of_learners():
    X, y = stream(number(40, 60))
    for name in chosen(("OGD",), makers()):
        dl.checks.check_learner(makers()[name](), X, y)


# -- the estimator


def test_classifier_has_none_where_its_learner_has_no_answer(tmp_path):
    from driftline.estimators import DriftClassifier

    X, y = stream(400)
    for names in (np.array(["a", "b", "None"]), np.array([-1, 0, 1]), np.arange(3)):
        model = DriftClassifier("fast", abstain=0.25)
        model.partial_fit(X[:20], names[np.minimum(y[:20], 1)])  # the third class comes later
        model.partial_fit(X[20:300], names[y[20:300]])
        made, truth = model.predict(X[300:]), names[y[300:]]
        known = [*model._labels.names.tolist()]
        codes = [model.learner_.predict(x) for x in X[300:]]
        assert made.dtype == object
        assert made.tolist() == [None if code is None else known[code] for code in codes]
        none = np.array([name is None for name in made])
        assert none.any() and not none.all()
        right = (made == truth).astype(float)
        assert model.score(X[300:], truth) == pytest.approx(np.where(none, 0.75, right).mean())
        h = np.arange(100.0)
        expected = np.average(np.where(none, 0.75, right), weights=h)
        assert model.score(X[300:], truth, h) == pytest.approx(expected)
        model.save(tmp_path / "model")
        assert dl.load(tmp_path / "model").predict(X[300:]).tolist() == made.tolist()
        chances = model.decoding_distribution(X[300:])
        assert (chances.sum(axis=1) <= 1.0 + 1e-12).all() and (chances.sum(axis=1) < 0.99).any()
        drawn = model.sample_predict(X[300:], rng=0)
        assert {None, *known} >= set(drawn.tolist()) and None in drawn.tolist()
        assert model.predict_proba(X[300:]).sum(axis=1) == pytest.approx(1.0)
    with pytest.raises(dl.InputError, match="cost of no answer"):
        DriftClassifier(abstain=1.5).fit(X, y)
    assert DriftClassifier("fast").fit(X, y).predict(X).dtype == y.dtype


# -- tables


def table(path, rows=240):
    inputs, labels = data(rows)
    return write_csv(path, inputs, labels, names=["u", "v"])


def test_run_tells_how_many_rounds_had_no_answer(tmp_path):
    file, out = table(tmp_path / "t.csv"), tmp_path / "out"
    told = call("run", file, "--out", out, "--abstain", "0.25", "--proba", "--trace")
    assert told.exit_code == 0, told.output
    assert "cost (0.25 for no answer), of 240 rounds" in told.output
    rows, summary = predictions(out), json.loads((out / "summary.json").read_text())
    none = [row for row in rows if not row["prediction"]]
    assert none and all(row["loss"] == "0.25" for row in none)
    assert all(
        float(row["loss"]) == (row["label"] != row["prediction"])
        for row in rows
        if row["prediction"]
    )
    assert (summary["abstain"], summary["unanswered"]) == (0.25, len(none))
    assert summary["loss"] == pytest.approx(sum(float(row["loss"]) for row in rows))
    assert summary["certificate"]["guess"] == "no answer at all"
    assert summary["certificate"]["guessing"] == pytest.approx(60.0)
    assert f"no answer in {100 * len(none) / 240:.3g}% of them" in (out / "report.html").read_text()
    told = call("certify", out)
    assert told.exit_code == 0 and "nothing to object to" in told.output, told.output
    told = call("predict", out / "model.driftline", file, "--out", tmp_path / "p.csv")
    assert told.exit_code == 0 and ",,0.25," in (tmp_path / "p.csv").read_text()
    told = call("compare", file, "--abstain", "0.25", "--with", "fast,paper")
    assert told.exit_code == 0 and "cost (0.25 for no answer)" in told.output
    told = call("run", file, "--out", tmp_path / "other", "--abstain", "0.2", "--levels", "u,v")
    assert told.exit_code and "--abstain is for classes" in told.output
    told = call("run", file, "--resume", out / "model.driftline", "--abstain", "0.2")
    assert told.exit_code and "--abstain cannot be given with --resume" in told.output


def test_run_in_two_parts_counts_all_rounds_without_an_answer(tmp_path):
    file, whole, parts = table(tmp_path / "t.csv"), tmp_path / "whole", tmp_path / "parts"
    assert call("run", file, "--out", whole, "--abstain", "0.25").exit_code == 0
    lines = file.read_text().splitlines(keepends=True)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("".join(lines[:101]))
    second.write_text("".join([lines[0], *lines[101:]]))
    assert call("run", first, "--out", parts, "--abstain", "0.25").exit_code == 0
    before = json.loads((parts / "summary.json").read_text())["unanswered"]
    assert call("run", second, "--resume", parts / "model.driftline").exit_code == 0
    after = json.loads((parts / "summary.json").read_text())["unanswered"]
    assert before + after == json.loads((whole / "summary.json").read_text())["unanswered"]
    assert predictions(parts) == predictions(whole)


def test_table_model_has_none_for_no_answer(tmp_path):
    inputs, labels = data(200)
    rows = [{"a": x[0], "b": x[1], "is": "uv"[y]} for x, y in zip(inputs, labels, strict=True)]
    model = dl.TableModel.new(rows, label="is", learner="fast", abstain=0.25)
    made = model.learn(rows[:199])
    assert set(made) == {"u", "v", None} and model.predict(rows) != made
    assert model.learn(rows[199]) in ("u", "v", None)
    model.save(tmp_path / "model")
    assert dl.load(tmp_path / "model").predict(rows) == model.predict(rows)
    grown = [{"a": 0.1, "b": 0.2, "is": "w"}]
    assert model.learn(grown)[0] in ("u", "v", None) and model.learner.task.dim == 3
    assert model.learner.task.cost == 0.25
    with pytest.raises(dl.InputError, match="abstain"):
        dl.TableModel.new(rows, label="is", abstain=2.0)


def test_reports_of_traces_leave_rounds_without_an_answer_out_of_the_table(tmp_path):
    from driftline.reports import ReportData

    X, y = stream(200)
    trace = learner().run(X, y)
    made = ReportData.of(trace, y, classes=["a", "b", "c"])
    none = int((trace.prediction == -1).sum())
    assert made.unanswered == pytest.approx(none / 200) and made.counts.sum() == 200 - none
    assert made.names == ["a", "b", "c"]


# -- certificates and words


@pytest.mark.parametrize("cost", chosen([0.25], COSTS))
def test_certificates_hold_and_compare_with_no_answer_at_all(cost):
    for seed in examples(3, 20):
        X, y = stream(300, seed=seed)
        U = np.random.default_rng(seed).normal(size=(3, 4))
        trace = learner(3, cost).run(X, y)
        made = dl.certify(trace, dl.comparators.Fixed(U), X, y)
        assert made.valid and made.trivial == pytest.approx(300 * min(cost, 2.0 / 3.0))
        slack = made.tally.rounding(made.premises.precision)
        for form, bound in made.bounds().items():
            assert isinstance(bound, str) or trace.risk.sum() <= bound + slack, form
        assert ("no answer at all" if cost < 0.66 else "uniform guessing") in str(made)
        edited = trace.prediction.copy()
        edited[np.flatnonzero(edited == -1)[0]] = 0
        assert not dl.certify(
            dataclasses.replace(trace, prediction=edited), dl.comparators.Fixed(U), X, y
        ).valid


def test_random_runs_are_held_to_their_bounds_and_edits_are_seen(monkeypatch):
    import random_runs
    from test_certificates_random import held

    def pairs(classes):
        loss = dl.losses.Logistic(dl.tasks.Multiclass(classes))
        twice = dl.losses.Scaled(loss, 2.0)
        made = [dl.decoders.Abstain(one, 0.3) for one in (loss, twice)]
        return [(one.loss, one) for one in (*made, dl.decoders.Answer(twice, 0.3))]

    monkeypatch.setattr(random_runs, "pairs", pairs)
    assert sum(map(held, examples(8, 200))) > 15


def test_members_that_always_answer_sit_beside_those_that_do_not():
    X, y = stream(200)
    task = dl.tasks.Abstaining(dl.tasks.Multiclass(3), 0.4)
    made = dl.auto(task, effort="fast")
    trace = made.run(X, y)
    answers = [(member.prediction >= 0).all() for member in trace.members]
    assert answers == [False] * 7 + [True] * 7
    assert all(member.task == task for member in made.members)
    twin = made.members[7].decoder
    dl.checks.check_decoder(twin, trials=5)
    assert twin.surrogate_gap == 0.5 and "always answers" in made.members[7].facts.in_short
    rows = np.random.default_rng(0).normal(size=(50, 3))
    for member in made.members:
        single = [
            member.task.predictions.numbers(member.decoder.draw(theta, np.empty(0)))
            for theta in rows
        ]
        assert np.array_equal(member._top_rows(rows), single)


def test_describe_says_which_theorem_holds():
    words = learner().describe()
    assert "Abstain, deterministic, surrogate gap alpha = 0.4623" in words
    assert "F_T + 254" in words and "no answer counted as 0.25" in words
