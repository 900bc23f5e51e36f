"""Columns of predictions: a member reads the first value of rows, and no other member sees it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import driftline as dl
from driftline.features import Block
from driftline.inputs import rows_of
from driftline.inputs.taking import view

T = dl.tasks
TASKS = [T.Multiclass(2), T.Multiclass(3), T.Binary(), T.Abstaining(T.Multiclass(3), 0.3)]


def table(task, rounds=300, seed=0):
    """Rows, labels, and codes of a model that turns bad half-way, and is silent at times."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rounds, 4)) + 2.0
    labels = len(list(task.answers.labels.all))
    codes = np.clip((X[:, 0] * labels / 4.0).astype(int), 0, labels - 1)
    said = np.where(np.arange(rounds) < rounds // 2, codes, (codes + 1) % labels) + 1.0
    said[random.random(rounds) < 0.1] = 0.0
    return X, 2 * codes - 1 if task.kind == "sign" else codes, said


def both(task, **more):
    return dl.Guarded(dl.members.Column(task), task, effort="fast", **more)


def equal(one, other):
    a, b = one.to_saved()[1], other.to_saved()[1]
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_other_members_and_the_scaling_do_not_see_the_column(task, effort):
    X, y, said = table(task, 200)
    learner = dl.Guarded(dl.members.Column(task), task, effort=effort)
    trace = learner.run(np.column_stack([said, X]), y)
    alone = dl.auto(task, effort=effort, budget=5.0)
    theirs = alone.run(X, y)
    assert trace.members[0].config["kind"] == "Column"
    for own, other in zip(trace.members[1:], theirs.members, strict=True):
        np.testing.assert_array_equal(own.loss, other.loss)
        np.testing.assert_array_equal(own.prediction, other.prediction)
    assert learner.features == X.shape[1] + 1 and learner.standardiser.features == X.shape[1]
    labels = list(task.answers.labels.all)
    made = [
        learner.task.predictions.value(task.predictions.numbers(labels[int(code) - 1]))
        for code in said[said > 0]
    ]
    np.testing.assert_array_equal(trace.members[0].prediction[said > 0], made)
    followed = (trace.acted == 0.0) & (said > 0)
    np.testing.assert_array_equal(trace.prediction[followed], trace.members[0].prediction[followed])
    assert (trace.acted[said == 0] > 0.0).all()


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("delay", [None, 7])
def test_columns_are_certified_saved_copied_and_stepped_alike(task, delay, tmp_path):
    X, y, said = table(task)
    rows = np.column_stack([said, X])
    learner = both(task)
    trace = learner.run(rows, y, delay=delay)
    made = dl.certify(trace, None, rows, y)
    assert (
        made.valid and not made.findings and trace.risk[trace.arrived].sum() <= learner.guard.bound
    )
    changed = rows.copy()
    changed[150, 0] = 1.0 + changed[150, 0] % 2
    assert dl.certify(trace, None, changed, y).findings
    again = dl.load(learner.save(tmp_path / "model"))
    assert equal(again, learner) and equal(learner.copy(), learner)
    assert again.predict_rows(rows[:50]) == learner.predict_rows(rows[:50])
    saved = dl.CommitteeTrace.load(trace.save(tmp_path / "trace"))
    assert dl.certify(saved, None, rows, y).valid
    if delay is None:
        steps = both(task)
        paid = [steps.step(row, label).target_loss for row, label in zip(rows, y, strict=True)]
        np.testing.assert_array_equal(paid, trace.target_loss)
        tickets = both(task)
        for row, label in zip(rows, y, strict=True):
            tickets.tell(dl.Ticket.from_bytes(tickets.ask(row).to_bytes()), label)
        for other in (steps, tickets):
            assert other.predict_rows(rows[:50]) == learner.predict_rows(rows[:50])
    else:
        assert learner._waits == delay
        learner.forget(before=10**9)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_columns_keep_the_page_of_learners(task):
    X, y, said = table(task, 60)
    column = dl.members.Column(task)
    dl.checks.check_learner(column)
    dl.checks.check_learner(column, np.column_stack([said, X]), y)


@pytest.mark.parametrize("task", TASKS[:3], ids=repr)
def test_guarded_columns_keep_the_page_of_learners(task):
    X, y, said = table(task, 60)
    dl.checks.check_learner(both(task), np.column_stack([said, X]), y)


def test_sparse_rows_have_a_first_value_too():
    task = T.Multiclass(2)
    X, y, said = table(task)
    X[X < 2.0] = 0.0
    rows = csr_array(np.column_stack([said, X]))
    learner = both(task)
    trace = learner.run(rows, y)
    alone = dl.auto(task, effort="fast", budget=5.0).run(csr_array(X), y)
    np.testing.assert_array_equal(trace.members[1].loss, alone.members[0].loss)
    assert dl.certify(trace, None, rows, y).valid
    late = both(task).run(rows, y, delay=5)
    assert dl.certify(late, None, rows, y).valid


def test_new_classes_and_features_come_behind_the_column():
    task = T.Multiclass(2)
    X, y, said = table(task)
    learner = both(task)
    learner.run(np.column_stack([said, X]), y)
    ticket = learner.ask(np.r_[1.0, X[0]])
    grown = learner.grown(classes=4, features=7)
    assert grown.features == 7 and grown.standardiser.features == 6
    row = np.r_[4.0, X[0], 0.0, 0.0]
    assert grown.members[0].predict(row) == 3
    assert grown.members[0].predict(np.r_[5.0, row[1:]]) == 0  # of a class that nobody knows
    assert learner.grown(classes=4).tell(ticket, 3) is None
    grown.step(row, 3)
    new = both(task).grown(features=9)
    new.run(np.column_stack([said, X]), y)


def test_anything_but_a_label_is_no_prediction():
    task = T.Multiclass(3)
    column = dl.members.Column(task)
    for value in (0.0, 1.5, 4.0, -1.0, 1e9):
        scores = column.scores([value, 1.0])
        assert (scores == scores[0]).all()
    assert column.predict([3.0, 1.0]) == 2
    assert np.exp(column.scores([3.0, 1.0])).sum() == pytest.approx(1.0)
    learner = both(task)
    X, y, said = table(task)
    learner.run(np.column_stack([said, X]), y)
    before = learner.to_saved()[1]
    for wrong in (np.nan, np.inf):
        row = np.r_[wrong, X[0]]
        for call in (lambda: learner.step(row, 0), lambda: learner.predict(row)):  # noqa: B023
            with pytest.raises(dl.InputError, match="feature 0"):
                call()
        with pytest.raises(dl.InputError, match="feature 0"):
            learner.run(np.array([np.r_[1.0, X[0]], row]), [0, 0])
    with pytest.raises(dl.InputError):
        learner.run(said[:, np.newaxis], y)
    after = learner.to_saved()[1]
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(dl.InputError, match="task of classes"):
        dl.members.Column(T.Ordinal(3))
    with pytest.raises(dl.InputError, match="the same task"):
        dl.Guarded(dl.members.Column(T.Multiclass(2)), T.Multiclass(3))


def test_a_column_is_one_more_member_of_auto():
    task = T.Multiclass(2)
    X, y, said = table(task)
    rows = np.column_stack([said, X])
    for rule in ("mix", "vote"):
        learner = dl.auto(task, effort="fast", combine=rule, members=[dl.members.Column(task)])
        trace = learner.run(rows, y)
        assert dl.certify(trace, None, rows, y).valid
        assert learner.score_rows(rows[:3]).shape[0] == len(learner.members)
        one = dl.auto(task, effort="fast", combine=rule)
        assert learner._state_bytes(5) < one._state_bytes(5)
    linear = dl.OGD(dl.losses.Logistic(task), features=Block(1))
    plain = dl.Committee([dl.members.Column(task), linear])
    assert dl.certify(plain.run(rows, y), None, rows, y).valid
    assert plain.features == 5


def test_explanations_leave_the_column_at_none_said():
    task = T.Multiclass(2)
    X, y, said = table(task)
    learner = both(task)
    learner.run(np.column_stack([said, X]), y)
    made = dl.explain(learner)
    assert len(made.names) == 5 and made.importance[0] == 0.0
    assert dl.explain(learner, np.column_stack([said, X])[:100]).importance[0] > 0.0


def test_first_values_are_cut_from_rows_of_every_kind():
    X = np.random.default_rng(0).integers(0, 3, (9, 4)).astype(float)
    index = np.array([3, 1, 1, 8])
    for rows, whole in (
        (rows_of(X), X),
        (rows_of(csr_array(X)), X),
        (view(rows_of(X), index), X[index]),
        (rows_of(X[2:3]), X[2:3]),
    ):
        start, stop = (0, 1) if len(whole) == 1 else (1, 3)
        said = dl.members.Column.said(rows, start, stop)
        np.testing.assert_array_equal(said, whole[start:stop, 0])
        rest = Block(1).mapper().look_at(rows, start, stop)
        assert rest.features == 3
        for t in range(stop - start):
            np.testing.assert_array_equal(rest.row(t), whole[start + t, 1:])
