"""Committees are held to what they promise: draws to the average, votes to a multiple of it."""

import dataclasses
import itertools
import json

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from howmany import chosen
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.app.cli.certify import certify as command
from driftline.certificates import best_sequences
from driftline.committee import CommitteeTrace
from driftline.committee.combine import RULES, Made
from tests.strategies import committee_by

T = dl.tasks


def subsets(size):
    return [np.array(row) for row in itertools.product((0, 1), repeat=size)]


def orders(size):
    return [np.array(row) for row in itertools.permutations(range(size))]


def pick(v):
    return (np.arange(4) == np.argmax(v)).astype(int) * 3


#: Every task that says its triangle, and all its labels.
METRIC = {
    "classes": (T.Multiclass(4), list(range(4)), 1.0),
    "signs": (T.Binary(), [-1, 1], 1.0),
    "tags": (T.Multilabel(3), subsets(3), 1.0),
    "levels": (T.Ordinal(5), list(range(5)), 1.0),
    "sets": (T.FixedSize(4, 2), [s for s in subsets(4) if s.sum() == 2], 1.0),
    "matchings": (T.Matching(3), orders(3), 1.0),
    "words": (
        T.Sequence(2),
        [np.array(row) for row in itertools.product((0, 1), repeat=3)],
        1.0,
    ),
    "positions": (
        T.Sequence(3, transitions=False),
        [np.array(row) for row in itertools.product(range(3), repeat=2)],
        1.0,
    ),
    "rankings": (T.LabelRanking(4), orders(4), 2.0),
    "oracle": (
        T.Oracle(4, pick, loss_factor=-1.0 / 9.0, squared_norm=9.0),
        list(3 * np.eye(4, dtype=int)),
        2.0,
    ),
    "f-score": (T.FScore(4), subsets(4), 1.5),
}
every_metric = pytest.mark.parametrize("name", METRIC)


@every_metric
def test_the_triangle_holds_for_all_labels(name):
    task, labels, triangle = METRIC[name]
    assert task.triangle == triangle
    losses = np.array([[task.loss(p, y) for y in labels] for p in labels])
    np.testing.assert_allclose(losses, losses.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(losses), 0.0, atol=1e-12)
    through = (losses[:, :, None] + losses[None, :, :]).min(axis=1)
    assert (losses <= triangle * through + 1e-12).all()


def test_larger_triangles_are_needed_where_they_are_claimed():
    for name, least in (("rankings", 1.5), ("f-score", 1.3)):
        task, labels, _ = METRIC[name]
        losses = np.array([[task.loss(p, y) for y in labels] for p in labels])
        through = (losses[:, :, None] + losses[None, :, :]).min(axis=1)
        assert (losses > least * through + 1e-9).any()


def test_tasks_with_other_losses_claim_nothing():
    for task in (T.NDCG(2), T.PrecisionAtK(2), T.CostSensitive([[0, 1], [1, 0]]), T.Task()):
        assert RULES["vote"].factor(task) == np.inf


def test_a_vote_on_costs_may_pay_more_than_twice_the_average():
    task = T.CostSensitive([[0, 1, 1], [10, 0, 1], [1, 1, 0]])
    weights, made = np.array([[0.4, 0.3, 0.3]]), [np.array([[p]]) for p in range(3)]
    chosen = RULES["vote"].predictions(task, Made(made, weights))[0, 0]
    assert task.loss(chosen, 1) > 2 * sum(
        w * task.loss(p, 1) for w, p in zip(weights[0], range(3), strict=True)
    )


@every_metric
@given(seed=st.integers(0, 10**6))
def test_a_vote_pays_at_most_its_factor_times_the_average(name, seed):
    task, labels, _ = METRIC[name]
    generator = np.random.default_rng(seed)
    members = int(generator.integers(1, 6))
    weights = generator.dirichlet(np.full(members, 0.5))
    if seed % 2:  # ties
        weights = generator.integers(1, 3, members) / 1.0
        weights /= weights.sum()
    made = [labels[k] for k in generator.integers(0, len(labels), members)]
    rows = [np.atleast_2d(prediction) for prediction in made]
    chosen = task.prediction(RULES["vote"].predictions(task, Made(rows, weights[np.newaxis]))[0])

    def mean(prediction):
        return sum(w * task.loss(prediction, p) for w, p in zip(weights, made, strict=True))

    assert mean(chosen) <= min(mean(label) for label in labels) + 1e-9
    for label in labels:
        average = sum(w * task.loss(p, label) for w, p in zip(weights, made, strict=True))
        assert task.loss(chosen, label) <= RULES["vote"].factor(task) * average + 1e-9


def test_two_is_needed():
    """One of two equal members is always right, and the vote never is."""
    made, weights = [np.array([[0]]), np.array([[1]])], np.array([[0.5, 0.5]])
    task = T.Multiclass(2)
    assert task.loss(int(RULES["vote"].predictions(task, Made(made, weights))[0, 0]), 1) == 2 * 0.5


# -- the best sequences


@given(seed=st.integers(0, 10**6))
def test_best_sequences_are_the_best_of_all(seed):
    generator = np.random.default_rng(seed)
    rounds, members = int(generator.integers(1, 7)), int(generator.integers(1, 4))
    losses = generator.random((rounds, members))
    if seed % 2:
        losses = np.rint(losses)
    found = best_sequences(losses, rounds + 1)
    wanted = [naive.best_sequence(losses.tolist(), k) for k in range(rounds + 2)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert found[-1] == pytest.approx(losses.min(axis=1).sum())


# -- certificates


STREAMS = {
    "signs": dl.streams.LabelFlips(rounds=200, flips=1, seed=0),
    "classes": dl.streams.DigitTriples(rounds=200, flips=1, seed=0),
    "tags": dl.streams.Planted(T.Multilabel(3), rounds=100, flips=1, seed=0),
    "levels": dl.streams.Planted(T.Ordinal(3), rounds=40, flips=1, seed=0),
    "sets": dl.streams.Planted(T.FixedSize(4, 1), rounds=40, flips=1, seed=0),
    "words": dl.streams.PlantedSequences(rounds=30, flips=1, tags=3, longest=4, seed=0),
    "documents": dl.streams.PlantedRankings(T.NDCG(2), rounds=80, flips=1, seed=0),
    "choices": dl.streams.PlantedRankings(T.PrecisionAtK(2), rounds=80, flips=1, seed=0),
}


def random_members(stream):
    """Members that predict at random."""
    loss = dl.losses.Logistic(stream.task)
    made = (dl.domains.Ball(6.0), dl.domains.Ball(60.0))
    return [dl.OGD(loss, domain=ball, seed=j) for j, ball in enumerate(made)]


def play(name, combine="vote", rounds=None):
    stream = STREAMS[name]
    committee = committee_by(combine, stream.task)
    stop = len(stream) if rounds is None else rounds
    inputs, labels = stream.inputs[:stop], stream.labels[:stop]
    return committee.run(inputs, labels, audit=True), (inputs, labels)


def some_comparator(trace, norm=3.0, seed=0):
    weights = np.random.default_rng(seed).standard_normal(trace.members[0].first_weights.shape)
    return dl.comparators.Fixed(norm * weights / np.linalg.norm(weights))


@pytest.mark.parametrize("combine", ["vote", "draw"])
@pytest.mark.parametrize("name", STREAMS)
def test_every_promise_is_kept(name, combine):
    trace, stream = play(name, combine)
    made = dl.certify(trace, some_comparator(trace), *stream)
    assert made.valid, str(made)
    assert made.total == pytest.approx(trace.target_loss.sum())
    assert made.average == pytest.approx(trace.average.sum())
    totals = trace.member_risk.sum(axis=0)
    assert made.best_total == pytest.approx(totals.min()) == pytest.approx(made.sequences[0])
    assert made.regret == pytest.approx(made.average - totals.min())
    largest = {"sets": 0.5}.get(name, 1.0)
    bound = largest * trace.origin.state.shares.regret_bound(len(trace), 3)
    assert made.regret_bound(3) == pytest.approx(bound)
    for k, total in enumerate(made.sequences):
        assert made.average <= made.most(total, k) + 1e-9
        assert made.most(total, k) <= total + made.regret_bound(k)
        bound = trace.origin.state.shares.loss_bound(total / largest, len(trace), k)
        assert made.most(total, k) == pytest.approx(largest * bound)
    for form, value in made.average_bounds().items():
        assert isinstance(value, str) or made.average <= value + 1e-9, form
    exact = [member.exact for member in made.members]
    assert made.member_totals()["exact"] == min(exact)
    assert made.average_bounds()["exact"] == pytest.approx(made.most(min(exact)))
    least = made.most(made.best_total)
    if made.bounds()["best_member"] == made.factor * least < made.trivial:
        assert f"the weights add {least - made.best_total:.5g}" in str(made)
    if combine == "draw":
        assert made.factor == 1.0 and trace.risk.sum() == pytest.approx(made.average)
        assert made.bounds() == made.average_bounds()
        assert made.total <= made.average + made.deviation
    elif name in ("documents", "choices"):
        assert all(isinstance(value, str) for value in made.bounds().values())
        assert made.vacuous == {} and "no bound of the predictions" in str(made)
    else:
        assert made.factor == 2.0 and made.total <= 2 * made.sampled_average + 1e-9
        assert made.bounds()["exact"] == pytest.approx(2 * made.average_bounds()["exact"])
    json.dumps(made.to_dict())


@pytest.mark.parametrize("combine", ["vote", "draw"])
def test_members_that_predict_at_random_leave_something_to_chance(combine):
    stream = STREAMS["classes"]
    committee = dl.Committee(random_members(stream), combine)
    trace = committee.run(stream)
    made = dl.certify(trace, some_comparator(trace), stream)
    assert made.valid and made.deviation > 0.0
    assert made.sampled_average != pytest.approx(made.average)
    assert made.total <= made.factor * made.average + made.deviation
    assert "but with chance 0.05" in str(made)
    trace, stream = play("classes")
    certain = dl.certify(trace, None, *stream)
    assert certain.deviation == 0.0 and "chance" not in str(certain)


def test_members_are_certified_on_the_inputs_that_they_saw():
    trace, (inputs, labels) = play("classes")
    comparator = some_comparator(trace)
    made = dl.certify(trace, comparator, inputs, labels)
    scaled = dl.auto(STREAMS["classes"].task, effort="fast").scaling.transform(inputs)
    np.testing.assert_array_equal(trace.scaled(inputs), scaled)
    alone = dl.certify(trace.members[3], comparator, scaled, labels)
    for name in ("expected", "exact", "diameter", "worst_case", "comparator_loss"):
        assert getattr(made.members[3], name) == pytest.approx(getattr(alone, name))
    assert made.scaled and "act on the scaled inputs" in str(made)
    free = dl.auto(STREAMS["classes"].task, scaling=False, effort="fast").run(inputs, labels)
    assert free.scaled(inputs) is inputs
    assert not dl.certify(free, None, inputs, labels).scaled


def test_comparators_are_shrunk_or_given_one_by_one():
    trace, stream = play("classes")
    made = dl.certify(trace, some_comparator(trace, norm=50.0), *stream)
    radii = [m.config["domain"]["diameter"] / 2 for m in trace.members]
    assert made.shrunk == tuple(radius < 50.0 for radius in radii) and made.valid
    assert "shrunk into its ball" in str(made)
    each = [some_comparator(trace, 0.9 * radius) for radius in radii]
    made = dl.certify(trace, each, *stream)
    assert made.valid and not any(made.shrunk)
    alone = dl.certify(trace.members[1], each[1], trace.scaled(stream[0]), stream[1])
    assert made.members[1].exact == pytest.approx(alone.exact)
    zeros = dl.certify(trace, None, *stream)
    assert all(member.path_length == 0.0 for member in zeros.members) and zeros.valid


# -- runs in pieces


@pytest.mark.parametrize("combine", ["vote", "draw"])
def test_a_run_that_goes_on_has_no_regret_bound(combine):
    stream = STREAMS["classes"]
    committee = committee_by(combine, stream.task)
    cut = [(0, 80), (80, 200)]
    parts = [(stream.inputs[a:b], stream.labels[a:b]) for a, b in cut]
    traces = [committee.run(*part, audit=True) for part in parts]
    first, later = (dl.certify(t, None, *p) for t, p in zip(traces, parts, strict=True))
    assert first.valid and later.valid
    assert (later.start, later.stop) == (80, 200) and later.switches == 0
    with pytest.raises(dl.NoGuaranteeError, match="had seen 80 rounds before"):
        later.regret_bound()
    with pytest.raises(dl.NoGuaranteeError, match="had seen 80 rounds before"):
        later.most(1.0)
    assert all(isinstance(bound, str) for bound in later.bounds().values())
    assert later.vacuous == {} and "had seen 80 rounds before" in str(later)
    assert later.to_dict()["regret_bound"] is None
    whole = committee_by(combine, stream.task)
    everything = dl.certify(whole.run(stream), None, stream)
    for name in ("total", "average", "sampled_average"):
        both = getattr(first, name) + getattr(later, name)
        assert getattr(everything, name) == pytest.approx(both)


# -- what the audit finds


def found(trace, stream):
    made = dl.certify(trace, None, *stream)
    assert not made.valid
    assert f"audit: {made.findings[0]}" in str(made)
    return made, "\n".join(made.findings)


def test_a_trace_that_was_tampered_with_is_found_out():
    trace, stream = play("classes")
    honest = dl.certify(trace, None, *stream)

    def changed(column, rows, value):
        made = np.array(getattr(trace, column))
        made[rows] = value
        return dataclasses.replace(trace, **{column: made})

    wrong = int(np.flatnonzero(trace.target_loss)[0])
    made, words = found(changed("target_loss", wrong, 0.0), stream)
    assert f"target loss is 1 when computed anew, but 0 was recorded, in round {wrong}" in words
    assert made.total == honest.total
    _, words = found(changed("risk", wrong, 0.0), stream)
    assert "the risk is 1 when computed anew" in words
    made, words = found(changed("weights", 7, [1.0, 0, 0, 0, 0, 0, 0]), stream)
    assert "the weight of a member is" in words and made.average == honest.average
    _, words = found(changed("member_risk", (9, 2), 0.5), stream)
    assert "the risk of a member is" in words and "in round 9" in words
    _, words = found(changed("prediction", wrong, stream[1][wrong]), stream)
    assert f"1 predictions are not the vote, the first in round {wrong}" in words


def test_members_that_were_tampered_with_are_found_out():
    trace, stream = play("classes")
    labels = np.asarray(stream[1])

    def changed(**columns):
        member = dataclasses.replace(trace.members[2], **columns)
        members = (*trace.members[:2], member, *trace.members[3:])
        return dataclasses.replace(trace, members=members)

    _, words = found(changed(prediction=labels.copy()), stream)
    assert "member 2: " in words and "target losses are not those of the predictions" in words
    zeros = np.zeros(len(trace))
    _, words = found(changed(prediction=labels.copy(), target_loss=zeros), stream)
    assert "target losses" not in words
    assert "predictions are not what the decoder draws" in words
    _, words = found(changed(risk=zeros), stream)
    assert "member 2: the replayed risk differs" in words


def test_another_stream_scaling_or_start_is_found_out():
    trace, (inputs, labels) = play("classes")
    _, words = found(trace, (inputs + 1e-3 * np.arange(inputs.shape[1]) ** 2, labels))
    assert "the stream is not the one of the trace" in words
    state = trace.origin.state
    scaling = state.scaling.copy()
    scaling.transform(inputs[::-1])

    def started(**fields):
        origin = trace.origin._replace(state=state.replaced(**fields))
        return dataclasses.replace(trace, origin=origin)

    other = started(scaling=scaling)
    assert "member 0: the replayed loss differs" in found(other, (inputs, labels))[1]
    shares = state.shares.copy()
    shares.update(np.random.default_rng(0).random((5, len(trace.members))))
    other = started(shares=shares)
    made, words = found(other, (inputs, labels))
    assert "the weight of a member is" in words and made.no_regret_bound


def test_a_draw_must_be_some_members():
    trace, stream = play("classes", "draw")
    agree = np.ptp(np.stack([m.prediction for m in trace.members]), axis=0) == 0
    t = int(np.flatnonzero(agree)[0])
    other = trace.prediction.copy()
    other[t] = (other[t] + 1) % 3
    _, words = found(dataclasses.replace(trace, prediction=other), stream)
    words_drawn = f"1 predictions are not those of the members drawn, the first in round {t}"
    assert words_drawn in words
    origin = trace.origin._replace(state=trace.origin.state.replaced(key=None))
    with pytest.raises(dl.InputError, match="a key is an integer"):
        dl.certify(dataclasses.replace(trace, origin=origin), None, *stream)


def test_broken_promises_are_named():
    trace, stream = play("classes")
    made = dl.certify(trace, None, *stream)
    assert made.broken == []
    worse = dataclasses.replace(made, total=3 * made.average)
    assert worse.broken == ["vote"] and not worse.valid
    assert "the bound 'vote' is exceeded" in str(worse)
    worse = dataclasses.replace(made, average=made.best_total + made.regret_bound() + 1.0)
    assert "best_member" in worse.broken


def test_losses_above_the_largest_void_the_regret_bound():
    class Wrong(T.Multilabel):
        largest_loss = 0.1

    trace, stream = play("tags")
    task = Wrong(3).config()

    def renamed(config):
        if isinstance(config, dict):
            if config.get("type") == "tasks.Multilabel":
                return task
            return {k: renamed(v) for k, v in config.items()}
        return config

    members = tuple(dataclasses.replace(m, config=renamed(m.config)) for m in trace.members)
    made = dl.certify(dataclasses.replace(trace, members=members), None, *stream)
    assert "is above the task's largest, 0.1" in made.no_regret_bound


def test_the_best_sequence_is_used_where_it_pays():
    stream = dl.streams.LabelFlips(rounds=4000, flips=1, seed=0)
    trace = committee_by("vote", stream.task).run(stream)
    made = dl.certify(trace, None, stream)
    sequences = (4000.0, *([0.0] * 3))
    turned = dataclasses.replace(made, sequences=sequences)
    assert turned.switches == 1 and "with 1 changes" in str(turned)
    assert turned.average_bounds()["best_sequence"] == turned.most(0.0, 1)
    assert turned.most(0.0, 1) < 0.2 * turned.regret_bound(1)


# -- files, pictures, commands


@pytest.mark.parametrize("name", ["classes", "words", "documents"])
def test_a_saved_trace_makes_the_same_certificate(name, tmp_path):
    trace, stream = play(name)
    again = CommitteeTrace.load(trace.save(tmp_path / "committee"))
    assert str(dl.certify(again, None, *stream)) == str(dl.certify(trace, None, *stream))
    bare = dataclasses.replace(trace, origin=None)
    bare = CommitteeTrace.load(bare.save(tmp_path / "bare.npz"))
    assert bare.origin is None
    with pytest.raises(dl.InputError, match="before its first round"):
        dl.certify(bare, None, *stream)
    with pytest.raises(dl.InputError, match="expected a 'CommitteeTrace'"):
        CommitteeTrace.load(trace.members[0].save(tmp_path / "member"))
    with pytest.raises(FileNotFoundError):
        CommitteeTrace.load(tmp_path / "nothing.npz")


def test_pieces_are_saved_with_what_they_started_from(tmp_path):
    stream = STREAMS["classes"]
    committee = dl.auto(stream.task, effort="fast")
    committee.run(stream.inputs[:80], stream.labels[:80])
    rest = stream.inputs[80:], stream.labels[80:]
    trace = committee.run(*rest, audit=True)
    again = CommitteeTrace.load(trace.save(tmp_path / "later"))
    assert dl.certify(again, None, *rest).valid
    np.testing.assert_array_equal(again.scaled(rest[0]), trace.scaled(rest[0]))


def test_plots_have_two_panels(tmp_path):
    cases = (("classes", "vote"), ("documents", "vote"), ("signs", "draw"))
    for name, combine in chosen(cases[1:], cases):
        trace, stream = play(name, combine)
        made = dl.certify(trace, None, *stream)
        figure = made.plot(tmp_path / "plot.png")
        totals, weights = figure.axes
        words = "\n".join(totals.get_legend_handles_labels()[1])
        assert f"committee, {made.total:.4g}" in words and "best member" in words
        assert ("bound by the best member" in words) == np.isfinite(made.factor)
        if np.isfinite(made.factor):
            assert f"{made.bounds()['best_member']:.4g}" in words
        assert len(weights.lines) == len(trace.members)
        assert totals.get_xlim() == (0.0, float(len(trace)))
    short = dl.certify(trace, None, *stream, keep=False)
    assert short.rounds_seen is None and str(short) == str(made)
    with pytest.raises(dl.InputError, match="kept no rounds"):
        short.plot()


def test_the_command_takes_committees(tmp_path):
    trace, (inputs, labels) = play("classes")
    trace.save(tmp_path / "trace")
    np.savez(tmp_path / "data.npz", inputs=inputs, labels=labels)
    comparator = some_comparator(trace)
    np.savez(tmp_path / "weights.npz", weights=comparator.weights[0])
    arguments = [str(tmp_path / "trace.npz"), "--data", str(tmp_path / "data.npz")]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip("\n") == str(dl.certify(trace, None, inputs, labels))
    more = ["--comparator", str(tmp_path / "weights.npz"), "--json"]
    more += ["--plot", str(tmp_path / "plot.png")]
    done = CliRunner().invoke(command, arguments + more)
    assert done.exit_code == 0 and (tmp_path / "plot.png").exists()
    numbers = json.loads(done.stdout)
    assert (
        numbers["bounds"]["exact"]
        == dl.certify(trace, comparator, inputs, labels).bounds()["exact"]
    )
    assert len(numbers["members"]) == 7
    trace.members[0].save(tmp_path / "member")
    done = CliRunner().invoke(command, [str(tmp_path / "member.npz"), *arguments[1:]])
    assert done.exit_code == 1 and "expected --comparator" in done.output
    bad = dataclasses.replace(trace, risk=trace.risk + 1.0)
    bad.save(tmp_path / "trace")
    assert CliRunner().invoke(command, arguments).exit_code == 1


def test_sparse_rows_are_certified_too():
    from scipy.sparse import csr_array

    stream = STREAMS["classes"]
    rows = csr_array(stream.inputs)
    trace = dl.auto(stream.task, scaling=False, effort="fast").run(rows, stream.labels)
    dense = dl.auto(stream.task, scaling=False, effort="fast").run(stream)
    made, wanted = dl.certify(trace, None, rows, stream.labels), dl.certify(dense, None, stream)
    assert made.valid and made.average == pytest.approx(wanted.average)


def test_a_committee_says_what_its_vote_may_cost():
    assert "at most 2 times the weighted" in dl.auto(T.Multilabel(3), effort="fast").describe()
    assert "not bounded by the weighted" in dl.auto(T.NDCG(2), effort="fast").describe()


# -- bad input


def test_bad_input_is_named():
    trace, (inputs, labels) = play("classes")
    fixed = dl.comparators.Fixed
    shape = trace.members[0].first_weights.shape
    once = dl.comparators.Sequence(iter(np.zeros((len(trace), *shape))))
    for comparator, words in (
        ([None] * 5, "there are 7 members, but 5 comparators"),
        (fixed(np.zeros((2, 2))), r"member 0: the comparator's weights have shape \(2, 2\)"),
        ([None, None, fixed(np.zeros((2, 2))), *[None] * 4], "member 2: "),
        (once, "member 1: the comparator is an iterator"),
    ):
        with pytest.raises(dl.InputError, match=words):
            dl.certify(trace, comparator, inputs, labels)
    with pytest.raises(dl.InputError, match="200 rounds, but there are 150 inputs"):
        dl.certify(trace, None, inputs[:150], labels[:150])
    with pytest.raises(dl.InputError, match="inputs and labels"):
        dl.certify(trace)
    with pytest.raises(dl.InputError, match=r"shapes \(200, 6\) and \(200, 7\)"):
        dl.certify(dataclasses.replace(trace, weights=trace.weights[:, 1:]), None, inputs, labels)
    committee = dl.auto(STREAMS["classes"].task, effort="fast")
    with pytest.raises(dl.InputError, match="expected a trace.*but got Committee"):
        dl.certify(committee)
    short = committee.run(inputs[:2], labels[:2], audit=False)
    with pytest.raises(dl.InputError, match="audit=True"):
        dl.certify(short, None, inputs[:2], labels[:2])
