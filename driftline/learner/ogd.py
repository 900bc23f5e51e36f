"""Online gradient descent: predict, pay, learn, round after round."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftline.comparators.checking import Comparator, check_comparator
from driftline.decoders import Decoder, default_decoder
from driftline.detectors import Detector
from driftline.domains import Ball, Domain
from driftline.engines import Asked, Block, CompiledEngine, Parts, engine_for
from driftline.errors import InputError
from driftline.features import Map
from driftline.features.base import Mapped
from driftline.inputs import DenseRows, Rows, SparseRows, cast, float_type, refuse, rows_of
from driftline.kernels import COMPILES, MISSING, TRACE_COLUMNS, WATCHED_COLUMNS
from driftline.learner.facts import Facts
from driftline.learner.member import Growth, Member, Round, round_rows
from driftline.losses import Loss
from driftline.parts import (
    Part,
    check_flag,
    check_plain,
    check_sizes,
    from_config,
    largest_number,
    substituted,
)
from driftline.rates import Polyak, Rate
from driftline.regret import Tally, Watch, mark_idle
from driftline.state import Checkpoint, State
from driftline.tasks import Distribution, Task
from driftline.theorem import AprioriBound, apriori_bound, describe, no_theorem
from driftline.trace import Batch
from driftline.typing import CheckedLabels, Input, Inputs, Json, Label, Saved

__all__ = ["OGD"]


def _check_kind(part: object, kind: type, words: str) -> None:
    """Refuse a part that is not of the expected kind."""
    if not isinstance(part, kind):
        raise InputError(f"expected {words}, but got {part!r:.80}")


#: No step of compiled parts overflows while inputs have no entry above 1e12, and parts no larger
#: constant than this: the largest product, of five constants and three norms, stays below 1e140.
LARGEST_CONSTANT = 1e9

#: What changes as a learner learns that keeps no account.
UNWATCHED = (*Member._learned, "engine")

#: The uniform number of rounds that are learned without predicting, or predicted without drawing;
#: and many of them, which nobody writes to.
MIDDLE, MIDDLES = np.full((1, 1), 0.5), np.full((1 << 10, 1), 0.5)


def _middle(count: int) -> np.ndarray:
    """Return the uniform numbers of rounds in which nothing is drawn."""
    return MIDDLES[:count] if count <= len(MIDDLES) else np.full((count, 1), 0.5)


class OGD(Member):
    """Linear scores, a surrogate loss, a decoder, and gradient steps inside a domain.

    Parameters
    ----------
    loss, decoder
        The surrogate that is descended, and how scores become predictions; the decoder was
        made for this loss. Default: :func:`~driftline.decoders.default_decoder`, which is the
        gap-optimal one for classes.
    rate
        The rule for step sizes. Default: the Polyak-style rate of the paper.
    domain
        Where weights may lie. Default: a ball of diameter 20.
    initial
        First weights, one row per score. Default: zeros.
    intercept
        Whether every input has a constant 1 appended; its weights are the last column.
    restart
        A detector such as :class:`~driftline.detectors.Cusum`, which is told the expected target
        loss of every round: at an alarm the learner starts again from weights of 0. Default:
        never.
    seed
        The seed of the random numbers that predictions are drawn by.
    features
        A map of inputs, such as ``dl.features.Hats(12)``: the learner is linear in mapped rows,
        and so are comparators. Default: none.
    dtype
        The type of the weights. With ``float32`` they and the inputs take half the room, and
        wide rounds half the time; inputs of this type are not copied. All else in a round stays
        in double precision: scores, losses, steps, the trace. Losses then come out as in
        ``float64`` to about 1e-6; so do certificates, whose inner products and norms are
        followed from exact steps while the weights are rounded. Inputs shorter than 1e-19 count
        as 0, and those longer than 1e19 are refused. For rows of inputs and parts with kernels.

    Examples
    --------
    >>> import driftline as dl
    >>> learner = OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)))
    >>> learner.step([0.6, 0.8], label=2).loss.__round__(3)
    1.585
    >>> learner.weights.shape
    (3, 2)
    """

    _fixed = Facts(steps=True)
    _scratch = ("_columns", "_prediction")

    def __init__(
        self,
        loss: Loss,
        decoder: Decoder | None = None,
        rate: Rate | None = None,
        domain: Domain | None = None,
        *,
        initial: npt.ArrayLike | None = None,
        intercept: bool = False,
        restart: Detector | None = None,
        features: Map | None = None,
        seed: int | None = 0,
        dtype: npt.DTypeLike = np.float64,
    ):
        _check_kind(loss, Loss, "a loss, such as dl.losses.Logistic(task)")
        if decoder is None:
            loss, decoder = default_decoder(loss)
        rate = Polyak() if rate is None else rate
        domain = Ball(20.0) if domain is None else domain
        _check_kind(decoder, Decoder, "a decoder, such as dl.decoders.Argmax(loss)")
        _check_kind(rate, Rate, "a rate, such as dl.rates.Polyak()")
        _check_kind(domain, Domain, "a domain, such as dl.domains.Ball(20.0)")
        check_flag("intercept", intercept)
        if decoder.loss != loss:
            raise InputError(
                f"the decoder was made for {decoder.loss!r}, but the learner has {loss!r}"
            )
        if restart is not None and not isinstance(restart, Detector):
            raise InputError(f"restart must be a detector such as Cusum(), not {restart!r}")
        if features is not None and initial is not None:
            raise InputError("first weights are for rows without a map: leave one of both out")
        task = decoder.task
        super().__init__(task, seed, features)
        self.loss, self.decoder, self.rate, self.domain = loss, decoder, rate, domain
        self.parts = Parts(loss, decoder, rate, domain, bool(intercept), restart)
        for part in self.parts:
            if isinstance(part, Part):
                check_sizes(part)
        rate.check(self.parts.setting)
        self.engine = engine_for(self.parts)(self.parts, dtype=self._check_dtype(dtype))
        self._watch: Watch | None = None
        self._tally: Tally | None = None
        self._names: tuple[str, ...] = TRACE_COLUMNS
        self._columns = np.empty((round_rows(task), 1))  # of a single round
        if not task.layout.ragged and task.predictions.size < 1:
            raise InputError(f"{task!r} must say its prediction_size, 1 or more")
        self._prediction = task.predictions.rows(1, task.predictions.size)
        self._certain = decoder.deterministic  # asked in every round
        self._fixed = self._lasting_facts()
        if initial is not None:
            self.engine.restore(self.engine.started(self._check_initial(initial)))

    @property
    def _learned(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of what learning changes; an account against a comparator is among them."""
        return UNWATCHED if self._watch is None else (*UNWATCHED, "_watch", "_tally")

    # -- rounds

    def learn(self, x: Input, label: Label) -> Round:
        """Learn from one round without predicting: no ticket is used up.

        The prediction and target loss in the result are those of a draw at the median.
        """
        row, checked = self._row(x), self.task.labels.check(label)
        with self._turn.lock:
            self._turn.check()
            prediction, columns = self._play_one(row, checked, MIDDLE)
            return Round(self.task.predictions.value(prediction), *columns[:5].tolist())

    def watch(self, comparator: Comparator | None) -> Tally:
        """Keep account against a comparator from now on, in constant memory.

        Its weights are counted from the next round on: those of its round 0 meet that one. The
        sums are in the tally that is returned; :func:`~driftline.certify` makes a certificate
        of the learner itself from them, at any time and without a trace. None ends the account.
        """
        if comparator is not None:
            check_comparator(comparator)
        with self._turn.lock:
            self._turn.check()
            self._watch = None if comparator is None else Watch(self.engine, comparator)
            self._tally = tally = Tally(self.task.largest_loss)
            self._names = TRACE_COLUMNS if comparator is None else WATCHED_COLUMNS
            self._columns = np.empty((round_rows(self.task), 1))
            return tally

    @property
    def tally(self) -> Tally:
        """The account against the comparator that :meth:`watch` was given."""
        if self._watch is None or self._tally is None:
            raise InputError("the learner keeps no account: give it a comparator by watch()")
        return self._tally

    # -- looking

    def scores(self, x: Input) -> np.ndarray:
        """Return the scores of an input."""
        row = self._row(x)
        with self._turn.lock:
            self._check_features(row)
            mapped = self._mapped(row)
            if mapped.first_bad_row(self.engine.dtype) is not None:
                refuse(mapped, 0)
            return self.engine.scores(mapped, 0)

    def score_rows(self, inputs: Inputs) -> np.ndarray:
        """Return the scores of many inputs, a row each: an array or a CSR matrix of them.

        By products of matrices, whose last bits may differ from those of :meth:`scores`.
        """
        if self.task.layout.ragged:
            raise InputError(f"only plain rows can be scored together, not those of {self.task!r}")
        rows = inputs if isinstance(inputs, (DenseRows, SparseRows)) else rows_of(inputs)
        self._check_features(rows)
        with self._turn.lock, np.errstate(over="ignore", invalid="ignore"):
            scores = self._all_scores(rows)
        if not np.isfinite(scores).all() and (bad := rows.first_bad_row()) is not None:
            refuse(rows, bad)
        return scores

    def _all_scores(self, rows: Mapped) -> np.ndarray:
        """Return the scores of all rows; of mapped ones in blocks, since they may be wide."""
        if self.mapper is None or rows.rounds == 0:
            return self._score_mapped(self._mapped(rows))
        size, made = self._batch_size(rows), []
        for start in range(0, rows.rounds, size):
            stop = min(start + size, rows.rounds)
            made.append(self._score_mapped(self._mapped(rows, start, stop)))
        return made[0] if len(made) == 1 else np.concatenate(made)

    def _score_mapped(self, rows: Mapped) -> np.ndarray:
        return self.engine.all_scores(rows)

    def distribution(self, x: Input) -> Distribution:
        """Return predictions with weights, whose mean loss is that of the random prediction.

        For classes, signs and levels these are the predictions and their probabilities; see
        :meth:`Decoder.distribution <driftline.decoders.Decoder.distribution>`.
        """
        return self.decoder.distribution(self.scores(x))

    def _mean_loss_encoding(self, theta: np.ndarray) -> np.ndarray:
        """Return the decoder's mean loss encoding at these scores."""
        return self.decoder.mean_loss_encoding(theta)

    def _drawn_from(self, theta: np.ndarray) -> Distribution:
        """Return the predictions that the decoder may draw at these scores, with weights."""
        return self.decoder.distribution(theta)

    @property
    def weights(self) -> np.ndarray:
        """A copy of W: a row per score, a column per feature, and one more for an intercept."""
        with self._turn.lock:
            weights = self.engine.weights
            if weights is None:
                raise InputError("the learner has no weights before its first input")
            return np.array(weights, order="C")

    # -- the state as a value

    def _checked(self, state: State) -> State:
        if self._watch is not None:
            raise InputError("the learner keeps account: end that by watch(None)")
        return self.engine.checked(state)

    def _like(self, classes: int | None = None) -> Self:
        parts, more = self.parts._asdict(), self._with_more(self.loss.task, classes)
        if classes is not None:
            parts = {k: substituted(p, self.loss.task, more) for k, p in parts.items()}
        return type(self)(**parts, features=self.map, dtype=self.engine.dtype)

    def _adopt(self, state: State) -> None:
        self.engine.restore(state)
        self._resume_tickets(state)

    def _add(self, made: Self, state: State, more: Growth) -> State:
        """Return the state with weights of 0.

        It is as if classes had been there from the start but no label of theirs had been seen, and
        features had been 0 in all rows.
        """
        if more.classes is not None:
            state = state.with_scores(self.task.dim, more.classes - self.task.dim)
        return state if more.places is None else state.with_columns(more.places)

    # -- facts

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self.engine.rounds

    @property
    def _width(self) -> int | None:  # type: ignore[override]
        return self.engine.features

    @property
    def facts(self) -> Facts:
        """Facts of the learner as it is now: see :class:`~driftline.learner.Facts`."""
        largest = float(np.sqrt(self.engine.largest_input_sq))
        return replace(
            self._fixed,
            no_theorem=no_theorem(self.parts, largest),
            apriori_bound=self._apriori_bound(),
            largest_input=largest,
        )

    def _apriori_bound(self) -> AprioriBound | None:
        known = math.inf
        if self.map is not None and not self._layout.ragged:  # a round is one row
            known = self.map.longest
        longest = math.hypot(known, self.parts.intercept)
        return apriori_bound(self.parts, self.engine.first_distance, longest)

    def _lasting_facts(self) -> Facts:
        """Return the facts that never change."""
        (loss, decoder, rate, domain, _, restart), kernels = self.parts, self.parts.have_kernels
        parts = [part for part in self.parts if isinstance(part, Part)]
        modest = all(largest_number(part) <= LARGEST_CONSTANT for part in parts)
        words = [repr(rate), repr(domain), decoder.in_short, "restarts" if restart else ""]
        return Facts(
            steps=True,
            nats=loss.nats,
            certain=decoder.deterministic,
            takes_top=decoder.takes_top,
            restarts=restart is not None,
            fuses=isinstance(self.engine, CompiledEngine),
            searchable=kernels and loss.convex,  # in Python it would take hours
            never_refuses=modest and kernels and math.isfinite(domain.diameter),
            in_short=", ".join(filter(None, words)),
            form="one-hot" if self.map is None or self.map.inner.same_entries else "none",
        )

    def _top_rows(self, scores: np.ndarray) -> np.ndarray:
        """Return the decoder's predictions of highest score, a row of integers each."""
        return self.decoder.top_rows(scores)

    def _config(self) -> Json:
        """Return the learner's parts as plain data."""
        made = {
            k: v.config() if isinstance(v, Part) else v for k, v in self.parts._asdict().items()
        }
        made |= {"dtype": self.engine.dtype.name}
        return made if self.map is None else made | {"features": self.map.config()}

    def describe(self) -> str:
        """Say which theorem applies, with its constants, and what is missing."""
        words = describe(self.parts, self.facts.largest_input, self.engine.first_distance)
        if self.map is None:
            return words
        return f"{words}\nfeatures {self.map!r}: bounds hold for mapped inputs"

    def __repr__(self) -> str:
        """Name the parts."""
        loss, decoder, rate, domain, intercept, restart = self.parts
        more = ", intercept=True" if intercept else ""
        more += "" if restart is None else f", restart={restart!r}"
        more += "" if self.map is None else f", features={self.map!r}"
        more += ", dtype=float32" if self.engine.dtype == np.float32 else ""
        return f"OGD({loss!r}, {decoder!r}, {rate!r}, {domain!r}{more})"

    # -- files

    def _check_copied(self) -> None:
        self._check_unwatched()

    def _check_unwatched(self) -> None:
        if self._watch is not None:
            raise InputError(
                "a learner that keeps account against a comparator cannot be saved or copied, and "
                "has no snapshot: certify it, then end the account by watch(None)"
            )

    def _to_saved(self) -> Saved:
        self._check_unwatched()
        for part in (*self.parts, self.map):
            if isinstance(part, Part):
                check_plain(part)
        state, arrays = self._state().to_saved()
        return {"kind": "OGD", "config": self._config(), "state": state}, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: dict[str, np.ndarray]) -> Self:
        """Return the learner from what :meth:`to_saved` returned."""
        config = about["config"]
        names = ("loss", "decoder", "rate", "domain", "restart")
        parts: dict[str, Any] = {name: from_config(config[name]) for name in names}
        learner = cls(
            **parts,
            intercept=bool(config["intercept"]),
            features=from_config(config.get("features")),
            dtype=config["dtype"],
        )
        learner.restore(State.from_saved(about["state"], arrays))
        return learner

    # -- what a shell asks for

    def _check_features(self, rows: Rows) -> None:
        if self.mapper is not None or rows.features != self.engine.features:
            super()._check_features(rows)

    def _state(self, weights: bool = True) -> State:
        state = self.engine.state(weights).replaced(
            key=self._draws.key, tickets=self._tickets, **self._waiting
        )
        return state if self.mapper is None else state.replaced(map=self.mapper.to_saved())

    @property
    def _dtype(self) -> np.dtype:
        return self.engine.dtype

    def _own_bytes(self, width: int, task: Task) -> int:
        columns = width + self.parts.intercept + task.layout.extra_columns
        return task.layout.weight_rows * columns * self._dtype.itemsize

    def _copies(self, rows: Rows) -> bool:
        own = self._watch is not None or self.mapper is not None
        return self._copies_cheaply(rows.size) or own or not self._fixed.fuses

    def _settle(self) -> None:
        self.engine.settle()

    def _copies_cheaply(self, size: int) -> bool:
        """Say whether copying the weights costs no more than reading inputs of this size."""
        return self.engine.stored is None or self.engine.stored.size <= size

    def _origin(self, keep: bool) -> State | None:
        return self._state() if keep else None

    def _filled(self, origin: State | None, keep: bool) -> State | None:
        return None if origin is None else self.engine.filled(origin)

    def _room(self, labels: CheckedLabels) -> Batch:
        count, table = len(labels), np.empty((len(self._names), len(labels)))
        columns = dict(zip(TRACE_COLUMNS, table, strict=False))
        width = self.task.predictions.width(labels)
        columns["prediction"] = self.task.predictions.rows(count, width)
        if self.parts.loss.inexact:
            columns["gap"] = np.zeros(count)
        if self.parts.restart is not None:
            columns["restarted"] = np.zeros(count, dtype=bool)
        return Batch(columns, table=table)

    @property
    def _tells_together(self) -> bool:
        return self._watch is None  # which follows every single draw

    def _play_mapped(
        self, rows: Rows, start: int, stop: int, labels: CheckedLabels, number: int, room: Batch
    ) -> None:
        self.engine.hold(rows)
        assert room.table is not None
        asked = room.columns.get("asked")
        if asked is None:
            uniforms = self._uniforms(number, stop - start)
        else:  # rows that are asked for have the next numbers
            uniforms = np.full((stop - start, 1), 0.5)
            uniforms[asked] = self._uniforms(number, int(np.count_nonzero(asked)))
        block = Block(
            rows,
            start,
            stop,
            labels,
            uniforms,
            room.table,
            room["prediction"],
            room.columns.get("gap"),
            restarted=room.columns.get("restarted"),
            sample_weight=room.columns.get("sample_weight"),
            asked=asked,
            scores=room.columns.get("scores"),
        )
        if (played := self._advance(block)) < stop - start:
            refuse(rows, start + played)

    def _uniforms(self, number: int, count: int) -> np.ndarray:
        """Return the random numbers of some rounds; a constant where nothing is drawn."""
        return _middle(count) if self._certain else self._draws.uniforms(number, count)

    def _advance(self, block: Block) -> int:
        """Play rounds, and keep the account against a comparator if there is one."""
        if self._watch is None:
            return self.engine.play(block)
        played, seen = self._watch.play(block)
        if played == block.stop - block.start and self._tally is not None:
            self._tally.add(mark_idle(seen, self.parts))
        return played

    def _learn_one_mapped(
        self, row: Rows, label: Label, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._play_one_mapped(row, label, self._uniform(number))

    def _uniform(self, number: int) -> np.ndarray:
        return MIDDLE if self._certain else self._draws.uniform(number)

    def _play_one(
        self, row: Rows, label: Label, uniforms: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play one round by a uniform number; return its prediction, and what is recorded."""
        if self.mapper is None:
            self._check_features(row)
            return self._play_one_mapped(row, label, uniforms)
        return self._round(row, label, lambda row: self._play_one_mapped(row, label, uniforms))

    def _play_one_mapped(
        self, row: Rows, label: Label, uniforms: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        engine, prediction = self.engine, self._prediction
        if self._layout.ragged:
            row.check_labels([label])
            width = self.task.predictions.width([label])
            prediction = self.task.predictions.rows(1, width)
        if engine.holds(row):
            return self._play_held(row, label, uniforms, prediction)
        if row.first_bad_row(engine.dtype) is not None:  # before anything is laid out for it
            refuse(row, 0)
        before, rounds = Checkpoint(engine, whole=False), engine.rounds
        try:
            engine.hold(row)
            return self._play_held(row, label, uniforms, prediction)
        except BaseException:  # a refused first round does not say how many features there are
            engine.go_back(before, rounds)
            raise

    def _play_held(
        self, row: Rows, label: Label, uniforms: np.ndarray, prediction: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play one round of a row that the weights are ready for."""
        engine, columns = self.engine, self._columns
        labels = label[np.newaxis] if isinstance(label, np.ndarray) else [label]
        if self._watch is None:
            played = engine.play_one(row, labels, uniforms, columns, prediction)
        else:
            block = Block(row, 0, 1, labels, uniforms, columns, prediction)
            played = self._advance(block.scored_below())
        if not played:
            refuse(row, 0)
        return prediction[0], columns[:, 0]

    def _look_mapped(self, rows: Rows, numbers: np.ndarray, whole: bool) -> Asked:
        certain = self._certain
        uniforms = _middle(len(numbers)) if certain else self._draws.at(numbers)
        return self.engine.look(rows, uniforms, whole)

    def _check_initial(self, initial: npt.ArrayLike) -> np.ndarray:
        try:
            weights = np.array(initial, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise InputError(f"first weights must be rows of numbers: {error}") from error
        if weights.ndim != 2 or weights.shape[0] != self.task.layout.weight_rows:
            raise InputError(
                f"first weights must have {self.task.layout.weight_rows} rows, but their shape is "
                f"{weights.shape}"
            )
        if not np.isfinite(weights).all():
            raise InputError("first weights must be finite, but one is not")
        distance = float(np.linalg.norm(weights - self.domain.project(weights)))
        if distance > 1e-9 * float(np.linalg.norm(weights)):
            raise InputError(
                f"first weights must lie in the domain {self.domain!r}, but are {distance:g} away"
            )
        return cast(weights, self.engine.dtype)

    def _check_dtype(self, dtype: npt.DTypeLike) -> np.dtype:
        kind = float_type(dtype, "weights")
        plain = not self.parts.have_kernels or not COMPILES
        if kind == np.float32 and plain:
            what = "parts without kernels" if COMPILES else f"rounds without Numba ({MISSING})"
            raise InputError(f"float32 is for compiled rounds: not for {what}")
        return kind
