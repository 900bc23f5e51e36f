"""A learner that sees clicks: judgements of what was shown, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from driftline.bandit.clicks_kernel import clicks
from driftline.bandit.learner import Unseen
from driftline.bandit.mix import Mix
from driftline.bandit.partial import Looked, Partial, Schedule, are_chances, finite
from driftline.bandit.policy import Policy
from driftline.engines import warn_without_numba
from driftline.errors import InputError
from driftline.features import Map, Standardise
from driftline.inputs import Rows
from driftline.learner import FULL, Ticket
from driftline.members.remembering import dense
from driftline.state.arena import Field
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label

__all__ = ["Clicks", "Judgements"]

NO_TABLE, NO_STARTS = np.zeros((0, 0)), np.zeros(0, np.int64)


def _quick(step: float, decaying: bool = False) -> Policy:
    return Policy(step, decaying, 0.02, clip=3.0, diameter=100.0)


#: What is mixed by default: policies that explore little, and some that a theorem holds for.
POLICIES = (
    _quick(0.3),
    _quick(1.0),
    _quick(3.0, decaying=True),
    _quick(10.0, decaying=True),
    Policy(0.03),
    Policy(0.3),
    Policy(1.0, decaying=True),
)


class Called(NamedTuple):
    """How many rounds were played, the places of shown items, and their chances.

    ``own`` are the chances by each policy, of the last round.
    """

    played: int
    shown: np.ndarray
    chances: np.ndarray
    own: np.ndarray


class Judgements(Partial):
    """Judgements of the items that were shown; the label of others is not read.

    The place of every item, 0 if it is not shown, the probability of showing it, and that by each
    policy are kept of a round.
    """

    def __init__(self, task: Task, policies: Sequence[Policy]):
        super().__init__(task, task.layout.weight_rows)
        self.mix = Mix(policies, math.sqrt(self.rows))
        self.policies = self.mix.policies
        #: How many items are shown, 0 for any number.
        self._most = 0 if task.geometry.tags else _shown(task)
        self._several = task.layout.ragged
        if not self._most:
            self.carriers = [i for i, policy in enumerate(policies) if policy.clip is None]
            self.parts = self.rows
        sizes = [len(policies), self.rows, self._most, float(getattr(task, "highest", 1))]
        self._constants = np.array([*sizes, *self.mix.constants])

    @property
    def no_bound(self) -> str:
        """Why no policy has a bound, "" if one has."""
        if self._most:
            return "none is stated for sets and lists"
        return "" if self.carriers else "every policy is biased (clip)"

    def options(self, task: Task) -> dict[str, Any]:
        """Return the task and the policies."""
        return {"task": task, "policies": self.policies}

    def describe(self, learner: Any) -> str:
        """Say what is learned from, and which bound there is."""
        bound = self.no_bound
        if self.carriers:
            bound = (
                f"of the expected loss, by each of {len(self.carriers)} policies without a clip: "
                "F_T + D (D/2 + P_T) / (tags x step) + the slack in the trace"
            )
        lines = [
            f"clicks: {len(self.policies)} policies with one draw, {self.task!r}",
            "learns from  judgements of the items that were shown; others stay unknown",
            f"bound        {bound}",
        ]
        return "\n".join([*lines, *self.mix.words(learner.shares)])

    # -- what is learned

    def fields(self) -> tuple[Field, ...]:
        """Return the fields of the policies."""
        return self.mix.fields()

    def check(self, memory: Any) -> None:
        """Refuse weights that no rounds can lead to."""
        self.mix.check(memory)

    def scores(self, memory: Any, rows: Rows) -> np.ndarray:
        """Return the mean scores of tags, or of a set's items."""
        if self._several:
            raise InputError("queries have as many scores as documents: ask for one at a time")
        inputs = finite(rows)
        if memory is None:
            return np.zeros((rows.rounds, self.rows))
        theta = np.einsum("ikj,tj->itk", memory.weights, inputs)
        made: np.ndarray = np.tensordot(memory.shares, theta, axes=1)
        return made

    def diameter(self, policy: Policy) -> float:
        """Return the diameter of the ball in which the weights of a policy lie."""
        return self.mix.diameter(policy)

    def surrogate_losses(self, theta: np.ndarray, labels: CheckedLabels) -> np.ndarray:
        """Return the logistic losses of scores, of every tag."""
        made: np.ndarray = np.logaddexp2(0.0, np.where(labels, -theta, theta) / np.log(2.0))
        return made

    def guess_loss(self, labels: CheckedLabels) -> float:
        """Return the mean target loss of a guess; of sets and lists, of any items in any order."""
        if not self._most:
            return super().guess_loss(labels)
        top = self._constants[3]
        return float(np.mean([1.0 - np.mean(label) / top for label in labels]))

    # -- rounds

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
        """Show items, and learn from those that were shown."""
        table: Any = np.zeros((5, 0))
        own = [NO_TABLE] * 3
        if room is not None:
            names = "slack", "noise", "inverse"
            table, own = room.table, [room.columns.get(name, NO_TABLE) for name in names]
        made = self._call(memory, rows, start, stop, _flat(labels), events, (table, *own))
        if room is not None and made.played == stop - start:
            sizes = [len(label) for label in labels]
            for t, end in enumerate(np.cumsum(sizes).tolist()):
                prediction = self._prediction_of(made.shown[end - sizes[t] : end])
                room["prediction"][t, : len(prediction)] = prediction
        return made.played

    def look(self, memory: np.ndarray, rows: Rows, uniform: np.ndarray) -> Looked | None:
        """Return what would be shown, and the chances of items."""
        events = Schedule.at_once(uniform)
        made = self._call(memory, rows, 0, 1, NO_STARTS, events, (NO_TABLE,) * 4)
        if not made.played:
            return None
        means = np.vstack([made.chances, made.shown.astype(np.float64), made.own])
        return Looked(self._prediction_of(made.shown), made.chances, means)

    def _call(
        self,
        memory: np.ndarray,
        rows: Rows,
        start: int,
        stop: int,
        labels: np.ndarray,
        events: Schedule,
        written: tuple[np.ndarray, ...],
    ) -> Called:
        """Call the kernel, which learns if there are labels."""
        if self._several:
            inputs, starts = rows.arrays(start, stop)
            items, largest = int(starts[-1]), int(np.diff(starts).max())
        else:
            (inputs,), starts = dense(rows).arrays(start, stop), NO_STARTS
            items, largest = (stop - start) * self.rows, self.rows
        task: Any = self.task
        discounts = np.array(task.discounts(largest) if self._most else np.zeros(1))
        shown, chances = np.zeros(items, np.int64), np.empty(items)
        given = (inputs, starts, labels, events.uniforms, *events[:3], self._constants, discounts)
        count = len(self.policies)
        space = np.empty((2 * count + 6) * largest)
        rest = (memory, space, len(labels) > 0, *written, shown, chances)
        played = clicks.compiled(*given, *rest)
        own = space[count * largest : 2 * count * largest].reshape(count, largest)
        return Called(int(played), shown, chances, own)

    def _prediction_of(self, shown: np.ndarray) -> np.ndarray:
        """Return a prediction as the task has it, from the places of shown items."""
        if not self._most:
            return shown
        places = np.where(shown > 0, len(shown) + 1 - shown, 0)
        return np.asarray(self.task.best_prediction(places))

    # -- what is seen, and kept until then

    def seen(self, task: Task, ticket: Ticket, label: Label, loss: float | None) -> Label:
        """Return the checked label."""
        return FULL.seen(task, ticket, label, loss)

    def kept_size(self, labels: CheckedLabels) -> int:
        """Return room for the place of every item, and its chances by all and by each policy."""
        return (2 + len(self.policies)) * max(len(label) for label in labels)

    def check_kept(self, kept: np.ndarray, label: Label) -> None:
        """Refuse what cannot be places and chances of items."""
        shown, *chances = kept.reshape(len(label), -1).T
        places = shown.astype(np.int64)
        good = (places == shown).all() and ((places >= 0) & (places <= len(label))).all()
        if not good or not are_chances(np.array(chances)):
            raise InputError("it is not said which items were shown, by which probability")

    def kept_of(self, ticket: Ticket, label: Label) -> np.ndarray:
        """Return what a ticket has kept."""
        means = ticket.checked_means(2 + len(self.policies))
        if means.shape[1] != len(label):
            raise InputError(f"the ticket is for {means.shape[1]} items, not {len(label)}")
        kept = np.vstack([means[1], means[0], means[2:]]).T.ravel()
        self.check_kept(kept, label)
        return kept


class Clicks(Unseen):
    r"""Tags, sets and ranked lists, from judgements of the items that were shown.

    - Tags (:class:`~driftline.tasks.Multilabel`): each tag is shown or not, and a shown one is said
      to be right or wrong. The target loss is that of the task. For every policy without a clip,
      in expectation,

      .. math:: \mathbb E \sum_t \ell_t \le F_T + \frac{D}{d\, \eta_T} \Bigl(\frac D2 + P_T\Bigr)
          + \mathbb E \sum_t s_t

      for d tags, with F_T in the mean logistic loss of all tags, D times the root of d in place of
      the policy's diameter, and the slack s in the trace.
    - Sets of k (:class:`~driftline.tasks.PrecisionAtK`) and lists of which the first ``cutoff``
      places are seen (:class:`~driftline.tasks.NDCG`): shown items have their relevance said. How
      many others were relevant is not seen, and the target loss that is recorded does not need it:
      one minus the gain of what was shown, over the largest that there could be. No bound is stated.

    Labels have an entry for every item; those of items that were not shown are not read, and may be
    anything, such as 0 for "no click".

    Parameters
    ----------
    task
        What is shown.
    policies
        What is mixed; ``misses`` have no meaning here. Default: seven of different steps.
    features
        A map of inputs. Default: every feature is standardised. Documents of queries have this
        default, or None.
    seed
        The seed of the random numbers that items are shown by.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.Planted(dl.tasks.Multilabel(4), rounds=4000, flips=1, seed=0)
    >>> trace = Clicks(stream.task).run(stream)
    >>> bool(trace.target_loss.mean() < 0.15)
    True
    """  # noqa: E501

    _fixed = replace(
        Unseen._fixed,
        feedback="clicks",
        no_theorem="what exploring costs is known when items are shown, not before",
    )

    def __init__(
        self,
        task: Task,
        policies: Sequence[Policy] = POLICIES,
        *,
        features: Map | None = Standardise(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        graded = isinstance(task, Task) and task.labels.graded
        graded = graded and not getattr(task, "exponential", False)
        if not isinstance(task, Task) or not (task.geometry.tags or graded):
            raise InputError(
                "clicks are for tags, sets and lists, such as dl.tasks.Multilabel(5), "
                f"dl.tasks.PrecisionAtK(3) or dl.tasks.NDCG(1, cutoff=5), not for {task!r:.80}"
            )
        several = task.layout.ragged
        if several and features is not None and not isinstance(features, Standardise):
            raise InputError("documents are standardised, or left as they are: give no other map")
        warn_without_numba()
        super().__init__(Judgements(task, policies), features, seed)


def _flat(labels: CheckedLabels) -> np.ndarray:
    """Return labels one after the other."""
    return np.ascontiguousarray(np.concatenate([np.ravel(label) for label in labels]), np.int64)


def _shown(task: Any) -> int:
    """Return how many items of a list are shown."""
    if task.shown is None:
        raise InputError(
            f"all items of {task!r:.80} are shown, so that nothing is hidden: give a cutoff, or "
            "learn from labels"
        )
    return int(task.shown)
