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
    member = learner.members[learner.guard.place]
    for x in stream.inputs:
        theta = member.scores(x) if member._width else np.zeros(task.dim)
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


def held(guard, member, seen, labels):
    """Return the least that was promised of a committee, over many comparators.

    Some are fitted, some are not.
    """
    rng, rounds, intercept = np.random.default_rng(1), len(seen), member.parts.intercept
    shape, (known,) = (member.task.layout.weight_rows, seen.shape[1] + intercept), guard.sure
    norm = np.sqrt((seen**2).sum(axis=1).max() + intercept)
    tried = [*comparators(member, rounds, shape, rng)]
    if member.facts.searchable:
        cuts, step = [rounds // 3, 2 * rounds // 3], known.steps.least(norm**2)
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
    bounds = []
    for comparator in tried:
        loss = surrogate_losses(comparator, member.loss, seen, labels, intercept=intercept).sum()
        bounds.append(guard.formula(known, loss, comparator.path_length))
    return min(bounds)


@every_task
@pytest.mark.parametrize("world", WORLDS)
def test_a_guarded_vote_pays_what_was_promised_at_most(name, world):
    task, rng = TASKS[name], np.random.default_rng(len(name) + 10 * len(world))
    scaling, rounds = bool(rng.integers(3)), LONG if task.kernels is not None else SHORT
    budget = float(rng.choice([0.0, 1.5, 5.0]))
    stream = dl.streams.Planted(task, rounds, 2, features=3, noise=0.1, seed=int(rng.integers(99)))
    stream.inputs *= rng.choice([0.1, 1.0, 30.0])
    options = {"effort": "fast", "combine": "vote", "scaling": scaling, "budget": budget}
    labels = labels_of(task, stream, world, dl.auto(task, **options), rng)
    learner = dl.auto(task, **options)
    trace = learner.run(stream.inputs, labels)
    place = learner.guard.place
    member, seen = learner.members[place], trace.seen_by(place, stream.inputs)
    assert trace.risk.sum() <= learner.guard.bound + 1e-6
    assert learner.guard.bound <= held(learner.guard, member, seen, labels) + 1e-6


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
    bound = learner.facts.apriori_bound
    trace = learner.run(stream)
    made = dl.certify(trace, stream.comparator.scaled(3.0), stream)
    stated = bound.total(made.comparator_loss, made.path_length, learner.facts.largest_input)
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
        bound = learner.facts.apriori_bound
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
        assert learner.facts.apriori_bound is None
        assert "bound  none beforehand: without a budget" in dl.Committee([learner]).describe()
        with pytest.raises(dl.InputError, match="a guard needs a member with a theorem"):
            dl.Committee([learner], budget=5.0)
    assert "bound  none beforehand: without a budget" in dl.auto(T.NDCG(2)).describe()


@pytest.mark.parametrize("features", [3, 200])
def test_who_promises_stays_when_others_are_left_out(features):
    stream = dl.streams.Planted(T.Ordinal(3), 60, 1, features=features, seed=0)
    learner = dl.auto(stream.task)
    before = learner.guard.formula(*learner.guard.sure, 10.0, 1.0)
    learner.run(stream)
    assert learner.members[learner.guard.place] is learner.guard.member
    assert learner.guard.formula(*learner.guard.sure, 10.0, 1.0) == before
    assert (len(learner.members) == 5) == (features == 200)


def test_the_statement_has_its_numbers():
    bound, guard = dl.auto(T.Multilabel(3)).describe().splitlines()[2:4]
    assert bound == (
        "bound  E[total target loss] <= F_T + 71.1 + 5.088 P_T, in a ball of diameter 25.98, on "
        "rows of norm 1 at most, as that member sees them"
    )
    assert guard.startswith("guard  by the theorem of member 24, theorem 1 (surrogate gap)")
    said = dl.auto(T.NDCG(2), budget=5.0).describe()
    assert "<= F_T + B^2 (" in said and "B >= 1 the largest norm" in said


@pytest.mark.parametrize("flips", [1, 10])
def test_the_bound_beforehand_is_far_below_guessing(flips):
    """The comparator that makes the bound smallest is found in hindsight; the bound was known."""
    stream = dl.streams.LabelFlips(rounds=10_000, flips=flips, seed=0)
    learner = dl.auto(stream.task, effort="fast", combine="vote", budget=5.0)
    guard = learner.guard
    member, trace = guard.member, learner.run(stream)
    seen, step = trace.seen_by(guard.place, stream.inputs), guard.sure[0].steps.least(1.0)
    found = best_piecewise(
        member.loss, seen, stream.labels, member.domain,
        segments=flips + 1, candidates=stream.starts[1:], step=step,
    )  # fmt: skip
    bound = guard.formula(*guard.sure, found.loss, found.comparator.path_length)
    assert trace.risk.sum() <= bound
    assert bound < {1: 1600, 10: 2700}[flips] < 5000
    made = dl.certify(trace, found.comparator, stream)
    assert made.valid
    assert made.bounds()["worst_case"] <= bound * (1 + 1e-9)
