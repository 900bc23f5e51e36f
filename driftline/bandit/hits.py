r"""A learner that sees only whether its prediction was right.

Several policies (:class:`~driftline.bandit.Policy`) have weights of their own and one draw in
common: see :mod:`driftline.bandit.kernel`. For *every* unbiased policy i, whatever its weight in
the draw is, labels and comparators that do not depend on the draws, and steps :math:`\eta` that
never grow,

.. math:: \mathbb E \sum_t \ell_t \le F_T + \frac{D}{\eta_T} \Bigl(\frac D2 + P_T\Bigr)
    + \mathbb E \sum_t s^i_t, \qquad
    s^i_t = \max_y \Bigl[1 - p_t(y) + \frac{c^i_y}{p_t(y)} - L^i_y\Bigr],

with p the probabilities of the draw and c as in :mod:`driftline.decoders.exploring`: on average a
gradient over :math:`p_y` is the gradient, and half a step times its square is :math:`c_y / p_y`.
The slack is known before any feedback, and is in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftline.bandit.kernel import bandit
from driftline.bandit.learner import Unseen
from driftline.bandit.mix import Mix
from driftline.bandit.partial import Looked, Partial, Schedule, are_chances, finite
from driftline.bandit.policy import DEFAULT, Policy
from driftline.engines import warn_without_numba
from driftline.errors import InputError
from driftline.features import Map, Standardise
from driftline.inputs import Rows
from driftline.learner import Ticket, is_hit
from driftline.losses import Logistic
from driftline.members.remembering import dense
from driftline.state.arena import Field
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label

__all__ = ["Bandit", "Hits"]

NO_LABELS, NO_TABLE, NOTHING = np.zeros((0, 1), np.int64), np.zeros((0, 0)), np.zeros(0)


class Hits(Partial):
    """Whether the prediction was right: after a miss the label is -1.

    The prediction, its probability by each policy, and those of all classes are kept of a round.
    """

    def __init__(self, task: Task, policies: Sequence[Policy]):
        super().__init__(task, task.dim)
        self.mix, self.loss = Mix(policies), Logistic(task)
        self.policies = self.mix.policies
        self.carriers = [i for i, policy in enumerate(policies) if policy.unbiased]
        self._constants = np.array([task.dim, len(policies), *self.mix.constants], np.float64)

    @property
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""
        return "" if self.carriers else "every policy is biased (clip, or steps after misses)"

    def options(self, task: Task) -> dict[str, Any]:
        """Return the task and the policies."""
        return {"task": task, "policies": self.policies}

    def describe(self, learner: Any) -> str:
        """Say what is learned from, and which bound there is."""
        count = len(self.carriers)
        lines = [
            f"bandit feedback: {len(self.policies)} policies with one draw, {self.task!r}",
            "learns from  whether the prediction was right; after a miss the label stays unknown",
        ]
        if count:
            lines += [
                f"bound        of the expected loss, by each of {count} unbiased policies: F_T + "
                "D (D/2 + P_T) / step + the slack in the trace",
                "             for labels and comparators that do not depend on the draws",
            ]
        else:
            lines.append(f"bound        none: {self.no_bound}")
        return "\n".join([*lines, *self.mix.words(learner.shares)])

    # -- what is learned

    def fields(self) -> tuple[Field, ...]:
        """Return the fields of the policies."""
        return self.mix.fields()

    def check(self, memory: Any) -> None:
        """Refuse weights that no rounds can lead to."""
        self.mix.check(memory)

    def scores(self, memory: Any, rows: Rows) -> np.ndarray:
        """Return logarithms of probabilities: means of the policies' own, without exploring."""
        inputs = finite(rows)
        if memory is None:
            return np.full((rows.rounds, self.rows), -np.log(self.rows))
        theta = np.einsum("ikj,tj->itk", memory.weights, inputs)
        theta -= theta.max(axis=2, keepdims=True)
        chances = np.exp(theta)
        chances /= chances.sum(axis=2, keepdims=True)
        made: np.ndarray = np.log(np.maximum(np.tensordot(memory.shares, chances, axes=1), 1e-300))
        return made

    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the logistic losses of scores, in one column."""
        shifted = theta - theta.max(axis=1, keepdims=True)
        true = np.take_along_axis(shifted, np.asarray(labels), axis=1)
        made: np.ndarray = np.log2(np.exp(shifted).sum(axis=1, keepdims=True)) - true / np.log(2.0)
        return made

    # -- rounds

    def room(self, labels: CheckedLabels, audit: bool = False) -> Batch:
        """Return columns for rounds, with the chance of what was predicted."""
        return super().room(labels, audit).beside("chance", np.empty(len(labels)))

    def play(
        self,
        memory: np.ndarray,
        rows: Rows,
        start: int,
        stop: int,
        labels: CheckedLabels,
        events: Schedule,
        room: Batch | None,
    ) -> int:
        """Draw predictions, and learn from whether they were right."""
        (inputs,) = dense(rows).arrays(start, stop)
        written: tuple[Any, ...]
        if room is None:
            made = np.empty((stop - start, 1), np.int64)
            written = (np.zeros((5, 0)), NOTHING, NO_TABLE, NO_TABLE, NO_TABLE, made)
        else:
            own = [room.columns.get(name, NO_TABLE) for name in ("slack", "noise", "inverse")]
            written = (room.table, room["chance"], *own, room["prediction"])
        given = (inputs, np.asarray(labels), events.uniforms, *events[:3], self._constants)
        return int(bandit.compiled(*given, memory, self._space(), True, *written))

    def _space(self) -> np.ndarray:
        """Return room for five numbers of every policy and class, and two of every class."""
        return np.empty((5 * len(self.policies) + 2) * self.rows)

    def look(self, memory: np.ndarray, rows: Rows, uniform: np.ndarray) -> Looked | None:
        """Return what would be drawn, with the chances of classes: by all policies, and by each."""
        (inputs,) = dense(rows).arrays(0, 1)
        space, prediction = self._space(), np.empty((1, 1), np.int64)
        given = (inputs, NO_LABELS, *_one(uniform), self._constants, memory, space, False)
        if not bandit.compiled(*given, NO_TABLE, NOTHING, NO_TABLE, NO_TABLE, NO_TABLE, prediction):
            return None
        size = len(self.policies) * self.rows
        chances = space[4 * size : 5 * size].reshape(-1, self.rows)
        mixed = space[5 * size : 5 * size + self.rows]
        return Looked(int(prediction[0, 0]), 1.0 - mixed, np.vstack([mixed, chances]))

    # -- what is seen, and kept until then

    def seen(self, task: Task, ticket: Ticket, label: Label, loss: float | None) -> np.ndarray:
        """Return the label after a hit, and -1 after a miss."""
        predicted = task.labels.check(ticket.prediction)
        if loss is None:
            hit = bool((task.labels.check(label) == predicted).all())
        else:
            hit = is_hit(loss)
        return predicted if hit else np.array([-1])

    def kept_size(self, labels: CheckedLabels) -> int:
        """Return room for a prediction, its chance by each policy, and those of all classes."""
        return 1 + len(self.policies) + self.rows

    def check_kept(self, kept: np.ndarray, label: Label) -> None:
        """Refuse what cannot be chances of a prediction."""
        predicted, chances = kept[0], kept[1:]
        good = predicted in range(self.rows) and are_chances(chances)
        if not good or not chances[len(self.policies) + int(predicted)] > 0.0:
            raise InputError("there are no probabilities with which the prediction was drawn")

    def kept_of(self, ticket: Ticket, label: Label) -> np.ndarray:
        """Return what a ticket has kept; it may be from before there were new classes."""
        means = ticket.checked_means(1 + len(self.policies))
        predicted = int(self.task.labels.check(ticket.prediction)[0])
        if not predicted < means.shape[1] <= self.rows:
            raise InputError(f"the ticket has no probability of its prediction, {predicted}")
        kept = np.zeros(self.kept_size([label]))
        own = np.r_[predicted, means[1:, predicted], means[0]]
        kept[: len(own)] = own
        self.check_kept(kept, label)
        return kept


def _one(uniform: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the random number of a round, and that nothing is kept of it."""
    events = Schedule.at_once(uniform)
    return (events.uniforms, *events[:3])


class Bandit(Unseen):
    """Classes from bandit feedback: after a miss the label stays unknown.

    ``run`` and ``step`` take labels, and use of each only whether the prediction was right.
    ``tell(ticket, loss=1.0)`` says that it was wrong. Two classes need no such learner, since a
    miss names the label: any other learner of two classes takes losses, too.

    Parameters
    ----------
    task
        Three classes or more.
    policies
        What is mixed; with one policy nothing is. Default: :data:`driftline.bandit.DEFAULT`.
    features
        A map of inputs. Default: every feature is standardised.
    seed
        The seed of the random numbers that predictions are drawn by.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.DigitTriples(rounds=4000, flips=3, seed=0)
    >>> learner = Bandit(stream.task)
    >>> trace = learner.run(stream)
    >>> bool(trace.target_loss.mean() < 0.15)
    True
    >>> ticket = learner.ask(stream.inputs[0])
    >>> learner.tell(ticket, loss=1.0)
    """

    _fixed = replace(
        Unseen._fixed,
        feedback="bandit",
        no_theorem="what exploring costs is known when predictions are made, not before",
    )

    def __init__(
        self,
        task: Task,
        policies: Sequence[Policy] = DEFAULT,
        *,
        features: Map | None = Standardise(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        if not isinstance(task, Task) or task.answers is not task or task.geometry.classes < 3:
            raise InputError(
                "bandit feedback is for three classes or more, such as dl.tasks.Multiclass(3), not "
                f"for {task!r:.80}: with two, a miss names the label, and every learner takes "
                "tell(ticket, loss=...); tags, sets and lists have feedback='clicks'"
            )
        if not task.zero_one:
            raise InputError(f"a bandit sees hits and misses, but {task!r:.80} has other losses")
        warn_without_numba()
        super().__init__(Hits(task, policies), features, seed)
