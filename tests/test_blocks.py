"""Blocks of columns: who reads numbers and who categories, and what does not depend on which."""

import numpy as np
import pytest
from howmany import number
from scipy import sparse

import driftline as dl
from driftline.features import Block, Standardise
from driftline.state import archive

T = dl.tasks
ROUNDS = number(150, 300)

#: Columns of codes among six, and of how many codes each is learned by itself.
CATEGORIES = {1: 3, 4: 5}


def table(rounds=ROUNDS, seed=0, later=0):
    """Rows with two columns of codes, of which ``later`` more come in the second half."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((rounds, 6))
    for column, count in CATEGORIES.items():
        most = count + later * (np.arange(rounds) >= rounds // 2)
        rows[:, column] = np.floor(random.random(rounds) * (most + 1)) - 1.0  # -1 is missing
    labels = (rows[:, 0] * rows[:, 2] + (rows[:, 1] == 2.0) > 0.3).astype(int)
    return rows, labels


def one_hot(rows):
    """Rows as linear members are to see them, made by hand."""
    parts = []
    for column, count in CATEGORIES.items():
        codes = rows[:, [column]]
        parts += [codes == np.arange(count), codes >= count]
    numbers = [j for j in range(rows.shape[1]) if j not in CATEGORIES]
    return np.column_stack([*parts, rows[:, numbers]]).astype(float)


def make(effort="balanced", task=None, **more):
    task = T.Multiclass(2) if task is None else task
    return dl.auto(task, effort=effort, categories=CATEGORIES, **more)


def saved(learner):
    return archive.packed(*learner.to_saved())


def losses(trace):
    return [(own.loss, own.prediction) for own in trace.members]


# -- the map


@pytest.mark.parametrize("form", ["one-hot", "codes", "none"])
def test_a_block_selects_columns(form):
    rows, _ = table(20, later=2)
    part = Block(1, 5, [(1, 3), (4, 5)], form)
    hot = one_hot(rows)[:, :10]
    wanted = {
        "one-hot": np.column_stack([hot, rows[:, 2:4]]),
        "codes": rows[:, 1:5],
        "none": rows[:, 2:4],
    }[form]
    made = part.transform(rows)
    np.testing.assert_array_equal(made, wanted)
    assert part.width(6) == made.shape[1] and part.reads(6) == (2 if form == "none" else 4)
    back = part.undone(made, 6)
    np.testing.assert_array_equal(back[:, 2:4], rows[:, 2:4])
    if form == "one-hot":
        np.testing.assert_array_equal(back[:, 1], np.clip(rows[:, 1], -1.0, 3.0))
    assert dl.parts.from_config(part.config()) == part


@pytest.mark.parametrize("part", [Block(1), Block(stop=2), Block(2, 4)], ids=repr)
def test_sparse_rows_have_blocks_of_columns_too(part):
    rows, _ = table(30)
    rows[np.random.default_rng(0).random(rows.shape) < 0.5] = 0.0
    dense, thin = part.transform(rows), part.transform(sparse.csr_array(rows))
    np.testing.assert_array_equal(thin.toarray(), dense)
    with pytest.raises(dl.InputError, match="dense rows"):
        Block(categories=[(1, 3)]).transform(sparse.csr_array(rows))
    rows[7, 5] = np.nan
    for form in (rows, sparse.csr_array(rows)):
        with pytest.raises(dl.InputError, match="row 7"):
            part.transform(form)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Block(-1), "start is a whole number"),
        (lambda: Block(3, 3), "stop is a whole number from 4"),
        (lambda: Block(form="all"), "form must be one of one-hot, codes, none, not 'all'"),
        (lambda: Block(2, categories=[(1, 3)]), "are outside of 2"),
        (lambda: Block(categories=[(1, 3), (1, 4)]), "categories twice"),
        (lambda: Block(categories=[(1, 0)]), "number of categories is a whole number from 1"),
        (lambda: Block(categories=3), "columns, and how many codes each has"),
        (lambda: dl.auto(T.Multiclass(2), categories={1.5: 3}), "the column of categories"),
        (lambda: Block(categories=[(7, 3)]).transform(np.ones((2, 6))), "rows of more columns"),
    ],
)
def test_what_is_no_block_is_refused(call, words):
    with pytest.raises(dl.InputError, match=words):
        call()


# -- laws of committees


@pytest.mark.parametrize("task", [T.Multiclass(2), T.Binary(), T.Multilabel(2)], ids=repr)
def test_members_do_not_depend_on_blocks_that_they_do_not_read(task):
    rows, labels = table()
    if task.kind != "classes":
        labels = 2 * labels - 1 if task.kind == "sign" else np.column_stack([labels, 1 - labels])
    numbers = [j for j in range(6) if j not in CATEGORIES]
    other = rows.copy()
    other[:, list(CATEGORIES)] = table(seed=1)[0][:, list(CATEGORIES)]
    blind = [j for j, own in enumerate(dl.auto(task).members) if own.facts.form == "none"]
    one, two = make(task=task).run(rows, labels), make(task=task).run(other, labels)
    plain = dl.auto(task).run(rows[:, numbers], labels)
    assert len(one.members) == len(plain.members) and blind
    for j, pair in enumerate(zip(losses(one), losses(two), losses(plain), strict=True)):
        same = [np.array_equal(a, b) for own in pair[1:] for a, b in zip(pair[0], own, strict=True)]
        assert all(same) if j in blind else not all(same)


def test_linear_members_see_categories_one_by_one():
    rows, labels = table(later=2)
    one = make("fast").run(rows, labels)
    two = dl.auto(T.Multiclass(2), effort="fast").run(one_hot(rows), labels)
    for own, wanted in zip(losses(one), losses(two), strict=True):
        np.testing.assert_array_equal(own[0], wanted[0])
    np.testing.assert_array_equal(one.prediction, two.prediction)


def test_documents_of_a_query_have_categories_too():
    rows, _ = table()
    random = np.random.default_rng(0)
    ends = np.arange(5, len(rows), 5)
    grades = np.split((rows[:, 1] == 2.0).astype(int) + random.integers(0, 2, len(rows)), ends)
    task = T.NDCG(2)
    one = dl.auto(task, categories=CATEGORIES).run(np.split(rows, ends), grades)
    two = dl.auto(task).run(np.split(one_hot(rows), ends), grades)
    np.testing.assert_array_equal(one.risk, two.risk)
    assert dl.certify(one, None, np.split(rows, ends), grades).valid


def test_bandits_see_categories_one_by_one():
    rows, labels = table(later=2)
    task, labels = T.Multiclass(3), labels + (rows[:, 1] == 1.0)
    one = make(task=task, feedback="bandit").run(rows, labels)
    two = dl.auto(task, feedback="bandit").run(one_hot(rows), labels)
    np.testing.assert_array_equal(one.risk, two.risk)
    tags = np.column_stack([labels > 0, labels > 1]).astype(int)
    one = make(task=T.Multilabel(2), feedback="clicks").run(rows, tags)
    two = dl.auto(T.Multilabel(2), feedback="clicks").run(one_hot(rows), tags)
    np.testing.assert_array_equal(one.prediction, two.prediction)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_steps_pieces_tickets_and_files_have_the_same_bits(effort, tmp_path):
    rows, labels = table(later=3)
    half = len(rows) // 2
    whole, steps, pieces, told = (make(effort) for _ in range(4))
    trace = whole.run(rows, labels)
    assert [steps.step(x, y).target_loss for x, y in zip(rows, labels, strict=True)] == list(
        trace.target_loss
    )
    pieces.run(rows[:half], labels[:half])
    pieces = dl.load(pieces.save(tmp_path / "half")).copy()
    rest = pieces.run(rows[half:], labels[half:], audit=True)
    for x, y in zip(rows, labels, strict=True):
        told.tell(dl.Ticket.from_bytes(told.ask(x).to_bytes()), y)
    assert saved(steps) == saved(pieces) == saved(whole)
    assert told.predict_rows(rows) == whole.predict_rows(rows)
    assert dl.certify(rest, None, rows[half:], labels[half:]).valid
    assert dl.certify(make(effort).run(rows, labels, delay=7), None, rows, labels).valid


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_a_committee_of_blocks_keeps_the_page_of_learners(effort):
    dl.checks.check_learner(make(effort), *table(60))


def test_columns_that_come_later_are_numbers():
    rows, labels = table()
    late = np.column_stack([rows, np.random.default_rng(0).standard_normal(len(rows))])
    one, always = make("fast"), make("fast")
    one.run(rows, labels)
    always.run(np.column_stack([rows, np.zeros(len(rows))]), labels)
    grown = one.grown(features=7)
    assert grown.features == 7 and always.features == 7
    assert grown.run(late, labels).target_loss.mean() < 0.5


def test_a_model_beside_the_rows_goes_with_categories():
    rows, labels = table()
    whole = np.column_stack([labels + 1.0, rows])
    moved = {column + 1: count for column, count in CATEGORIES.items()}
    task = T.Multiclass(2)
    learner = dl.Guarded(dl.members.Column(task), task, categories=moved, effort="fast")
    trace = learner.run(whole, labels)
    alone = make("fast", budget=5.0).run(rows, labels)
    for own, wanted in zip(losses(trace)[1:], losses(alone), strict=True):
        np.testing.assert_array_equal(own[0], wanted[0])
    assert dl.certify(trace, None, whole, labels).valid
    assert dl.explain(learner).importance[0] == 0.0


@pytest.mark.parametrize("start", ["zero", "shared"])
def test_keys_have_blocks(start):
    rows, labels = table(later=2)
    keys = np.random.default_rng(0).integers(0, 4, len(rows))
    fleet = dl.Keyed(make("fast"), start=start)
    made = fleet.run(keys, rows, labels)
    flat = dl.Keyed(dl.auto(T.Multiclass(2), effort="fast"), start=start)
    wanted = flat.run(keys, one_hot(rows), labels)
    np.testing.assert_array_equal(made.prediction, wanted.prediction)


def test_widths_count_columns():
    rows, labels = table()
    many = {column: 500 for column in CATEGORIES}
    learner = dl.auto(T.Multiclass(2), categories=many)
    count = len(learner.members)
    learner.run(rows, labels)
    assert len(learner.members) == count
    only = dl.auto(T.Multiclass(2), categories={0: 5, 1: 5})
    only.run(np.random.default_rng(0).integers(0, 5, (60, 2)).astype(float), labels[:60])
    forms = {"codes" if own._block is None else own._block.form for own in only.members}
    assert forms == {"one-hot", "codes"}  # there are no numbers


def test_rows_are_kept_and_explained_as_they_came():
    rows, labels = table()
    learner = make("fast")
    learner.run(rows[:40], labels[:40])
    np.testing.assert_array_equal(learner._kept_rows, rows[:40])
    assert learner._far.tolist() == [0] * 6
    learner.run(rows[40:], labels[40:])
    assert learner._kept_rows.shape == (64, 6)
    assert dl.explain(learner).importance.shape == (6,)
    assert isinstance(learner.members[0].map, dl.features.Chain)
    assert learner.members[0].map.maps == (Block(categories=[*CATEGORIES.items()]), Standardise())


def test_estimators_take_categories():
    rows, labels = table(number(300, 600))
    holes = rows.copy()
    holes[rows == -1.0] = np.nan
    given = {"learner": "fast", "categories": CATEGORIES}
    plain = dl.DriftClassifier(**given).fit(rows, labels)
    filled = dl.DriftClassifier(**given, missing="mean").fit(holes, labels)
    assert filled.predict(holes).tolist() == plain.predict(rows).tolist()
    step = make("fast")
    step.learn_rows(rows, labels)
    assert plain.learner_.predict_rows(rows) == step.predict_rows(rows)


# -- why


def mistakes(texts, rounds):
    """Return the share of mistakes beside columns of texts that say nothing, and the members."""
    from benchmarks.blocks import write

    X, y = write(None, texts, rounds)
    categories = {6 + j: count for j, count in enumerate(texts)}
    learner = dl.auto(T.Multiclass(2), categories=categories)
    return learner.run(X, y).target_loss.mean(), len(learner.members)


def test_columns_of_texts_that_say_nothing_cost_little():
    """As one-hot features in rows they left 7 of 34 members, and six times the mistakes."""
    rounds = number(3000, 10_000)
    plain, members = mistakes((), rounds)
    for texts in ((30,), (150, 150)):
        made, count = mistakes(texts, rounds)
        assert made < 1.2 * plain and count == members


def test_explanations_name_texts():
    rng = np.random.default_rng(3)
    town, noise = rng.integers(0, 3, 2000), rng.normal(size=2000)
    y = (rng.random(2000) < np.array([0.1, 0.9, 0.5])[town]).astype(int)
    learner = dl.auto(dl.tasks.Multiclass(2), effort="fast", categories={1: 3})
    learner.run(np.column_stack([noise, town]), y)
    towns = {1: ("Bonn", "Kiel", "Ulm")}
    told = dl.explain(learner, names=["noise", "town"], labels=["dry", "wet"], categories=towns)
    assert told.order[0] == "town" and told.curves["noise"].texts is None
    ends = {told.curves["town"].texts[0], told.curves["town"].texts[-1]}
    assert ends == {"Bonn", "Kiel"} and all(text in told.in_words("town") for text in ends)
    told.plot()
