r"""What a learner has learned of its features.

Let p(x) be the chances that a learner gives to all labels, and x' a row x whose feature j was
exchanged for that of another row. Then

.. math:: I_j = \frac1n \sum_{i=1}^n \frac12 \sum_k |p_k(x_i) - p_k(x_i')|

is how much of its chances the learner moves by feature j, between 0 and 1: permutation importance
(Breiman, 2001), of chances in place of mistakes, so that no labels are needed. For tags, each of
which has a chance of its own, it is the mean of :math:`|p_k(x_i) - p_k(x_i')|`. The curve

.. math:: c_{jk}(v) = \frac1n \sum_{i=1}^n p_k(x_i \text{ with } v \text{ in place of } x_{ij})

says how chances depend on the feature: partial dependence (Friedman, 2001). Any learner can be
explained, whatever feature maps it has. Correlated features share their importance, and rows with
an exchanged feature may be unlike any row of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.committee import Committee
from driftline.committee.pooling import log_chances
from driftline.errors import InputError
from driftline.inputs import DenseRows, refuse, rows_of
from driftline.learner import Member, checked_stream, gives_probabilities
from driftline.plotting import COLOURS, new_figure
from driftline.typing import Inputs, Json, Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Curve",
    "Explanation",
    "Importances",
    "explain",
    "explain_run",
    "member_name",
    "map_name",
    "share_of_kinds",
]

#: How often each row is exchanged with another; how many rows are used at most; and how many of the
#: last rows are used each time while a run goes on.
EXCHANGES, MOST_ROWS, RECENT = 4, 500, 100

#: For how many features there are curves, of how many values each.
CURVES, VALUES = 8, 21

#: The most labels that are drawn.
MOST_LABELS = len(COLOURS)

#: If there are more members than this, they are shown by kind.
MOST_MEMBERS = 8


@dataclass(frozen=True)
class Curve:
    """The mean chances of all labels at some values of one feature: a row for every value.

    Of a feature that is a category, ``texts`` are those of the values, which are in the order of
    the label whose chances differ most.
    """

    values: np.ndarray
    chances: np.ndarray
    texts: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Explanation:
    """How much every feature matters, and how chances depend on those that matter most.

    ``importance`` has a number for every one of the features' ``names``; ``curves`` those of the
    most important ones, by name; ``weights`` the members' weights in the next vote, by kind.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    importance: np.ndarray
    curves: dict[str, Curve]
    weights: dict[str, float]
    rounds: int

    @property
    def order(self) -> list[str]:
        """The names of all features, the most important first."""
        places = np.argsort(-self.importance, kind="stable")
        return [self.names[j] for j in places]

    def in_words(self, name: str) -> str:
        """Say how chances change from the lowest value of a feature to the highest, if they do."""
        return _in_words(self.curves[name], self.labels)

    def __str__(self) -> str:
        """Return the most important features, with the labels that gain as these grow."""
        lines = [f"after {self.rounds} rounds; importance: what share of chances a feature moves"]
        wide = max(len(name) for name in self.order[:CURVES])
        known = dict(zip(self.names, self.importance.tolist(), strict=True))
        for name in self.order[:CURVES]:
            lines.append(f"  {name:{wide}}  {known[name]:.3f}  {self.in_words(name)}".rstrip())
        left = len(self.names) - len(self.order[:CURVES])
        if left:
            most = known[self.order[CURVES]]
            lines.append(f"  and {left} more, of {most:.3f} at most")
        if len(self.weights) > 1:
            shares = sorted(self.weights.items(), key=lambda pair: -pair[1])[:5]
            lines.append("weights: " + ", ".join(f"{name} {share:.2f}" for name, share in shares))
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw importances, and the curves of the most important features."""
        known = dict(zip(self.names, self.importance.tolist(), strict=True))
        curves = [name for name in self.order[:6] if known[name] > 0.0] or self.order[:1]
        figure = new_figure(10.0, 3.2 + 2.4 * ((len(curves) + 2) // 3))
        rows: Any = figure.subfigures(2, 1, height_ratios=[1.0, 0.9 * ((len(curves) + 2) // 3)])
        shown = self.order[:12]
        axes = rows[0].subplots()
        bars = [_drawn(name) for name in shown[::-1]]
        axes.barh(bars, [known[name] for name in shown[::-1]], color=COLOURS[0])
        axes.set_xlabel("share of chances that the feature moves")
        axes.set_title(f"What matters after {self.rounds} rounds", loc="left")
        grid = rows[1].subplots(-(-len(curves) // 3), 3, sharey=True, squeeze=False).ravel()
        for place, one in enumerate(grid):
            if place >= len(curves):
                one.set_visible(False)
                continue
            curve = self.curves[curves[place]]
            values = curve.values if curve.texts is None else np.arange(len(curve.texts))
            line = {} if curve.texts is None else {"marker": "o", "linestyle": "none"}
            for k, label in enumerate(self.labels[:MOST_LABELS]):
                colour, name = COLOURS[k], _drawn(label)
                one.plot(values, curve.chances[:, k], color=colour, label=name, **line)
            one.set_title(_drawn(curves[place]), fontsize="medium")
            one.set_ylim(0.0, 1.0)
            if curve.texts is None:
                one.locator_params(axis="x", nbins=4)
            else:
                one.set_xticks(values, [_drawn(text)[:12] for text in curve.texts], rotation=45)
        grid[0].legend(fontsize="small", frameon=False)
        grid[0].set_ylabel("mean chance")
        return figure


@dataclass(frozen=True)
class Importances:
    """How much every feature mattered as a run went on: a row for every one of ``rounds``.

    ``target_loss`` is that of every round of the run.
    """

    names: tuple[str, ...]
    rounds: np.ndarray
    importance: np.ndarray
    target_loss: np.ndarray

    def plot(self) -> Figure:
        """Draw the features that mattered most at any time."""
        most = self.importance.max(axis=0)
        figure = new_figure(9.0, 3.5)
        axes = figure.subplots()
        for colour, j in zip(COLOURS, np.argsort(-most, kind="stable"), strict=False):
            name = _drawn(self.names[j])
            axes.plot(self.rounds, self.importance[:, j], color=colour, label=name)
        axes.set_xlabel("round")
        axes.set_ylabel("share of chances moved")
        axes.set_ylim(bottom=0.0)
        axes.legend(fontsize="small", frameon=False)
        return figure


def explain(
    learner: Member | Committee,
    inputs: Inputs | None = None,
    *,
    names: Sequence[str] | None = None,
    labels: Sequence[object] | None = None,
    categories: Mapping[int, Sequence[str]] | None = None,
    seed: int = 0,
) -> Explanation:
    """Say how much every feature matters to a learner now, and how chances depend on it.

    Parameters
    ----------
    learner
        A learner of classes, signs, levels or tags; it is not changed.
    inputs
        Rows to explain its predictions on, of which the last 500 are used. Default: the last rows
        that it keeps, at most 64.
    names
        Names of the features. Default: their numbers.
    labels
        Names of classes or tags. Default: their numbers.
    categories
        The texts of codes 0, 1, ..., by the number of a feature that is a category.
    seed
        The seed of the choice of rows that are exchanged.

    Examples
    --------
    >>> import driftline as dl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = (X[:, 0] + 0.3 * X[:, 2] > 0.0).astype(int)
    >>> learner = dl.auto(dl.tasks.Multiclass(2), effort="fast")
    >>> _ = learner.run(X, y)
    >>> explain(learner, names=["heat", "noise", "rain"]).order
    ['heat', 'rain', 'noise']
    """
    _check_task(learner)
    rows = _rows(learner, inputs)
    count = rows.shape[1]
    names = _named(names, count, "features")
    width = chances(learner, rows[:1]).shape[1]
    labels = _named(_labels(learner) if labels is None else labels, width, "labels")
    importance = _importance(learner, rows, _seeded(seed))
    top = np.argsort(-importance, kind="stable")[:CURVES]
    texts = {} if categories is None else categories
    curves = {names[j]: _curve(learner, rows, int(j), texts.get(int(j))) for j in top}
    return Explanation(names, labels, importance, curves, _weights(learner), learner.rounds)


def explain_run(
    learner: Member | Committee,
    inputs: Inputs,
    labels: Labels = None,
    *,
    every: int = 500,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Importances:
    """Play a stream, and compute every ``every`` rounds how much every feature matters.

    It plays as :meth:`run <driftline.Learner.run>` does: explaining changes nothing in the learner.

    >>> import driftline as dl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = (np.where(np.arange(3000) < 1500, X[:, 0], X[:, 1]) > 0.0).astype(int)
    >>> told = explain_run(dl.auto(dl.tasks.Multiclass(2), effort="fast"), X, y, every=1500)
    >>> told.rounds.tolist(), told.importance.argmax(axis=1).tolist()
    ([1500, 3000], [0, 1])
    """
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise InputError(f"every must be a number of rounds, 1 or more, not {every!r:.80}")
    _check_task(learner)
    _seeded(seed)
    if labels is None and hasattr(inputs, "labels"):
        inputs, labels = inputs.inputs, inputs.labels
    rows, _ = checked_stream(learner.task, inputs, labels)
    if not isinstance(rows, DenseRows):
        raise InputError("features are exchanged in dense rows: give an array, as by .toarray()")
    if rows.rounds < 2:
        raise InputError("a run of fewer than 2 rounds has nothing to explain")
    if (bad := rows.first_bad_row()) is not None:
        refuse(rows, bad)
    named = _named(names, rows.features, "features")
    losses, rounds, told = [], [], []
    for start in range(0, rows.rounds, every):
        stop = min(start + every, rows.rounds)
        trace = learner.run(rows.array[start:stop], labels[start:stop])
        losses.append(trace.target_loss)
        if stop < 2:  # features are exchanged between rows
            continue
        seen = _rows(learner, rows.array[max(0, stop - RECENT) : stop])
        told.append(_importance(learner, seen, _seeded(seed)))
        rounds.append(learner.rounds)
    return Importances(named, np.array(rounds), np.array(told), np.concatenate(losses))


def chances(learner: Member | Committee, rows: np.ndarray) -> np.ndarray:
    """Return the chances of all labels, a row each; of tags, that each is set."""
    return np.exp(log_chances(learner, rows, vote=False))


def _drawn(name: str) -> str:
    """Return a name as text for figures: not as a formula, nor hidden from the legend."""
    made = name.replace("$", r"\$")
    return f" {made}" if made.startswith("_") else made


def _seeded(seed: object) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number, 0 or more, not {seed!r:.80}")
    return np.random.default_rng(int(seed))


def _check_task(learner: object) -> None:
    if not isinstance(learner, (Member, Committee)):
        raise InputError(f"expected a learner, such as dl.auto(task), but got {learner!r:.80}")
    if not gives_probabilities(learner.task):
        raise InputError(
            "only classes, signs, levels and tags can be explained, but the task is "
            f"{learner.task!r}"
        )


def _rows(learner: Member | Committee, inputs: Inputs | None) -> np.ndarray:
    """Return the rows to explain."""
    if inputs is None:
        kept = learner._kept_rows
        if kept is None or len(kept) < 2:
            raise InputError(
                "nothing is kept of the last rows: give some, as in explain(learner, X[-500:])"
            )
        return kept
    rows = rows_of(inputs)
    if not isinstance(rows, DenseRows):
        raise InputError("features are exchanged in dense rows: give an array, as by .toarray()")
    if rows.rounds < 2:
        raise InputError("features are exchanged between rows: give 2 or more")
    return np.array(rows.array[-MOST_ROWS:], dtype=np.float64)


def _named(given: Sequence[object] | None, count: int, what: str) -> tuple[str, ...]:
    if given is not None and not isinstance(given, Iterable):
        raise InputError(f"expected names of {what}, but got {given!r:.80}")
    made = tuple(map(str, range(count) if given is None else given))
    if len(made) != count or len(set(made)) < count:
        raise InputError(f"expected {count} different names of {what}, but got {list(made)!r:.200}")
    return made


def _labels(learner: Member | Committee) -> Sequence[object]:
    """Return the names of labels: the labels themselves, or the numbers of tags."""
    task = learner.task
    return list(task.labels.all) or range(task.geometry.tags)


def _importance(
    learner: Member | Committee, rows: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    before = chances(learner, rows)
    factor = 1.0 if learner.task.geometry.tags else 0.5 * before.shape[1]
    others = np.empty((EXCHANGES, len(rows)), dtype=np.int64)
    for partner in others:  # a cycle through all rows: no row is exchanged with itself
        cycle = generator.permutation(len(rows))
        partner[cycle] = np.roll(cycle, 1)
    made = np.empty(rows.shape[1])
    for j in range(rows.shape[1]):
        changed = np.tile(rows, (EXCHANGES, 1))
        changed[:, j] = rows[others.ravel(), j]
        after = chances(learner, changed)
        made[j] = factor * np.abs(after - np.tile(before, (EXCHANGES, 1))).mean()
    return made


def _curve(
    learner: Member | Committee, rows: np.ndarray, j: int, texts: Sequence[str] | None
) -> Curve:
    """Return the curve of a feature, at quantiles of its values or at its most frequent texts."""
    if texts is None:
        values = np.unique(np.quantile(rows[:, j], np.linspace(0.0, 1.0, VALUES)))
    else:
        codes, counts = np.unique(rows[:, j], return_counts=True)
        values = codes[np.argsort(-counts, kind="stable")[:VALUES]]
    changed = np.tile(rows, (len(values), 1))
    changed[:, j] = np.repeat(values, len(rows))
    made = chances(learner, changed).reshape(len(values), len(rows), -1)
    means = made.mean(axis=1)
    if texts is None:
        return Curve(values, means)
    order = np.argsort(means[:, np.argmax(np.ptp(means, axis=0))], kind="stable")
    named = [_text_of(int(code), texts) for code in values[order].tolist()]
    return Curve(values[order], means[order], tuple(named))


def _text_of(code: int, texts: Sequence[str]) -> str:
    """Return the text of a category."""
    if code < 0:
        return "(missing)"
    return texts[code] if code < len(texts) else "(other)"


def _weights(learner: Member | Committee) -> dict[str, float]:
    """Return the members' weights in the next vote, added up by kind."""
    if not isinstance(learner, Committee):
        return {}
    shares, names = share_of_kinds(learner.weights, [one._config() for one in learner.members])
    return dict(zip(names, shares.tolist(), strict=True))


def _in_words(curve: Curve, labels: tuple[str, ...]) -> str:
    """Say which label gains most from the lowest value to the highest, and which loses most."""
    gains = curve.chances[-1] - curve.chances[0]
    up, down = int(np.argmax(gains)), int(np.argmin(gains))
    if gains[up] < 0.02 and gains[down] > -0.02:
        return ""
    words = [f"{labels[k]} {gains[k]:+.2f}" for k in dict.fromkeys((up, down)) if gains[k] != 0.0]
    known = curve.texts or [f"{value:.4g}" for value in curve.values]
    span = f"from {known[0]} to {known[-1]}"
    return f"{span}: {', '.join(words)}"


def share_of_kinds(weights: np.ndarray, configs: Sequence[Json]) -> tuple[np.ndarray, list[str]]:
    """Return weights with a column for every member, and their names.

    If there are many members, those of one kind, with the same feature map, are added up.
    """
    if len(configs) <= MOST_MEMBERS:
        return weights, [member_name(j, config) for j, config in enumerate(configs)]
    kinds = [config.get("kind") or map_name(config.get("features")) for config in configs]
    names = list(dict.fromkeys(kinds))
    member_of = np.array([[kind == name for name in names] for kind in kinds], dtype=np.float64)
    return weights @ member_of, [f"{name} ({kinds.count(name)})" for name in names]


#: Which columns a member reads; and the map of members that are linear, but for scales.
BLOCK = "features.Block"
SCALED = ("features.Standardise", True)


def map_name(features: Json | None) -> str:
    """Return a short name of a feature map.

    >>> from driftline.features import Chain, Fourier, Ranks
    >>> map_name(Chain(Ranks(), Fourier(50)).config())
    'Fourier of Ranks'
    """
    if features is None or (features.get("type"), features.get("constant")) == SCALED:
        return "linear"
    if features["type"] == BLOCK:  # which columns are read is not what members differ in
        return "linear"
    if "map" in features:
        return map_name(features["map"])
    if features["type"] == "features.Chain":
        maps = [part for part in features["maps"] if part["type"] != BLOCK] or features["maps"][:1]
        return " of ".join(map_name(part) for part in reversed(maps))
    return str(features["type"]).removeprefix("features.")


def member_name(index: int, config: Json) -> str:
    """Return a short name of a member: its kind, or its rate and its domain."""
    if "kind" in config:
        return f"{index} {config['kind']}"
    rate = config.get("rate", {})
    kind = str(rate.get("type", "")).removeprefix("rates.")
    if kind == "Polyak" and not rate.get("monotone", True):
        kind = "free Polyak"
    again = ", restarts" if config.get("restart") else ""
    domain = config.get("domain", {}).get("diameter")
    return f"{index} {kind}" + (f", diameter {domain:g}" if domain else "") + again
