"""A learner that needs nothing but the task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypedDict, overload

import numpy as np
import numpy.typing as npt

from driftline.bandit import Bandit, Clicks
from driftline.committee.account import BUDGET, check_budget
from driftline.committee.combine import rule_of
from driftline.committee.committee import Committee
from driftline.committee.suited import certain_decoder, certain_loss, detector
from driftline.decoders import Answer, Argmax, Marginal, default_decoder
from driftline.detectors import Cusum, Detector
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.features import (
    Block,
    Categories,
    Chain,
    Fourier,
    Hats,
    InverseCounts,
    Map,
    Narrow,
    RandomTrees,
    Ranks,
    Raw,
    Recent,
    Shorten,
    Standardise,
    check_categories,
)
from driftline.inputs import float_type
from driftline.learner import OGD, Member
from driftline.losses import CRF, ConvolutionalFenchelYoung, Logistic, Loss, Scaled
from driftline.members import Column, Forest, NaiveBayes, Neighbours, Tables, member_of
from driftline.parts import check_flag
from driftline.rates import AdaGrad, Constant, Decaying, Polyak, Rate, Relative
from driftline.tasks import Task

__all__ = ["auto", "guarded"]

#: The constant feature of tags, for an intercept: most tags are seldom set, which must be learned
#: before the weights of their features.
RARE = 0.3

#: Maps are for rows of at most ``FEW`` features.
FEW = 128

#: How many members of a line-up each map has, the first ones. The fourth one of structures, a free
#: rate in a small ball, had no weight in curves and smooth functions.
MAPPED = {"classes": 4, "sign": 4}
MAPPED_OTHERS = 3

#: The most features of rows for members without gradient steps.
FEWER = 32

#: Rows of few features, centred, without a constant.
MIDDLE = Narrow(Standardise(constant=False), FEWER)

#: Rows of few features, neither centred nor scaled, no longer than 1.
SHORT = Narrow(Shorten(), FEWER)

#: The constant feature beside rows that are standardised by the last rows.
LEVEL = 0.3

#: Balls and steps of the members with a theorem for their losses: steps are shares of one over the
#: self-bounding constant.
BALLS, BETAS = (10.0, 20.0, 60.0), (1 / 2, 1 / 4, 1 / 16)

#: The diameter of the ball of the member whose bound is small enough to be useful.
SURE = 15.0

CURVES = Chain(Hats(12), Standardise())

#: The maps beside what is linear, by how much may be spent on them.
EFFORTS: dict[str, tuple[Map, ...]] = {
    "fast": (),
    "balanced": (
        Recent(50.0, constant=LEVEL),
        Hats(12),
        CURVES,
        Chain(Ranks(), Fourier(300, 0.5)),
        Chain(Standardise(constant=False), Fourier(300, 0.5, seed=1)),
    ),
    "best": (
        Recent(50.0, constant=LEVEL),
        Recent(200.0, constant=LEVEL),
        Chain(Recent(50.0), Fourier(300, 0.5, seed=5)),
        Hats(6),
        Hats(12),
        CURVES,
        Ranks(),
        Chain(Ranks(), Fourier(500, 0.35)),
        Chain(Ranks(), Fourier(500, 0.7, seed=1)),
        Chain(Standardise(constant=False), Fourier(500, 0.35, seed=2)),
        Chain(Standardise(constant=False), Fourier(500, 0.5, seed=3)),
        Chain(Standardise(constant=False), Fourier(500, 1.0, seed=4)),
        RandomTrees(64, depth=8),
    ),
}


class Rest(TypedDict):
    """What all members of a line-up have in common, but for those with a map of their own."""

    intercept: bool
    dtype: npt.DTypeLike
    features: Map | None


#: A rate, a diameter, and the detector that restarts the member.
Setting = tuple[Rate, float, Detector | None]


@overload
def auto(
    task: Task,
    *,
    effort: str = "balanced",
    combine: str | None = None,
    scaling: bool = True,
    seed: int | None = 0,
    dtype: npt.DTypeLike = np.float64,
    budget: float | None = None,
    members: Sequence[Any] = (),
    categories: Mapping[int, int] | Categories = (),
    feedback: Literal["full"] = "full",
) -> Committee: ...


@overload
def auto(
    task: Task,
    *,
    effort: str = "balanced",
    combine: str | None = None,
    scaling: bool = True,
    seed: int | None = 0,
    dtype: npt.DTypeLike = np.float64,
    budget: float | None = None,
    members: Sequence[Any] = (),
    categories: Mapping[int, int] | Categories = (),
    feedback: str,
) -> Committee | Bandit | Clicks: ...


def auto(
    task: Task,
    *,
    effort: str = "balanced",
    combine: str | None = None,
    scaling: bool = True,
    seed: int | None = 0,
    dtype: npt.DTypeLike = np.float64,
    budget: float | None = None,
    members: Sequence[Any] = (),
    categories: Mapping[int, int] | Categories = (),
    feedback: str = "full",
) -> Committee | Bandit | Clicks:
    """Return a committee for a task, with nothing to set.

    Its members differ in rate, diameter and whether they start again when they err more often than
    before, for no setting is best on every stream: small steps average noise out, large ones follow
    changes, and a member that restarts can afford steps that decay.

    Some are linear in their inputs, others see them through maps: a curve of every feature, and
    smooth functions of all together. Beside them are members without an intercept and, for classes,
    trees, tables, naive Bayes and nearest neighbours. With ``effort="fast"`` all are linear, which
    is ten to twenty times as fast; ``"best"`` has more of each kind. Maps are for dense rows of at
    most 128 features, and so are neighbours in rows as they are; other members without steps,
    and those without an intercept, are for at most 32. On other rows they are left out.

    Of classes and signs what is most probable in the mean of members' probabilities is predicted;
    for other tasks all vote, as everywhere with ``combine="vote"``. Averaged probabilities err
    least.

    For ``dl.tasks.Abstaining(task, cost)`` members predict none in doubt, and so does the committee
    where an answer could cost more. The linear ones have twins that always answer, which is better
    where labels are noisy and no answer costs nearly as much as a guess.

    A guard holds predictions to the bound of a theorem (:mod:`driftline.committee.account`): in
    expectation they cost at most ``budget`` times the largest loss more than members with a theorem
    allow, ten of them for classes and signs, one for other tasks. The budget is 5, and there is no
    guard, with ``effort="fast"`` and for sequences and documents, unless one is given: late labels
    of these reserve the largest loss each, so that few predictions may be outstanding.

    ``members`` are further members, or models of any kind as :func:`guarded` takes them: the
    committee follows them while they are good, and leaves them when they are not.

    ``categories`` says which columns of dense rows have categories, as codes 0, 1, 2, ..., and of
    how many codes linear members learn each by itself: ``{2: 30}`` is the third column with 30 of
    them. Later codes count as one, and -1 is for a missing one. Trees, tables and naive Bayes read
    codes as they are; curves, smooth functions and neighbours read only numbers. So a column of
    many categories is one of the 32 or 128 columns that members are for, and costs the others
    nothing: see :class:`~driftline.features.Block`.

    With ``scaling`` inputs are standardised as they come, documents of a query and positions of a
    sequence by what was known before the round. ``dtype`` is that of the weights:
    ``float32`` is faster where rows are wide, see :class:`~driftline.OGD`. Queries may have up to
    10,000 documents, or twice as many as are chosen of them: a round costs as many operations as
    there are pairs.

    With ``feedback="bandit"`` only whether the prediction was right is seen: the learner is a
    :class:`~driftline.bandit.Bandit`, which has one kind of policies, whatever the effort. Of two
    classes a miss names the label, so that they have the same committee. With
    ``feedback="clicks"`` what was shown of tags, sets or lists is judged, and nothing else: see
    :class:`~driftline.bandit.Clicks`.

    >>> from driftline.streams import LabelFlips
    >>> stream = LabelFlips(rounds=5000, flips=5, seed=0)
    >>> bool(auto(stream.task).run(stream).target_loss.mean() < 0.03)
    True
    """
    if not isinstance(task, Task):
        raise InputError(f"expected a task, such as dl.tasks.Multiclass(3), but got {task!r:.80}")
    check_flag("scaling", scaling)
    if effort not in EFFORTS:
        raise InputError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}")
    if feedback not in ("full", "bandit", "clicks"):
        raise InputError(f"feedback must be 'full', 'bandit' or 'clicks', not {feedback!r:.80}")
    codes = check_categories(categories)
    seen: Map | None = Standardise() if scaling else None
    seen = Block(categories=codes).before(seen) if codes else seen
    if feedback == "clicks":
        return Clicks(task, features=seen, seed=seed)
    if feedback == "bandit" and not (task.zero_one and len(task.labels.all) == 2):
        return Bandit(task, features=seen, seed=seed)
    combine = usual_rule(task) if combine is None else combine
    rule_of(combine).check(task)
    if budget is None and (combine == "first" or not (effort == "fast" or task.layout.ragged)):
        budget = BUDGET
    budget = None if budget is None else check_budget(budget)
    given = (task, effort, combine, scaling, float_type(dtype, "weights"), budget, codes)
    try:
        known = Choice(*given, repr(task))
        hash(known)
    except TypeError:  # a task of somebody's own
        known = None
    if known is None or members:
        own = [one if isinstance(one, Member) else member_of(one, task) for one in members]
        return _committee(*given, own, seed)
    made = _prototype(known).copy()
    made._begin_anew(seed)
    return made


class Choice(NamedTuple):
    """What a line-up depends on: equal tasks may differ in their words."""

    task: Task
    effort: str
    combine: str
    scaling: bool
    dtype: np.dtype
    budget: float | None
    codes: Categories
    words: str


@lru_cache(maxsize=32)
def _prototype(choice: Choice) -> Committee:
    """Return a committee that is only copied: copies take a tenth of the time."""
    return _committee(*choice[:-1], [], 0)


def _committee(
    task: Task,
    effort: str,
    combine: str,
    scaling: bool,
    dtype: np.dtype,
    budget: float | None,
    codes: Categories,
    own: Sequence[Member],
    seed: int | None,
) -> Committee:
    """Return the committee that :func:`auto` describes."""
    constant = RARE if task.geometry.tags else task.layout.constant
    scale = Standardise(constant, dtype) if scaling and task.layout.scalable else None
    rest: Rest = {"intercept": scale is None, "dtype": dtype, "features": scale}
    kind, cost = task.answers.kind, task.predictions.doubt.cost
    lineup = LINEUPS.get(kind, _structured)
    members = list[Member](lineup(task, rest))
    if task.answers is not task:
        members += [_answering(member, cost) for member in lineup(task, rest)]
    if not task.layout.ragged:
        for part in EFFORTS[effort]:
            first = lineup(task, rest | {"intercept": False})[: MAPPED.get(kind, MAPPED_OTHERS)]
            members += _mapped(first, Narrow(part, FEW))
        if EFFORTS[effort]:
            members += PLAIN.get(kind, _plain_structured)(task, rest | {"intercept": False})
    if effort != "fast" and task.geometry.classes and task.kernels is not None:
        members += _counting(task, effort)
    members = [*own, *members] if combine == "first" else [*members, *own]
    if budget is not None and rule_of(combine).scored:
        members += _with_theorem(task, rest, constant)
    elif budget is not None:
        members.append(_book_of(task, rest, constant))
    _read_blocks(members, codes)
    made = Committee(members, combine, seed=seed, budget=budget)
    made._begin_anew(seed)
    return made


def _read_blocks(members: Sequence[Member], codes: Categories) -> None:
    """Let members read their columns: not the predictions of a model that come with the rows."""
    first = int(any(isinstance(member, Column) for member in members))
    for member in members:
        if isinstance(member, Column) or member._block is not None or not (first or codes):
            continue
        if codes and member._fixed.form != "codes":
            member._read(Block(first, categories=codes, form=member._fixed.form))
        elif first:
            member._read(Block(first))


def guarded(
    model: Any,
    task: Task,
    classes: Sequence[Any] | None = None,
    *,
    budget: float = BUDGET,
    effort: str = "balanced",
    categories: Mapping[int, int] | Categories = (),
    seed: int | None = 0,
) -> Committee:
    """Return a learner that predicts as a model does, and takes over when the model has gone stale.

    A guard compares the model with a bound (:mod:`driftline.committee.guard`). Where the model
    could cost more than ``budget`` mistakes above what is allowed, ``auto``'s own prediction is
    made, and where that could cost more than twice the budget, that of members with a theorem. So
    the expected number of mistakes is at most what is allowed and twice the budget, whatever the
    model does. A smaller budget takes over earlier.

    The learner can be copied and certified. Its file has the name of a model of another library,
    which is code of others, and ``dl.load(path, model=...)`` takes that again.

    Parameters
    ----------
    model
        A learner, a fitted scikit-learn estimator, a classifier of River, a function of a row, or a
        :class:`~driftline.members.Column` of predictions that come with the rows. It gets rows as
        they come. Learners and classifiers of River learn, others never do. Where it raises, or
        predicts None or an unknown class, it predicts nothing.
    task
        Classes or signs.
    classes
        The model's names of the labels, in the order of those of the task.
    budget, effort, categories, seed
        As for :func:`driftline.auto`.

    >>> import driftline as dl
    >>> stream = dl.streams.LabelFlips(rounds=1000, flips=1, seed=0)
    >>> old = dl.auto(stream.task, effort="fast")
    >>> _ = old.run(stream.inputs[:300], stream.labels[:300])
    >>> stale = old.snapshot().predict  # does not learn any more
    >>> trace = dl.Guarded(stale, stream.task, effort="fast").run(stream)
    >>> wrong = sum(stale(x) != y for x, y in zip(stream.inputs, stream.labels))
    >>> bool(wrong > 400), bool(trace.target_loss.sum() < 100)
    (True, True)
    """
    given = model.copy() if isinstance(model, Column) else member_of(model, task, classes)
    given_too: Any = {"members": [given], "categories": categories}
    return auto(task, effort=effort, combine="first", budget=budget, seed=seed, **given_too)


def _with_theorem(task: Task, rest: Rest, constant: bool | float) -> list[Member]:
    """Return members with a theorem for their losses, for the book of a guard.

    The best of three steps is within 7.7% of the best constant step for its ball, for all losses
    and paths of comparators; with the largest one the factor of these losses is 1. On wide rows,
    where scaling costs as much as learning, one member is left, which sees rows as others do.
    """
    loss = Logistic(task.answers)
    short, scale = Shorten(), rest["features"]
    narrow: Map = short if scale is None else Chain(Standardise(constant), short)
    wide: Map = short if scale is None else scale
    decoder = Argmax(loss) if task.answers is task else default_decoder(loss, task)[1]
    parts = [(Narrow(narrow, FEW), beta, diameter) for beta in BETAS for diameter in BALLS]
    made = list[Member]()
    for features, beta, diameter in [*parts, (wide, BETAS[0], BALLS[1])]:
        norm = math.hypot(features.longest, rest["intercept"])
        rate = Constant(beta / (loss.self_bound * norm**2))
        made.append(OGD(loss, decoder, rate, Ball(diameter), **(rest | {"features": features})))
    return made


def usual_rule(task: Task) -> str:
    """Return the rule that makes the fewest mistakes: averages where there are probabilities."""
    return "mix" if task.geometry.classes else "vote"


def _book_of(task: Task, rest: Rest, constant: bool | float) -> OGD:
    """Return the member whose theorem holds a vote: its rate never grows, it never starts again.

    Its ball is small. Rows of one size are short for it, so that the bound does not depend on them.
    """
    kind, side = task.answers.kind, 1.0
    loss: Loss
    if kind in ("classes", "sign", "tags"):
        loss, decoder = default_decoder(Logistic(task.answers), task)
        side = task.dim**0.5 if kind == "tags" else 1.0
    elif kind == "chain":
        loss = CRF(task)
        decoder = Marginal(loss)
    else:
        loss, decoder = default_decoder(ConvolutionalFenchelYoung(task), task)
    if not task.layout.ragged:
        short = Shorten() if rest["intercept"] else Chain(Standardise(constant), Shorten())
        rest = rest | {"features": short}
    return OGD(loss, decoder, Polyak(), Ball(SURE * side), **rest)


def _answering(member: OGD, cost: float) -> OGD:
    """Return a member that always answers, beside one that may not."""
    parts = member.parts._replace(decoder=Answer(member.loss, cost))
    return OGD(**parts._asdict(), features=member.map, dtype=member.engine.dtype)


def _through_the_middle(task: Task, rest: Rest) -> list[OGD]:
    """Return members without an intercept, for class borders through the centre of all rows.

    Where features are few, most mistakes after a change are made while the weight of the constant
    is learned. One member follows frequent changes, the other starts again.
    """
    fast = _certain(task, Scaled(Logistic(task.answers), 4.0), (_free(20.0), 200.0, None), rest)
    sure = _certain(task, _loss(task), (Decaying(5.0), 200.0, detector(task)), rest)
    return _mapped([fast, sure], MIDDLE)


def _plain_tags(task: Task, rest: Rest) -> list[OGD]:
    """Return members without an intercept for tags, on short rows and on centred ones.

    In rows that are of one scale already the scaling only adds noise, most of all in the first rows
    and after a change, when little else has been learned.
    """
    loss, change = _loss(task), detector(task)
    tags, side = float(task.dim), task.dim**0.5
    short: tuple[Setting, ...] = (
        (Decaying(20.0 * tags), 200.0 * side, change),
        (_free(3.0 * tags), 20.0 * side, None),
    )
    centred: tuple[Setting, ...] = (
        (Decaying(5.0 * tags), 200.0 * side, change),
        (_free(5.0 * tags), 60.0 * side, None),
    )
    return [
        *_mapped([_certain(task, loss, setting, rest) for setting in short], SHORT),
        *_mapped([_certain(task, loss, setting, rest) for setting in centred], MIDDLE),
    ]


def _plain_structured(task: Task, rest: Rest) -> list[OGD]:
    """Return members without an intercept for structures, on short rows and on centred ones."""
    loss, change = certain_loss(task), detector(task)
    if loss is None:
        return _plain_any(task, rest)
    steps: Setting = (Decaying(5.0 / loss.factor), 200.0, change)
    large: Setting = (_free(5.0 / loss.factor), 200.0, None)
    small: Setting = (_free(3.0 / loss.factor), 20.0, None)
    short = [_certain(task, loss, setting, rest) for setting in (steps, small)]
    return [*_mapped(short, SHORT), *_mapped([_certain(task, loss, large, rest)], MIDDLE)]


def _plain_any(task: Task, rest: Rest) -> list[OGD]:
    """Return members without an intercept by a smoother convolutional loss.

    The default regularizer is for small balls and little drift; in a large ball, and after changes,
    one that is three times as large is better, with longer steps.
    """
    usual = ConvolutionalFenchelYoung(task).regularizer
    assert usual is not None
    larger = replace(usual, scale=3.0 * usual.scale)  # type: ignore[type-var]
    loss = ConvolutionalFenchelYoung(task, larger)
    made = []
    for part in (SHORT, MIDDLE):
        for rate in (Decaying(20.0), Constant(3.0)):
            one = OGD(loss, None, rate, Ball(200.0), restart=detector(task), **rest)
            made += _mapped([one], part)
    return made


def _counting(task: Task, effort: str) -> list[Member]:
    """Return members without gradient steps: for labels that depend on few features, or locally."""
    ranks, raw = Narrow(Ranks(), FEWER), Narrow(Raw(), FEWER)
    trees = 30 if effort == "best" else 10
    made: list[Member] = [
        Forest(task, trees=trees, features=raw),
        Tables(task, features=ranks),
        NaiveBayes(task, features=ranks),
        Neighbours(task, features=MIDDLE),
        Neighbours(task, features=Narrow(Raw(), FEW)),
    ]
    if effort == "best":
        made += [
            NaiveBayes(task, half_life=5000.0, features=ranks),
            Neighbours(task, window=3000, features=ranks),
            Neighbours(task, window=500, features=Narrow(Raw(), FEW)),
        ]
    return made


def _mapped(members: list[OGD], part: Map) -> list[OGD]:
    """Return the same members, each with a feature map."""
    made = []
    for member in members:
        dtype = member.engine.dtype
        made.append(OGD(**member.parts._asdict(), features=part, dtype=dtype))
    return made


def _certain(task: Task, loss: Loss, setting: Setting, rest: Rest) -> OGD:
    rate, diameter, restart = setting
    return OGD(loss, certain_decoder(task, loss), rate, Ball(diameter), restart=restart, **rest)


def _loss(task: Task) -> Scaled:
    loss = certain_loss(task)
    assert loss is not None
    return loss


def _free(cap: float) -> Polyak:
    return Polyak(monotone=False, cap=cap)


def _classes(task: Task, rest: Rest) -> list[OGD]:
    """Return members that start again at a change, and others that follow it.

    Steps that decay come close to an average: larger ones for labels without noise, smaller ones
    for noisy labels. Steps that do not decay learn many features fast. Free rates, in a small ball
    and in a large one, follow frequent changes; the monotone rate follows slow changes; and small
    steps without decay or restarts follow changes that never end.
    """
    loss, change = _loss(task), detector(task)
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, change),
        (Decaying(1.0), 200.0, change),
        (Constant(1.0), 200.0, change),
        (_free(10.0), 200.0, None),
        (_free(3.0), 20.0, None),
        (Polyak(), 200.0, None),
        (Constant(0.1), 200.0, None),
    )
    return [_certain(task, loss, setting, rest) for setting in settings]


def _tags(task: Task, rest: Rest) -> list[OGD]:
    """Return members for the mean loss of all tags: steps and balls grow with their number.

    Tags that are seldom set need small steps without decay, and detectors do not notice changes
    among them: in a small ball old weights fade without a restart.
    """
    loss, change = _loss(task), detector(task)
    tags, side = float(task.dim), task.dim**0.5
    settings: tuple[Setting, ...] = (
        (Decaying(5.0 * tags), 200.0 * side, change),
        (Constant(1.0 * tags), 200.0 * side, change),
        (Constant(0.3 * tags), 200.0 * side, change),
        (_free(3.0 * tags), 20.0 * side, None),
    )
    careful = _certain(task, Scaled(Logistic(task), 1.1), (Polyak(), 20.0 * side, None), rest)
    return [*(_certain(task, loss, setting, rest) for setting in settings), careful]


def _relevance(task: Task, rest: Rest) -> list[OGD]:
    """Return members that sort by score; an intercept would change nothing.

    The loss grows with the number of pairs, so that no step of a fixed size fits both short and
    long queries: all steps are in units of the loss or of its gradients. An order does not depend
    on the length of the weights. So steps that decay are near an average from the first query on;
    the monotone rate, which starts again as they do, is for short queries with some noise;
    AdaGrad's, in a large ball, are long enough to turn the weights round in one query; and the
    free rate, which has a guarantee, is for grades without noise.
    """
    loss, change = _loss(task), Cusum(threshold=1.5, more=0.2)
    settings: tuple[Setting, ...] = (
        (Relative(10.0), 1000.0, change),
        (Polyak(), 200.0, change),
        (AdaGrad(), 100.0, None),
        (_free(20.0), 80.0, None),
    )
    rest = rest | {"intercept": False}
    return [_certain(task, loss, setting, rest) for setting in settings]


def _sequences(task: Task, rest: Rest) -> list[OGD]:
    """Return members that take the best path.

    Transitions learn how frequent tags are; an intercept beside them, a constant of 1, would be
    learned at the cost of the features. A small one beside scaled features costs 2% on planted
    sequences and saves 0.2% on handwritten words. Scaling hardly matters to handwritten words,
    whose pixels are 0 or 1: with it 1500 words have 0.8% fewer mistakes, 800 words 0.7% more.

    Features that are seldom seen, as words are, need steps of their own, and transitions steps that
    are much smaller: two members have both by their map. On hashed words and on tagged text they
    save a quarter to a half of the mistakes. Handwritten words are learned best by steps that decay
    slowly, somewhat smaller ones for transitions. Detectors give false alarms there, so that one of
    two such members never starts again. The others are for dense features of planted sequences; the
    free rate among them follows frequent changes.
    """
    loss, change = _loss(task), detector(task)
    plain: list[Setting] = [
        (Decaying(5.0), 200.0, change),
        (Decaying(1.0), 200.0, change),
        (_free(1.0), 200.0, None),
        (Polyak(), 200.0, None),
    ]
    slow: list[Setting] = [(Decaying(0.5, power=0.5), 1000.0, again) for again in (change, None)]
    small: list[Setting] = [(Constant(step), 1000.0, change) for step in (0.02, 0.05)]
    scaled, constant = not rest["intercept"], task.layout.constant
    rest = rest | {"intercept": rest["intercept"] and constant}
    made = [_certain(task, loss, setting, rest) for setting in plain]
    for settings, part in ((slow, InverseCounts(2.0, power=0.0)), (small, InverseCounts(16.0))):
        own = Chain(Standardise(constant), part) if scaled else part
        made += _mapped([_certain(task, loss, setting, rest) for setting in settings], own)
    return made


def _structured(task: Task, rest: Rest) -> list[OGD]:
    """Return members that take the best label, where the loss of a wrong one is bounded below.

    Step sizes are given for the loss before it is scaled.
    """
    loss, change = certain_loss(task), detector(task)
    if loss is None:
        return _any(task, rest)
    settings: tuple[Setting, ...] = (
        (Decaying(5.0 / loss.factor), 200.0, change),
        (Decaying(1.0 / loss.factor), 200.0, change),
        (_free(5.0 / loss.factor), 200.0, None),
        (_free(1.5 / loss.factor), 20.0, None),
    )
    return [_certain(task, loss, setting, rest) for setting in settings]


def _any(task: Task, rest: Rest) -> list[OGD]:
    """Return members by the convolutional loss, which every task has."""
    try:
        loss = ConvolutionalFenchelYoung(task)
    except InputError as error:
        raise InputError(f"no committee is known for {task!r}: {error}") from error
    change = detector(task)
    settings: tuple[Setting, ...] = (
        (Decaying(5.0), 200.0, change),
        (Decaying(1.0), 200.0, change),
        (Constant(1.0), 200.0, change),
        (_free(max(1.0, loss.rate_floor)), 60.0, None),
    )
    return [
        OGD(loss, None, rate, Ball(diameter), restart=restart, **rest)
        for rate, diameter, restart in settings
    ]


#: Members by the kind of a task; all other tasks have those of structured tasks.
LINEUPS = {
    "classes": _classes,
    "sign": _classes,
    "tags": _tags,
    "relevance": _relevance,
    "chain": _sequences,
}

#: Members without an intercept, likewise.
PLAIN = {"classes": _through_the_middle, "sign": _through_the_middle, "tags": _plain_tags}
