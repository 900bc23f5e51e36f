r"""A learner of structures of which only the loss is seen.

The target loss is affine in the label's encoding, :math:`\ell = \langle \rho(y), \ell^\rho(\hat y)
\rangle + c`. Where c is known without the label, a loss is one linear measurement of
:math:`\rho(y)`. With :math:`Q = \mathbb E\, \ell^\rho(\hat y) \ell^\rho(\hat y)^\top` under the
probabilities of predictions,

.. math:: \tilde\rho = Q^+ \ell^\rho(\hat y) \, (\ell - c), \qquad
    \mathbb E \tilde\rho = Q^+ Q \rho(y),

which is :math:`\rho(y)` on the span of loss encodings, if predictions span it: a share of them is
drawn from a fixed list that does (:func:`_spanning`). Gradients of Fenchel-Young losses are affine
in :math:`\rho(y)`, so that those with :math:`\tilde\rho` in its place are right on average.

With a share s for the list and :math:`Q_0` its own matrix, :math:`Q \succeq s Q_0`: so no
measurement is longer than :math:`|\ell^\rho(\hat y)| / (s \lambda)`, with :math:`\lambda` the least
positive eigenvalue of :math:`Q_0`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from driftline.bandit.learner import Unseen
from driftline.bandit.partial import Looked, Partial, Schedule, finite
from driftline.decoders import default_decoder
from driftline.domains import Ball
from driftline.errors import InputError
from driftline.features import Map, Standardise
from driftline.inputs import Rows
from driftline.learner import Ticket
from driftline.losses import Loss
from driftline.members.remembering import dense
from driftline.parts import check_number
from driftline.state.arena import Field
from driftline.tasks import Task
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Label

__all__ = ["LossOnly", "Losses"]

#: Inputs of which the squared length is not below this are refused.
LONGEST_SQ = 1e100

#: How many predictions of the list there are for each entry of an encoding, or some more.
PER_ENTRY = 4

#: Directions in which the list has less than this share of its largest singular value are none.
NONE = 1e-9


class Losses(Partial):
    """The loss of each prediction; the prediction and what it measures are kept of a round."""

    def __init__(self, loss: Loss, step: float, exploration: float, diameter: float):
        super().__init__(loss.task, loss.task.dim)
        self._step, self._share = step, exploration
        self.loss, self.decoder = default_decoder(loss)
        self.domain, self._factor = Ball(diameter), _factor(self.loss)
        self._list, self._encoded, self._basis = _spanning(loss.task)
        self._second = self._encoded.T @ self._encoded / len(self._list)
        self._least = float(np.linalg.eigvalsh(self._basis.T @ self._second @ self._basis)[0])

    @property
    def no_bound(self) -> str:
        """Why there is no bound."""
        return (
            "none is stated: gradients are right on average, with a variance that exploring bounds"
        )

    def options(self, task: Task) -> dict[str, Any]:
        """Return the loss and the settings; refuse another task than that of the loss."""
        if task != self.task:
            raise InputError(
                f"losses of {self.task!r:.80} do not measure labels of {task!r:.80}: a learner "
                "from losses can have more features, but no more classes or tags"
            )
        own = {"step": self._step, "exploration": self._share, "diameter": self.domain.diameter}
        return {"loss": self.loss, **own}

    def describe(self, learner: Any) -> str:
        """Say what is learned from, and that no bound is stated."""
        return (
            f"{learner!r}\nlearns from  the loss of each prediction; labels stay unknown\n"
            f"bound        {self.no_bound}"
        )

    # -- what is learned

    def fields(self) -> tuple[Field, ...]:
        """Count rounds, and keep weights, a row for every score."""
        rounds = Field("rounds", least=0.0, whole=True)
        return (rounds, Field("weights", ("classes", "features")))

    def check(self, memory: Any) -> None:
        """Refuse weights outside the ball."""
        if np.linalg.norm(memory.weights) > 0.5 * self.domain.diameter * (1.0 + 1e-6):
            raise InputError(f"weights must lie in {self.domain!r}")

    def scores(self, memory: Any, rows: Rows) -> np.ndarray:
        """Return the scores of rows."""
        inputs = finite(rows)
        if memory is None:
            return np.zeros((rows.rounds, self.rows))
        made: np.ndarray = inputs @ memory.weights.T
        return made

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
        """Draw predictions, and learn from what they measure."""
        (inputs,) = dense(rows).arrays(start, stop)
        for t, x in enumerate(inputs):
            if not x @ x < LONGEST_SQ:
                return t
            kept = events.kept[events.places[t]] if events.late else None
            told = kept is not None and not events.asked[t]
            if room is None:  # what was predicted has cost that much
                assert kept is not None
                self._learn(memory, x, kept[-self.rows :], labels[t])
                continue
            own = kept if told else None
            row, measured, columns = self._one(memory, x, labels[t], events.uniforms[t, 0], own)
            room["prediction"][t, : len(row)] = row
            assert room.table is not None
            room.table[:, t] = columns
            if kept is not None:
                kept[: len(row)], kept[len(row) :] = row, measured
            if kept is None or told:
                self._learn(memory, x, measured, float(columns[2]))
        return len(inputs)

    def look(self, memory: np.ndarray, rows: Rows, uniform: np.ndarray) -> Looked | None:
        """Return what would be predicted, and what it measures."""
        (inputs,) = dense(rows).arrays(0, 1)
        if not inputs[0] @ inputs[0] < LONGEST_SQ:
            return None
        made, measured, mean = self._drawn(self._theta(memory, inputs[0]), float(uniform[0, 0]))
        return Looked(made, mean, measured[np.newaxis])

    def _theta(self, memory: np.ndarray, x: np.ndarray) -> np.ndarray:
        theta: np.ndarray = memory[1:].reshape(self.rows, -1) @ x
        return theta

    def _one(
        self, memory: np.ndarray, x: np.ndarray, label: Label, uniform: float, told: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the prediction of a round as numbers, what it measures, and the round's record.

        If the round is told, both are those that were kept of it.
        """
        theta = self._theta(memory, x)
        prediction, measured, mean = self._drawn(theta, float(uniform))
        task, truth = self.task, self.task.labels.value(label)
        row = task.predictions.numbers(prediction)
        if told is not None:
            row, measured = told[: len(row)].astype(row.dtype), told[len(row) :].copy()
            prediction = task.predictions.value(row)
        value = self.loss.value_and_grad(theta, truth)[0]
        risk = float(task.encode(truth) @ mean + task.offset(truth))
        paid = task.loss(prediction, truth)
        return row, measured, np.array([value, max(0.0, risk), paid, 1.0, 0.0])

    def _drawn(self, theta: np.ndarray, uniform: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return a prediction, what it measures for each unit of loss, and the mean encoding."""
        atoms, weights = self.decoder.distribution(theta)
        share = self._share
        encoded = np.array([self.task.encode_loss(atom) for atom in atoms])
        second = (1.0 - share) * (encoded.T * weights) @ encoded + share * self._second
        mean = (1.0 - share) * weights @ encoded + share * self._encoded.mean(axis=0)
        if uniform < share:
            place = min(int(uniform / share * len(self._list)), len(self._list) - 1)
            prediction, own = self._list[place], self._encoded[place]
        else:
            left = (uniform - share) / (1.0 - share)
            place = min(int(np.searchsorted(np.cumsum(weights), left, "right")), len(weights) - 1)
            prediction, own = atoms[place], encoded[place]
        return prediction, self._measured(second, own), mean

    def _measured(self, second: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the pseudo-inverse of a matrix of the span, times a vector of it."""
        basis = self._basis
        made: np.ndarray = basis @ np.linalg.solve(basis.T @ second @ basis, basis.T @ own)
        return made

    def _learn(self, memory: np.ndarray, x: np.ndarray, measured: np.ndarray, paid: float) -> None:
        """Step along the gradient at the estimated encoding; go back into the ball."""
        task: Any = self.task
        theta = self._theta(memory, x)
        known = task.labels.value(task.labels.check(task.geometry.top_label(theta)))
        _, gradient = self.loss.value_and_grad(theta, known)
        guess = measured * (paid - task.constant_offset)
        gradient = gradient + self._factor * (task.encode(known) - guess)
        weights = memory[1:].reshape(self.rows, -1) - self._step * np.outer(gradient, x)
        norm, radius = float(np.linalg.norm(weights)), 0.5 * self.domain.diameter
        made = weights if norm <= radius else weights * (radius / norm)
        memory[:] = np.r_[memory[0] + 1.0, made.ravel()]  # both, or none after an interrupt

    # -- what is seen, and kept until then

    def seen(self, task: Task, ticket: Ticket, label: Label, loss: float | None) -> float:
        """Return the loss of the prediction."""
        if loss is None:
            truth = task.labels.value(task.labels.check(label))
            return float(task.loss(ticket.prediction, truth))
        most = task.largest_loss
        if not 0.0 <= loss <= most * (1.0 + 1e-9):  # losses are rounded
            raise InputError(f"a loss must lie between 0 and {most:g}, but is {loss!r:.80}")
        return loss

    def kept_size(self, labels: CheckedLabels) -> int:
        """Return room for a prediction, and for what it measures."""
        return self.task.predictions.width(labels) + self.rows

    def check_kept(self, kept: np.ndarray, label: Label) -> None:
        """Refuse what cannot be a prediction, and what that measures."""
        count = len(kept) - self.rows
        prediction = kept[:count].astype(self.task.predictions.dtype)
        if (prediction != kept[:count]).any():
            raise InputError(f"a prediction has whole numbers, not {kept[:count]!r:.80}")
        labels = self.task.labels
        predicted = labels.value(labels.check(self.task.predictions.value(prediction)))
        self._check_measured(kept[count:], predicted)

    def kept_of(self, ticket: Ticket, label: Label) -> np.ndarray:
        """Return what the ticket's prediction measures."""
        labels, measured = self.task.labels, ticket.checked_means(1)[0]
        self._check_measured(measured, labels.value(labels.check(ticket.prediction)))
        return measured

    def _check_measured(self, measured: np.ndarray, prediction: Any) -> None:
        """Refuse what a prediction cannot have measured."""
        own = self.task.encode_loss(prediction)
        most = float(np.linalg.norm(own)) / (self._share * self._least)
        if measured.shape != own.shape or np.linalg.norm(measured) > most * (1.0 + 1e-6):
            raise InputError("it is not said what the prediction measures")


class LossOnly(Unseen):
    r"""Rankings, matchings, sets, levels and tags, from the loss of each prediction alone.

    ``tell(ticket, loss=0.25)`` says what a prediction cost; ``run`` and ``step`` take labels, and
    use of each only that. Rounds are played in plain Python. No bound is stated for a run: with a
    share of :math:`T^{-1/3}` of random predictions the expected excess over the comparator's
    surrogate loss grows as :math:`T^{2/3}` (Shibukawa et al., 2025).

    Parameters
    ----------
    loss
        A loss whose gradient is affine in the label's encoding, of a task with a constant offset:
        ``dl.losses.FenchelYoung(task, dl.regularizers.Quadratic())``, say.
    step
        The size of steps.
    exploration
        The share of predictions that are drawn from the list.
    diameter
        That of the ball in which weights lie.
    features
        A map of inputs. Default: every feature is standardised.
    seed
        The seed of the random numbers that predictions are drawn by.

    Examples
    --------
    >>> import driftline as dl
    >>> stream = dl.streams.Planted(dl.tasks.LabelRanking(5), rounds=1500, flips=0, seed=0)
    >>> learner = LossOnly(dl.losses.FenchelYoung(stream.task, dl.regularizers.Quadratic()))
    >>> trace = learner.run(stream)
    >>> bool(trace.target_loss[-500:].mean() < 0.7 * trace.target_loss[:100].mean())
    True
    >>> ticket = learner.ask(stream.inputs[0])
    >>> learner.tell(ticket, loss=0.5)
    """

    _fixed = replace(
        Unseen._fixed,
        feedback="losses",
        no_theorem="only the loss of what was predicted is seen",
    )

    def __init__(
        self,
        loss: Loss,
        *,
        step: float = 0.03,
        exploration: float = 0.1,
        diameter: float = 20.0,
        features: Map | None = Standardise(),  # noqa: B008 (frozen)
        seed: int | None = 0,
    ):
        if not isinstance(loss, Loss):
            raise InputError(f"expected a loss, such as FenchelYoung(task), but got {loss!r:.80}")
        task: Any = loss.task
        if task.layout.ragged or not hasattr(task, "constant_offset"):
            raise InputError(
                "the loss of a prediction is a measurement of the label where its offset is "
                f"constant and the input one vector, which {task!r:.80} does not have: expected a "
                "task such as dl.tasks.LabelRanking(4)"
            )
        step = check_number("step", step, 1e-9, 1e6)
        exploration = check_number("exploration", exploration, 1e-6, 1.0)
        super().__init__(Losses(loss, step, exploration, diameter), features, seed)


def _spanning(task: Task) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Return predictions that span all, their loss encodings, and a basis of these.

    Those of random directions may miss some. In a random direction away from their span every loss
    encoding outside of it has a part: so the least or the largest of these parts shows one, or that
    there is none.
    """
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((PER_ENTRY * task.dim, task.dim))
    found = [task.top_prediction(row) for row in directions]
    encoded = np.array([task.encode_loss(prediction) for prediction in found])
    while True:
        _, sizes, rows = np.linalg.svd(encoded, full_matrices=False)
        basis = rows[sizes > NONE * sizes[0]].T
        away = rng.standard_normal(task.dim)
        away -= basis @ (basis.T @ away)
        ends = [task.best_prediction(away), task.best_prediction(-away)]
        parts = [abs(float(task.encode_loss(end) @ away)) for end in ends]
        if max(parts) <= NONE * sizes[0] * np.linalg.norm(away) or basis.shape[1] == task.dim:
            return found, encoded, basis
        found.append(ends[int(np.argmax(parts))])
        encoded = np.vstack([encoded, task.encode_loss(found[-1])])


def _factor(loss: Loss) -> float:
    """Return by how much the gradient falls with the label's encoding; refuse other losses."""
    task: Any = loss.task
    rng = np.random.default_rng(0)
    factors = []
    for _ in range(4):
        theta = rng.standard_normal(task.dim)
        one, two = task.geometry.top_label(theta), task.geometry.top_label(-theta)
        moved = task.encode(two) - task.encode(one)
        if not moved.any():
            continue
        change = loss.value_and_grad(theta, one)[1] - loss.value_and_grad(theta, two)[1]
        factor = float(change @ moved / (moved @ moved))
        if np.abs(change - factor * moved).max() > 1e-6 * (1.0 + abs(factor)):
            break
        factors.append(factor)
    if not factors or np.ptp(factors) > 1e-6 * (1.0 + abs(factors[0])):
        raise InputError(
            f"the gradient of {loss!r:.80} is not affine in the label's encoding: expected a loss "
            "such as dl.losses.FenchelYoung(task, regularizer)"
        )
    return factors[0]
