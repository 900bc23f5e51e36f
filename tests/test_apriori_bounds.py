"""What is said before the first round holds, whatever comes."""

import itertools

import numpy as np
import pytest
from howmany import chosen, number

import driftline as dl
from driftline.certificates import best_piecewise, surrogate_losses

T, L, R = dl.tasks, dl.losses, dl.rates
#: Long enough that prices of starts are small, where rounds are compiled.
LONG, SHORT = number(300, 1500), number(40, 120)

TASKS = {
    "signs": T.Binary(),
    "two": T.Multiclass(2),
    "classes": T.Multiclass(4),
    "tags": T.Multilabel(3),
    "levels": T.Ordinal(4),
    "sets": T.FixedSize(4, 2),
    "rankings": T.LabelRanking(3),
    "costs": T.CostSensitive([[0.0, 1.0, 0.3], [0.5, 0.0, 0.3]]),
}
every_task = pytest.mark.parametrize("name", TASKS)

#: What labels are: those of weights that change, noise, always the same, or the least likely ones.
WORLDS = ("planted", "noise", "same", "against")


def labels_of(task, stream, world, learner, rng):
    """Return labels for the inputs of a stream; those against a learner let it play."""
    if world == "planted":
        return stream.labels
    order = rng.permutation(len(stream))
    if world == "noise":
        return [stream.labels[t] for t in order]
    if world == "same":
        return [stream.labels[0]] * len(stream)
    made = []
    member = learner.members[learner.apriori_bound.member]
    for x in stream.inputs:
        scaled = learner.scaling is not None and member.map is None and member.width
        row = learner.scaling.look(x[np.newaxis]).array[0] if scaled else x
        theta = member.scores(row) if member.width else np.zeros(task.dim)
        tried = [stream.labels[t] for t in order[:8]]
        made.append(max(tried, key=lambda y: member.decoder.risk(theta, y)))
        learner.step(x, made[-1])
    return made


def comparators(member, rounds, shape, rng):
    """Yield comparators of every size inside the member's ball, fixed and in pieces."""
    radius = member.domain.radius
    every = itertools.product((0.05, 0.3, 1.0), (1, 2, 5))
    for size, pieces in chosen(((0.05, 5), (0.3, 1), (1.0, 2)), every):
        weights = rng.standard_normal((pieces, *shape))
        lengths = np.sqrt((weights**2).sum(axis=(1, 2), keepdims=True))
        weights *= size * radius / lengths
        starts = np.linspace(0, rounds, pieces + 1).astype(int)[:-1]
        yield dl.comparators.Piecewise(starts, weights)
    yield dl.comparators.Fixed(np.zeros(shape))


def held(bound, member, seen, labels):
    """Return the least that was promised of a committee and of the member, over many comparators.

    Some are fitted, some are not.
    """
    rng, rounds, intercept = np.random.default_rng(1), len(seen), member.parts.intercept
    shape = (member.task.layout.weight_rows, seen.shape[1] + intercept)
    norm = np.sqrt((seen**2).sum(axis=1).max() + intercept)
    tried = [*comparators(member, rounds, shape, rng)]
    if member.searchable:
        cuts, step = [rounds // 3, 2 * rounds // 3], bound.own.steps.least(norm**2)
        for segments in chosen((3,), (1, 3)):
            tried.append(
                best_piecewise(
                    member.loss,
                    seen,
                    labels,
                    member.domain,
                    segments=segments,
                    candidates=cuts,
                    step=step,
                    intercept=intercept,
                    tolerance=0.05,
                ).comparator
            )
    bounds, own = [], []
    for comparator in tried:
        loss = surrogate_losses(comparator, member.loss, seen, labels, intercept=intercept).sum()
        bounds.append(bound.total(loss, comparator.path_length, rounds, norm))
        own.append(bound.own.total(loss, comparator.path_length, norm))
        if np.isfinite(bound.own.longest):
            assert bounds[-1] <= bound.total(loss, comparator.path_length, rounds) * (1 + 1e-9)
    return min(bounds), min(own)


@every_task
@pytest.mark.parametrize("world", WORLDS)
def test_a_draw_pays_what_was_promised_at_most(name, world):
    task, rng = TASKS[name], np.random.default_rng(len(name) + 10 * len(world))
    scaling, rounds = bool(rng.integers(3)), LONG if task.kernels is not None else SHORT
    stream = dl.streams.Planted(task, rounds, 2, features=3, noise=0.1, seed=int(rng.integers(99)))
    stream.inputs *= rng.choice([0.1, 1.0, 30.0])
    adversary = dl.auto(task, effort="fast", combine="draw", scaling=scaling)
    labels = labels_of(task, stream, world, adversary, rng)
    learner = dl.auto(task, effort="fast", combine="draw", scaling=scaling)
    bound = learner.apriori_bound
    trace = learner.run(stream.inputs, labels)
    member, seen = learner.members[bound.member], trace.seen_by(bound.member, stream.inputs)
    least, alone = held(bound, member, seen, labels)
    assert trace.risk.sum() <= least + 1e-6
    own = trace.member_risk[:, bound.member].sum()
    assert own <= alone + 1e-6
    assert trace.risk.sum() <= bound.average(own, rounds) + 1e-9


@pytest.mark.parametrize("name", ["signs", "classes", "tags", "levels"])
def test_a_vote_pays_its_factor_times_that_at_most(name):
    task = TASKS[name]
    stream = dl.streams.Planted(task, SHORT, 2, features=3, noise=0.1, seed=5)
    learner = dl.auto(task, effort="fast", combine="vote")
    bound = learner.apriori_bound
    assert bound.factor == 2.0
    trace = learner.run(stream)
    member, seen = learner.members[bound.member], trace.seen_by(bound.member, stream.inputs)
    assert trace.target_loss.sum() <= held(bound, member, seen, stream.labels)[0]


@pytest.mark.parametrize(
    "rate",
    [
        *(R.Polyak(), R.Polyak(cap=1.0), R.Polyak(cap=0.1), R.Constant()),
        *(R.Polyak(monotone=False, cap=3.0), R.Polyak(monotone=False, cap=0.1)),
    ],
)
@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
def test_a_learners_promise_is_the_worst_case_of_its_certificate(rate, size):
    stream = dl.streams.LabelFlips(rounds=200, flips=2, seed=0, form="matrix")
    stream.inputs *= size
    loss = L.Scaled(L.Logistic(stream.task), 2.0)
    learner = dl.OGD(loss, dl.decoders.Argmax(loss), rate)
    bound = learner.apriori_bound
    trace = learner.run(stream)
    made = dl.certify(trace, stream.comparator.scaled(3.0), stream)
    stated = bound.total(made.comparator_loss, made.path_length, learner.largest_input)
    if made.premises.no_theorem:
        assert stated == np.inf
    else:
        assert made.worst_case == pytest.approx(stated)


@pytest.mark.parametrize("rate", [R.Constant(0.3), R.Polyak(cap=0.2), R.Polyak(False, cap=0.2)])
def test_the_same_steps_from_the_centre_pay_a_quarter_for_their_start(rate):
    stream = dl.streams.LabelFlips(rounds=300, flips=2, seed=0, form="matrix")
    loss = L.Scaled(L.Logistic(stream.task), 2.0)
    edge = np.zeros((2, 2))
    edge[0, 0] = 10.0
    step = rate.step_range(dl.OGD(loss, dl.decoders.Argmax(loss), rate).parts.setting).least(1.0)
    for initial, share in ((None, 8.0), (np.zeros((2, 2)), 8.0), (edge, 2.0)):
        learner = dl.OGD(loss, dl.decoders.Argmax(loss), rate, initial=initial)
        bound = learner.apriori_bound
        assert bound.prices()[1] == pytest.approx(400.0 / (share * step))
        trace = learner.run(stream)
        made = dl.certify(trace, stream.comparator.scaled(9.0), stream)
        assert made.valid
        assert made.worst_case == pytest.approx(bound.total(made.comparator_loss, made.path_length))
        second = dl.certify(learner.run(stream), stream.comparator.scaled(9.0), stream)
        rest = second.worst_case - second.comparator_loss - 20.0 / step * second.path_length
        assert 400.0 / 8.0 < step * rest < 400.0 / 2.0


def test_who_has_no_theorem_promises_nothing():
    loss = L.Scaled(L.Logistic(T.Binary()), 2.0)
    argmax = dl.decoders.Argmax(loss)
    ball = dl.domains.Ball(20.0)
    for learner in (
        dl.OGD(loss, argmax, R.Polyak(), ball, restart=dl.detectors.Cusum()),
        dl.OGD(loss, argmax, R.Decaying(1.0), ball),
        dl.OGD(loss, argmax, R.Polyak(), dl.domains.Unbounded()),
        dl.members.NaiveBayes(T.Binary()),
    ):
        assert learner.apriori_bound is None
        committee = dl.Committee([learner], "draw")
        assert committee.apriori_bound is None
        assert "bound  none beforehand: every member" in committee.describe()
    assert "bound  none beforehand: the target loss" in dl.auto(T.NDCG(2)).describe()


@pytest.mark.parametrize("features", [3, 200])
def test_who_promises_stays_when_others_are_left_out(features):
    """Wide rows do without maps; the bound has fewer members to weigh then, and holds as stated."""
    stream = dl.streams.Planted(T.Multiclass(3), 60, 1, features=features, seed=0)
    learner = dl.auto(stream.task, combine="draw")
    before = learner.apriori_bound
    learner.run(stream)
    after = learner.apriori_bound
    assert before.member == after.member
    assert before.own == after.own._replace(first=before.own.first)  # no longer at the centre
    assert after.total(10.0, 1.0, 1000) <= before.total(10.0, 1.0, 1000)
    assert (len(learner.members) == 8) == (features == 200)


def test_the_statement_names_its_member_and_its_numbers():
    committee = dl.auto(T.Multiclass(3), combine="draw")
    bound = committee.describe().splitlines()[2]
    assert bound == (
        "bound  E[total target loss] <= R(F_T + 132.2 + 17.627 P_T), by theorem 1 (surrogate gap) "
        "of member 7, whose rows have norm 1 at most"
    )
    spread, start, path = committee.apriori_bound.own.prices()
    assert (spread, round(start, 1), round(path, 3)) == (1.0, 132.2, 17.627)
    vote = dl.auto(T.Multiclass(3), combine="vote").describe().splitlines()[2]
    assert "<= 2 R(B^2 (7.05" in vote and "B >= 1 the largest norm of an input" in vote
    constant = dl.OGD(L.Logistic(T.Binary()), rate=R.Constant(input_norm=2.0))
    assert "up to norm 2 of an input" in dl.Committee([constant], "draw").describe()


def test_promises_scale_with_the_largest_loss():
    """Levels cost up to K - 1, and weights see losses as shares of that."""
    made = dl.auto(T.Ordinal(4), combine="draw").apriori_bound
    assert made.largest_loss == T.Ordinal(4).largest_loss
    assert made.average(1e9, 10) <= made.largest_loss * 10 * (1 + 1e-9)


@pytest.mark.parametrize("flips", [1, 10])
def test_the_bound_beforehand_is_far_below_guessing(flips):
    """The comparator that makes the bound smallest is found in hindsight; the bound was known."""
    stream = dl.streams.LabelFlips(rounds=10_000, flips=flips, seed=0)
    learner = dl.auto(stream.task, effort="fast", combine="draw")
    bound = learner.apriori_bound
    member, trace = learner.members[bound.member], learner.run(stream)
    seen, step = trace.seen_by(bound.member, stream.inputs), bound.own.steps.least(1.0)
    found = best_piecewise(
        member.loss, seen, stream.labels, member.domain,
        segments=flips + 1, candidates=stream.starts[1:], step=step,
    )  # fmt: skip
    bound = bound.total(found.loss, found.comparator.path_length, 10_000)
    assert trace.risk.sum() <= bound
    assert bound < {1: 1850, 10: 3150}[flips] < 5000
    made = dl.certify(trace, found.comparator, stream)
    assert made.valid
    assert made.bounds()["worst_case"] <= bound * (1 + 1e-9)
