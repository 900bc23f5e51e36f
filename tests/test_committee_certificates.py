"""Certificates of committees: all is played again, and guards keep what they promise."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

import driftline as dl
from driftline.app.cli.certify import certify as command
from driftline.committee import CommitteeTrace

T = dl.tasks

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


def play(name, budget=None):
    stream = STREAMS[name]
    committee = dl.auto(stream.task, effort="fast", combine="vote", budget=budget)
    return committee.run(stream.inputs, stream.labels, audit=True), (stream.inputs, stream.labels)


def some_comparator(trace, norm=3.0, seed=0):
    weights = np.random.default_rng(seed).standard_normal(trace.members[0].first_weights.shape)
    return dl.comparators.Fixed(norm * weights / np.linalg.norm(weights))


@pytest.mark.parametrize("budget", [None, 0.0, 1.5])
@pytest.mark.parametrize("name", STREAMS)
def test_every_promise_is_kept(name, budget):
    trace, stream = play(name, budget)
    made = dl.certify(trace, some_comparator(trace), *stream)
    assert made.valid, str(made)
    assert made.total == pytest.approx(trace.target_loss.sum())
    assert made.average == pytest.approx(trace.average.sum())
    totals = trace.member_risk.sum(axis=0)
    assert made.best_total == pytest.approx(totals.min())
    assert made.regret == pytest.approx(made.average - totals.min())
    assert made.expected == pytest.approx(trace.risk.sum())
    if budget is None:
        assert all(isinstance(value, str) for value in made.bounds().values())
        assert made.vacuous == {} and "no bound of the committee" in str(made)
        assert made.deviation == 0.0
    else:
        assert made.expected <= made.bounds()["book"] + 1e-9 <= made.bounds()["worst_case"] + 1e-6
        assert made.guarded.account <= budget * made.largest_loss + 1e-9
        assert (made.guarded.acted == len(trace)) == (budget == 0.0)
    json.dumps(made.to_dict())


def test_a_book_that_draws_leaves_something_to_chance():
    trace, stream = play("classes", 0.0)
    made = dl.certify(trace, some_comparator(trace), *stream)
    assert made.valid and made.deviation > 0.0
    assert made.total <= made.expected + made.deviation
    assert "but with chance 0.05" in str(made)
    trace, stream = play("classes")
    certain = dl.certify(trace, None, *stream)
    assert certain.deviation == 0.0 and "chance" not in str(certain)


def test_members_are_certified_on_the_inputs_that_they_saw():
    trace, (inputs, labels) = play("classes")
    comparator = some_comparator(trace)
    made = dl.certify(trace, comparator, inputs, labels)
    scaled = dl.features.Standardise().transform(inputs)
    np.testing.assert_array_equal(trace.seen_by(3, inputs), scaled)
    alone = dl.certify(trace.members[3], comparator, inputs, labels)
    for name in ("expected", "exact", "diameter", "worst_case", "comparator_loss"):
        assert getattr(made.members[3], name) == pytest.approx(getattr(alone, name))
    assert made.mapped and "act on mapped inputs" in str(made)
    free = dl.auto(STREAMS["classes"].task, scaling=False, effort="fast").run(inputs, labels)
    assert free.seen_by(0, inputs) is inputs
    assert not dl.certify(free, None, inputs, labels).mapped


def test_comparators_are_shrunk_or_given_one_by_one():
    trace, stream = play("classes")
    made = dl.certify(trace, some_comparator(trace, norm=50.0), *stream)
    radii = [m.config["domain"]["diameter"] / 2 for m in trace.members]
    assert made.shrunk == tuple(radius < 50.0 for radius in radii) and made.valid
    assert "shrunk into its ball" in str(made)
    each = [some_comparator(trace, 0.9 * radius) for radius in radii]
    made = dl.certify(trace, each, *stream)
    assert made.valid and not any(made.shrunk)
    alone = dl.certify(trace.members[1], each[1], *stream)
    assert made.members[1].exact == pytest.approx(alone.exact)
    zeros = dl.certify(trace, None, *stream)
    assert all(member.path_length == 0.0 for member in zeros.members) and zeros.valid


# -- runs in pieces


def test_a_run_that_goes_on_has_no_formula():
    stream = STREAMS["classes"]

    def make():
        return dl.auto(stream.task, effort="fast", combine="vote", budget=1.5)

    committee, cut = make(), [(0, 80), (80, 200)]
    parts = [(stream.inputs[a:b], stream.labels[a:b]) for a, b in cut]
    traces = [committee.run(*part, audit=True) for part in parts]
    first, later = (dl.certify(t, None, *p) for t, p in zip(traces, parts, strict=True))
    assert first.valid and later.valid
    assert (later.start, later.stop) == (80, 200)
    assert "had seen 80 rounds before" in later.bounds()["worst_case"]
    assert "had seen 80 rounds before" in str(later)
    everything = dl.certify(make().run(stream), None, stream)
    for name in ("total", "average", "expected"):
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
    assert f"target_loss is 1 when computed anew, but 0 was recorded, in round {wrong}" in words
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
    assert "member 2: " in words and "the target_loss is" in words
    zeros = np.zeros(len(trace))
    _, words = found(changed(prediction=labels.copy(), target_loss=zeros), stream)
    assert "target_loss" not in words
    assert "predictions are not what the decoder draws" in words
    _, words = found(changed(risk=zeros), stream)
    assert "member 2: the risk is" in words


def test_another_stream_scaling_or_start_is_found_out():
    trace, (inputs, labels) = play("classes")
    _, words = found(trace, (inputs + 1e-3 * np.arange(inputs.shape[1]) ** 2, labels))
    assert "the stream is not the one of the trace" in words
    state = trace.origin.state
    scaling = dl.features.Standardise().mapper()
    scaling.transform(inputs[::-1])
    origins = [own.origin.replaced(map=scaling.to_saved()) for own in trace.members]
    members = zip(trace.members, origins, strict=True)
    members = [dataclasses.replace(own, origin=origin) for own, origin in members]

    def started(**fields):
        origin = trace.origin._replace(state=state.replaced(**fields))
        return dataclasses.replace(trace, origin=origin)

    with pytest.raises(dl.InputError, match="two members have seen different rows"):
        found(
            dataclasses.replace(trace, members=(members[0], *trace.members[1:])), (inputs, labels)
        )
    other = dataclasses.replace(trace, members=tuple(members))
    assert "member 0: the loss is" in found(other, (inputs, labels))[1]
    shares = state.shares.copy()
    shares.update(np.random.default_rng(0).random((5, len(trace.members))))
    other = started(shares=shares)
    assert "the weight of a member is" in found(other, (inputs, labels))[1]


def test_broken_promises_are_named():
    trace, stream = play("classes", 1.5)
    made = dl.certify(trace, None, *stream)
    assert made.broken == []
    worse = made.guarded._replace(expected=made.guarded.bound + 1.0)
    worse = dataclasses.replace(made, guarded=worse)
    assert worse.broken[0] == "book" and not worse.valid
    assert "the bound 'book' is exceeded" in str(worse)


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
    np.testing.assert_array_equal(again.seen_by(0, rest[0]), trace.seen_by(0, rest[0]))


def test_plots_have_two_panels(tmp_path):
    for name, budget in (("classes", 1.5), ("documents", None)):
        trace, stream = play(name, budget)
        made = dl.certify(trace, None, *stream)
        figure = made.plot(tmp_path / "plot.png")
        totals, weights = figure.axes
        words = "\n".join(totals.get_legend_handles_labels()[1])
        assert f"committee, {made.total:.4g}" in words and "best member" in words
        assert ("book and budget" in words) == (budget is not None)
        assert len(weights.lines) == len(trace.members)
        assert totals.get_xlim() == (0.0, float(len(trace)))
    short = dl.certify(trace, None, *stream, keep=False)
    assert short.rounds_seen is None and str(short) == str(made)
    with pytest.raises(dl.InputError, match="kept no rounds"):
        short.plot()


def test_the_command_takes_committees(tmp_path):
    trace, (inputs, labels) = play("classes", 1.5)
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
    made = dl.certify(trace, comparator, inputs, labels)
    assert numbers["bounds"]["book"] == made.bounds()["book"]
    assert len(numbers["members"]) == len(trace.members)
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
