"""The public check of learners: ours pass, and one with a single fault is named by its law."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy import sparse

import driftline as dl
from driftline.checks import BrokenLawError, check_learner
from driftline.features import Standardise
from driftline.state import Draws

T = dl.tasks
LOSS = dl.losses.Logistic(T.Multiclass(3))
CERTAIN = dl.losses.Scaled(dl.losses.Logistic(T.Multiclass(3)), 2.0)


def drawing(kind=dl.OGD, **options):
    """A learner whose predictions are drawn."""
    return kind(LOSS, **options)


def certain(kind=dl.OGD, **options):
    """A learner whose predictions are certain."""
    return kind(CERTAIN, dl.decoders.Argmax(CERTAIN), **options)


def voting(kind=dl.Committee, budget=None):
    """A committee on standardised rows."""
    scaled = {"features": Standardise()}
    return kind([certain(**scaled), drawing(**scaled)], budget=budget)


class Own(dl.Learner):
    """Keeps the page and has nothing else: another learner does the work."""

    def __init__(self, inner):
        self._inner, self.task = inner, inner.task

    def copy(self):
        return type(self)(self._inner.copy())

    def grown(self, *, classes=None, features=None):
        return type(self)(self._inner.grown(classes=classes, features=features))

    state = property(lambda self: self._inner.state)
    rounds = property(lambda self: self._inner.rounds)
    features = property(lambda self: self._inner.features)
    outstanding = property(lambda self: self._inner.outstanding)


def _passed_on(name):
    def method(self, *args, **options):
        return getattr(self._inner, name)(*args, **options)

    return method


for _name in sorted(dl.Learner.__abstractmethods__ - {"copy", "grown"}):
    if _name not in ("state", "rounds", "features", "outstanding"):
        setattr(Own, _name, _passed_on(_name))
Own.__abstractmethods__ = frozenset()


@dataclasses.dataclass(frozen=True)
class PlainLogistic(dl.losses.Loss):
    """A loss without kernels."""

    task: dl.tasks.Task
    self_bound = 1.0 / np.log(2.0)
    argmax_ratio = 1.0

    def value_and_grad(self, theta, label):
        return dl.losses.Logistic(self.task).value_and_grad(theta, label)


def plain():
    """A learner that plays in Python."""
    loss = dl.losses.Scaled(PlainLogistic(T.Multiclass(3)), 2.0)
    return dl.OGD(loss, dl.decoders.Argmax(loss))


def mixed(budget=None):
    task, members = T.Multiclass(3), dl.members
    others = [members.NaiveBayes(task), members.Tables(task), members.Neighbours(task, window=15)]
    return dl.Committee([drawing(), *others, members.Forest(task, trees=2)], budget=budget)


GOOD = {
    "drawing": drawing,
    "certain": certain,
    "intercept": functools.partial(drawing, intercept=True),
    "restarts": functools.partial(certain, restart=dl.detectors.Cusum(0.5)),
    "single": functools.partial(drawing, dtype=np.float32),
    "initial": functools.partial(drawing, initial=np.full((3, 10), 0.1)),
    "unbounded": functools.partial(certain, domain=dl.domains.Unbounded()),
    "rows": functools.partial(drawing, domain=dl.domains.RowBalls(3, 4.0)),
    "plain": plain,
    "tags": lambda: dl.OGD(dl.losses.ConvolutionalFenchelYoung(T.Multilabel(3))),
    "ranking": lambda: dl.OGD(dl.losses.Scaled(dl.losses.SparseMAP(T.LabelRanking(3)), 2.0)),
    "sequence": lambda: dl.OGD(dl.losses.CRF(T.Sequence(2))),
    "vote": voting,
    "guarded": functools.partial(voting, budget=1.5),
    "bare": lambda: dl.Committee([certain(), drawing()]),
    "mixed": mixed,
    "mixed, guarded": functools.partial(mixed, 1.5),
    "own": lambda: Own(drawing()),
    "own committee": lambda: Own(voting()),
    "auto binary": lambda: dl.auto(T.Binary(), effort="fast"),
    "auto tags": lambda: dl.auto(T.Multilabel(3), effort="fast"),
    "auto levels": lambda: dl.auto(T.Ordinal(4), effort="fast"),
    "auto queries": lambda: dl.auto(T.NDCG(2), effort="fast"),
    "auto chains": lambda: dl.auto(T.Sequence(2), effort="fast"),
    "auto unscaled": lambda: dl.auto(T.Multiclass(4), scaling=False, effort="fast"),
}


#: Those that take longest, left to ``make test-all``.
LONG = {"mixed draw", "own committee", "auto tags", "auto levels", "auto queries", "auto chains"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in GOOD]
)
def test_learners_of_ours_pass(name):
    check_learner(GOOD[name]())


@pytest.mark.parametrize("make", [drawing, certain], ids=["drawing", "certain"])
def test_sparse_rows_pass(make):
    stream = dl.streams.Planted(T.Multiclass(3), rounds=30, flips=1)
    check_learner(make(), sparse.csr_array(stream.inputs), stream.labels)


# -- one fault each


class NoRollback(dl.OGD):
    def _rollback(self, checkpoint):
        return


class NoRollbackCommittee(dl.Committee):
    def _rollback(self, checkpoint):
        return


class KeepsTheSeed(dl.OGD):
    def _rollback(self, checkpoint):
        key = self._draws.key
        super()._rollback(checkpoint)
        self._draws = Draws(key)


class LosesLate(dl.OGD):
    """Takes a late label, and learns nothing from it."""

    def _learn_late(self, row, label, number, paid):
        return


class MisplacesLate(dl.OGD):
    """Learns from a late label with the input of the last one, which a copy does not know."""

    last = None

    def _learn_late(self, row, label, number, paid):
        super()._learn_late(row if self.last is None else self.last, label, number, paid)
        self.last = row

    def _unshare(self):
        super()._unshare()
        self.last = None


class TakesForeign(dl.OGD):
    def tell(self, ticket, label):
        super().tell(dataclasses.replace(ticket, learner=self._identify()), label)


class TakesTwice(dl.OGD):
    last = None

    def tell(self, ticket, label):
        if ticket is self.last:
            self._outstanding.add(ticket.number)
        super().tell(ticket, label)
        self.last = ticket


class TakesTickets(dl.OGD):
    """Learns from tickets that were never asked for."""

    def tell(self, ticket, label):
        super().tell(
            dataclasses.replace(ticket, number=min(ticket.number, self._tickets - 1)), label
        )


class GrowsForgetfully(dl.OGD):
    def grown(self, **sizes):
        made = super().grown(**sizes)
        state = made.state
        none = None if state.weights is None else np.zeros_like(state.weights)
        made.restore(state.replaced(weights=none, norm_sq=0.0))
        return made


class GrowsSizesForgetfully(dl.OGD):
    """Forgets only where it becomes larger."""

    def grown(self, *, classes=None, features=None):
        made = super().grown(classes=classes, features=features)
        if features is not None and features > self.features:
            state = made.state
            made.restore(state.replaced(weights=np.zeros_like(state.weights), norm_sq=0.0))
        return made


class GrowsWithAnotherMap(dl.Committee):
    def grown(self, *, classes=None, features=None):
        made = super().grown(classes=classes, features=features)
        new = Standardise().mapper()
        new.transform(np.zeros((1, made.features)))
        made.standardiser.become(new)
        return made


class GrowsAndStartsAgain(dl.OGD):
    """Forgets how many rounds there were."""

    def grown(self, **sizes):
        made = super().grown(**sizes)
        made.restore(made.state.replaced(rounds=0))
        return made


class GrowsNot(dl.OGD):
    """Says that it has grown, and has not."""

    def grown(self, *, classes=None, features=None):
        return self.copy()


class IgnoresSeed(dl.OGD):
    def _reseed(self, seed):
        return


class SeedsItself(dl.OGD):
    def _reseed(self, seed):
        super()._reseed(int(np.random.default_rng().integers(2**60)))


class MixesSeeds(dl.OGD):
    def _reseed(self, seed):
        super()._reseed(seed + self._draws.key % 1000)


class HasNoFeatures(Own):
    features = None


class CountsNothing(Own):
    rounds = 0


class CountsCalls(Own):
    """Counts a run as one round."""

    def __init__(self, inner, rounds=0):
        super().__init__(inner)
        self._count = rounds

    rounds = property(lambda self: self._count)

    def run(self, *args, **options):
        trace = self._inner.run(*args, **options)
        self._count += 1
        return trace

    def copy(self):
        return type(self)(self._inner.copy(), self._count)


class Lives(dl.OGD):
    """A snapshot that is a look at the learner."""

    def snapshot(self):
        return dl.Predictor(self.task, self.rounds, self.predict)


class LivesCommittee(dl.Committee):
    def snapshot(self):
        return dl.Predictor(self.task, self.rounds, self.predict)


class SharesWeights(dl.OGD):
    """A snapshot whose weights are the learner's, but not its draws."""

    def snapshot(self):
        other, numbers = self.copy(), np.array([self._tickets])

        def predict(x):
            other.engine.stored = self.engine.stored
            row = other._row(x)
            return other.task.predictions.value(other._look(row, numbers).predictions[0])

        return dl.Predictor(self.task, self.rounds, predict)


class CountsAsks(dl.OGD):
    """Counts a question as two."""

    def ask(self, x):
        ticket = super().ask(x)
        self._tickets += 1
        return ticket


class MovesWhenAsked(dl.OGD):
    def ask(self, x):
        ticket = super().ask(x)
        if self.engine.stored is not None:
            self.engine.stored[0, 0] *= 1.0 + 1e-12
        return ticket


class KeepsTheTicket(dl.OGD):
    """Learns from a row and does not count its ticket."""

    def learn_row(self, x, label):
        super().learn_row(x, label)
        self._tickets -= 1


class DrawsAllByOneNumber(dl.OGD):
    """Draws the predictions of many tickets by the number of the first."""

    def _look(self, rows, numbers, whole=True):
        return super()._look(rows, np.full(len(numbers), numbers[0]), whole)


class RecordsHalfTheLoss(Own):
    def run(self, *args, **options):
        trace = self._inner.run(*args, **options)
        return dataclasses.replace(trace, target_loss=trace.target_loss / 2.0)


class AsksUpToABadRow(Own):
    """Refuses a list at its first bad row, and has asked for those before it."""

    def ask_rows(self, inputs, *, numbers=None):
        if numbers is not None:
            return self._inner.ask_rows(inputs, numbers=numbers)
        return [self._inner.ask(x) for x in inputs]


class TellsBackwards(Own):
    def tell_rows(self, tickets, labels):
        self._inner.tell_rows(list(tickets)[::-1], list(labels)[::-1])


class TellsUpToABadTicket(Own):
    """Refuses a list at its first bad ticket, and has learned from those before it."""

    def tell_rows(self, tickets, labels):
        for ticket, label in zip(tickets, labels, strict=False):
            self._inner.tell(ticket, label)


class ForgetsWhatWasPaid(dl.Committee):
    """Moves weights by what the members of the first ticket of a list paid, for all of them."""

    def _paid_then(self, tickets, labels, first):
        paid = super()._paid_then(tickets, labels, first)
        return np.repeat(paid[:1], len(paid), axis=0)


class TakesAnyState(Own):
    def restore(self, state):
        if hasattr(state, "rounds"):
            self._inner.restore(state)


class SavesTheTime(Own):
    """Writes other bytes every time."""

    count = 0

    def save(self, path):
        SavesTheTime.count += 1
        inner = self._inner.copy()
        inner._tickets += SavesTheTime.count
        return inner.save(path)


def of(kind):
    """Make a drawing learner, or a committee where the kind is one."""
    return voting(kind) if issubclass(kind, dl.Committee) else drawing(kind)


FAULTS = [
    (lambda: of(NoRollback), "a stream that is refused leaves the learner as it was"),
    (lambda: certain(NoRollback), "a stream that is refused leaves the learner as it was"),
    (lambda: of(NoRollbackCommittee), "a stream that is refused leaves the learner as it was"),
    (lambda: of(KeepsTheSeed), "a stream that is refused leaves the learner as it was"),
    (lambda: of(LosesLate), "labels that come late are learned from in any order"),
    (lambda: of(MisplacesLate), "the same late labels lead to the same bits"),
    (lambda: of(TakesForeign), "refuses a ticket of another learner"),
    (lambda: of(TakesTwice), "refuses a ticket that was told already"),
    (lambda: of(TakesTickets), "refuses a ticket that nobody asked for"),
    (lambda: of(GrowsForgetfully), "grown by nothing goes on with the same bits"),
    (lambda: of(GrowsSizesForgetfully), "remembers what was learned before"),
    (lambda: Own(certain(GrowsSizesForgetfully)), "predicts old rows as before"),
    (lambda: of(GrowsWithAnotherMap), "grown by nothing goes on with the same bits"),
    (lambda: of(GrowsAndStartsAgain), "grown by nothing goes on with the same bits"),
    (lambda: of(GrowsNot), "is for as many features as it was grown for"),
    (lambda: of(IgnoresSeed), "another seed draws other numbers"),
    (lambda: of(SeedsItself), "the same seed leads to the same bits"),
    (lambda: of(MixesSeeds), "a seed decides all draws that follow"),
    (lambda: HasNoFeatures(drawing()), "features"),
    (lambda: CountsNothing(drawing()), "rounds are counted"),
    (lambda: CountsCalls(drawing()), "rounds are counted"),
    (lambda: of(Lives), "a snapshot stays"),
    (lambda: certain(Lives), "a snapshot stays"),
    (lambda: of(LivesCommittee), "a snapshot stays"),
    (lambda: certain(SharesWeights), "a snapshot stays"),
    (lambda: of(CountsAsks), "asking changes nothing but the next ticket"),
    (lambda: of(MovesWhenAsked), "asking changes nothing but the next ticket"),
    (lambda: of(KeepsTheTicket), "single rows lead to the state of a run"),
    (lambda: of(DrawsAllByOneNumber), "ask_rows returns the tickets of ask"),
    (lambda: RecordsHalfTheLoss(drawing()), "recorded prediction costs the recorded target loss"),
    (lambda: AsksUpToABadRow(drawing()), "what is refused in a list changes nothing"),
    (lambda: TellsBackwards(drawing()), "tell_rows leads to the state of tell"),
    (lambda: TellsUpToABadTicket(drawing()), "what tell_rows refuses changes nothing"),
    (lambda: voting(ForgetsWhatWasPaid), "tell_rows leads to the state of tell"),
    (lambda: TakesAnyState(drawing()), "restore refuses what is no state"),
    (lambda: SavesTheTime(drawing()), "equal learners are saved as equal bytes"),
]


@pytest.mark.parametrize("make, words", FAULTS, ids=[words for _, words in FAULTS])
def test_a_learner_with_one_fault_is_named(make, words):
    with pytest.raises(BrokenLawError, match=words):
        check_learner(make())


def test_a_learner_that_has_played_is_refused():
    learner = drawing()
    learner.step(np.ones(3), 1)
    with pytest.raises(dl.InputError, match="expected a new learner"):
        check_learner(learner)


def test_the_learner_is_left_as_it_is():
    learner = voting()
    check_learner(learner)
    assert learner.rounds == 0 and learner.features is None


# -- predictions that are real numbers


@dataclasses.dataclass(frozen=True)
class Share(dl.tasks.Task):
    """A share between 0 and 1, under the squared distance."""

    dim = 2
    guess = dl.tasks.Guess(0.25)
    labels = dl.tasks.Reals()

    def encode(self, label):
        return np.array([label, 1.0])

    def encode_loss(self, prediction):
        return np.array([-2.0 * prediction, prediction**2])

    def offset(self, label):
        return float(label) ** 2

    def best_prediction(self, mu):
        return float(mu[0])


@dataclasses.dataclass(frozen=True)
class Whole(Share):
    """The same, which does not say that its predictions are real numbers."""

    labels = dl.tasks.Space()


@dataclasses.dataclass(frozen=True)
class Squared(dl.losses.Loss):
    task: dl.tasks.Task
    self_bound = 4.0
    clipped_ratio = 0.5

    def value_and_grad(self, theta, label):
        far = theta[0] - label
        return 2.0 * far**2, np.array([4.0 * far, 0.0])


@dataclasses.dataclass(frozen=True)
class Clipped(dl.decoders.Decoder):
    loss: Squared
    ratio_name = "clipped"
    deterministic = True

    def draw(self, theta, uniforms):
        return float(np.clip(theta[0], 0.0, 1.0))

    def mean_loss_encoding(self, theta):
        return self.loss.task.encode_loss(self.draw(theta, None))


def shares(task, rate=None):
    return dl.OGD(Squared(task), Clipped(Squared(task)), rate)


def share_rows():
    inputs = np.random.default_rng(0).normal(size=(40, 3))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    return inputs, list(0.5 + 0.4 * inputs[:, 0])


@pytest.mark.parametrize("several", [False, True])
def test_predictions_that_are_real_numbers_keep_their_digits(several):
    inputs, labels = share_rows()
    learner = shares(Share())
    if several:
        learner = dl.Committee([learner, shares(Share(), dl.rates.Constant(0.1))])
    dl.checks.check_task(Share(), [0.0, 0.3, 1.0])
    check_learner(learner, inputs, labels)
    for trace in (
        learner.copy().run(inputs, labels),
        dl.Keyed(learner).run([0, 1] * 20, inputs, labels),
    ):
        paid = (trace.prediction.ravel() - labels) ** 2
        np.testing.assert_allclose(trace.target_loss, paid, atol=1e-12)


def test_labels_that_are_real_numbers_wait_with_all_digits():
    inputs, labels = share_rows()
    one, two = shares(Share()), shares(Share())
    one.run(inputs[:20], labels[:20], delay=9)
    two.restore(one.state)
    ends = [own.run(inputs[20:], labels[20:], delay=0) for own in (one, two)]
    whole = shares(Share()).run(inputs, labels, delay=[9] * 20 + [0] * 20)
    for end in ends:
        np.testing.assert_array_equal(end.prediction, whole.prediction[20:])


def test_real_predictions_of_a_task_of_whole_ones_are_refused():
    inputs, labels = share_rows()
    learner = shares(Whole())
    for play in (learner.run, functools.partial(check_learner, learner)):
        with pytest.raises(dl.InputError, match="dtype of its space is int64"):
            play(inputs, labels)
    assert learner.rounds == 0
