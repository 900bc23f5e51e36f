"""Online gradient descent: predict, pay, learn, round after round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline import archive, models
from driftline.accounts import Tally, Watch, settled
from driftline.decoders import Decoder, default_decoder
from driftline.description import describe
from driftline.detectors import Detector
from driftline.domains import Ball, Domain
from driftline.engines import Block, CompiledEngine, Parts, PlainEngine, Snapshot
from driftline.errors import InputError
from driftline.kernels import program as at
from driftline.losses import Loss
from driftline.parts import Part, check_plain, check_sizes, from_config
from driftline.rates import Polyak, Rate
from driftline.record import Record, checked_stream
from driftline.tasks import Distribution
from driftline.trace import Origin, Trace
from driftline.turn import Turn

__all__ = ["OGD", "Mark", "Round"]


class Round(NamedTuple):
    """What happened in one round."""

    prediction: Any
    loss: float
    risk: float
    target_loss: float
    eta: float
    grad_sq: float


class Mark(NamedTuple):
    """Where a learner was: weights and state, randomness, and its account."""

    snapshot: Snapshot | None
    generator: Any
    ahead: np.ndarray | None
    watch: Watch | None
    tally: Tally


class OGD:
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
        Of the generator that random predictions are drawn with.
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

    def __init__(
        self,
        loss: Loss,
        decoder: Decoder | None = None,
        rate: Rate | None = None,
        domain: Domain | None = None,
        *,
        initial: Any = None,
        intercept: bool = False,
        restart: Detector | None = None,
        seed: int | None = 0,
        dtype: Any = np.float64,
    ):
        if decoder is None:
            loss, decoder = default_decoder(loss)
        rate = Polyak() if rate is None else rate
        domain = Ball(20.0) if domain is None else domain
        if decoder.loss != loss:
            raise InputError(
                f"the decoder was made for {decoder.loss!r}, but the learner has {loss!r}"
            )
        self.task: Any = loss.task
        if restart is not None and not isinstance(restart, Detector):
            raise InputError(f"restart must be a detector such as Cusum(), not {restart!r}")
        self.parts = Parts(loss, decoder, rate, domain, bool(intercept), restart)
        for part in self.parts:
            if isinstance(part, Part):
                check_sizes(part)
        rate.check(self.parts.setting)
        self.engine = (CompiledEngine if self.parts.have_kernels else PlainEngine)(
            self.parts, dtype=self._check_dtype(dtype)
        )
        self._turn = Turn()
        self._generator = _generator(seed)
        self._ahead: np.ndarray | None = None  # uniforms drawn by looking, not yet used up
        self._uniforms = np.empty((1, 1))  # of a single round
        self._watch: Watch | None = None
        self._tally = Tally(loss.task.largest_loss)
        self._names: tuple[str, ...] = at.TRACE_COLUMNS
        self._columns = np.empty((len(self._names), 1))  # of a single round
        self._prediction = np.empty((1, loss.task.prediction_size), dtype=np.int64)
        if initial is not None:
            self.engine.start(self._check_initial(initial))

    # -- learning

    def run(
        self,
        inputs: Any,
        labels: Any = None,
        *,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
    ) -> Trace:
        """Play a stream: every row is predicted before it is learned from.

        Parameters
        ----------
        inputs, labels
            One row and one label a round: an array or a CSR matrix, and what the task takes
            as labels. Or a stream, which has both.
        seed
            If given, the generator is reset to it; otherwise it goes on from where it is.
        progress
            Called with the number of rounds just played, every few thousand rounds.
        audit
            Whether the trace keeps the weights from before the first round, so that the run
            can be replayed and certified. Default: if that is no more to copy than the
            inputs are to read.

        Returns
        -------
        Trace
            One row a round. If the input is refused, the learner is as it was before; so it is
            after an interruption. A learner with more weights than there are inputs is not copied
            first: then rounds before an interruption, or before a step that overflows, are kept,
            and the error says how many.
        """
        rows, labels = checked_stream(self.task, inputs, labels)
        with self._turn:
            record, before = self._run(rows, labels, seed, progress, audit)
            return self.end(record, before, models.fingerprint(rows, labels))

    def learn_rows(self, inputs: Any, labels: Any) -> None:
        """Do all that :meth:`run` does, but keep no trace: for many short streams."""
        rows, labels = checked_stream(self.task, inputs, labels)
        with self._turn:
            self._run(rows, labels, audit=False)

    def learn_row(self, x: Any, label: Any) -> None:
        """Do all that :meth:`step` does, but say nothing of the round."""
        self.pay(self._row(x), self.task.check_label(label))

    def _run(
        self,
        rows: models.Rows,
        labels: Any,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        audit: bool | None = None,
    ) -> tuple[Record, Mark | None]:
        """Return what was written down, and the mark of the beginning if it is to be kept."""
        self._check_features(rows)

        # A bad row must leave no mark. Remember the weights, or look at all rows first:
        # whichever is less to read.
        cheap = self.cheap(rows.size) or self._watch is not None
        if not cheap and (bad := rows.first_bad_row(self.engine.dtype)) is not None:
            models.refuse(rows, bad)
        keep = cheap if audit is None else audit
        before = self.mark(weights=cheap or keep)
        record = self.begin(labels, seed)
        for start in range(0, rows.rounds, rows.block):
            stop = min(start + rows.block, rows.rounds)
            try:
                self._go_on(record, rows, start, stop)
                if progress is not None:
                    progress(stop - start)
            except BaseException as error:
                if before.snapshot is None and record.done:
                    _add_kept(error, record.done)
                else:
                    self.go_back(before)
                raise
        return record, before if keep else None

    def begin(self, labels: Any, seed: int | None = None) -> Record:
        """Open a record for a run whose rows come in pieces, as in a committee.

        Labels are as the task has checked them; every piece must be played by :meth:`go_on`.
        """
        if seed is not None:
            self._generator, self._ahead = _generator(seed), None
        randomness = self._generator.bit_generator.state
        return Record(self.parts, self._names, labels, randomness, self._ahead)

    def go_on(self, record: Record, rows: models.Rows, start: int, stop: int) -> None:
        """Play the next rounds of a record with some rows."""
        with self._turn:
            self._go_on(record, rows, start, stop)

    def _go_on(self, record: Record, rows: models.Rows, start: int, stop: int) -> None:
        self._check_features(rows)
        self.engine.hold(rows)
        ahead, randomness = self._ahead, self._generator.bit_generator.state
        played = self._play(record.block(rows, start, stop, self._take_uniforms(stop - start)))
        record.done += played
        if played < stop - start:
            self._ahead, self._generator.bit_generator.state = ahead, randomness
            if played:
                self._take_uniforms(played)  # those that were used up
            models.refuse(rows, start + played)

    def end(self, record: Record, before: Mark | None, digest: str = "") -> Trace:
        """Return the trace of a record; with the mark of its beginning it can be audited."""
        origin = None
        if before is not None and before.snapshot is not None:
            stored, transposed, state = self.engine.filled(before.snapshot)
            assert stored is not None
            origin = Origin(stored, transposed, state, record.generator, record.ahead)
        return record.trace(self.config(), origin, digest)

    def step(self, x: Any, label: Any) -> Round:
        """Play one round: predict, see the label, learn. The same bits as in :meth:`run`."""
        return self.play(self._row(x), self.task.check_label(label))

    def play(self, row: models.Rows, label: Any) -> Round:
        """Play one round with a row and a label that are wrapped and checked already."""
        prediction, columns = self.pay(row, label)
        return Round(self.task.prediction(prediction), *columns[:5, 0].tolist())

    def pay(self, row: models.Rows, label: Any) -> tuple[np.ndarray, np.ndarray]:
        """Play such a round; return the prediction as numbers, and the column of the trace."""
        with self._turn:
            if self._ahead is None:
                uniforms = self._generator.random(out=self._uniforms)
            else:
                uniforms = self.take_ahead()
            try:
                return self._play_one(row, label, uniforms), self._columns
            except InputError:
                self.keep_ahead(uniforms)
                raise

    def learn(self, x: Any, label: Any) -> Round:
        """Learn from one round without predicting: no random number is used up.

        The prediction and target loss in the result are those of a draw at the median.
        """
        row, checked, middle = self._row(x), self.task.check_label(label), np.full((1, 1), 0.5)
        with self._turn:
            prediction = self._play_one(row, checked, middle)
        return Round(self.task.prediction(prediction), *self._columns[:5, 0].tolist())

    def watch(self, comparator: Any) -> Tally:
        """Keep account against a comparator from now on, in constant memory.

        Its weights are counted from the next round on: those of its round 0 meet that one. The
        sums are in the tally that is returned; :func:`~driftline.certify` makes a certificate
        of the learner itself from them, at any time and without a trace. None ends the account.
        """
        with self._turn:
            self._watch = None if comparator is None else Watch(self.engine, comparator)
            self._tally = Tally(self.task.largest_loss)
            self._names = at.TRACE_COLUMNS if comparator is None else at.WATCHED_COLUMNS
            self._columns = np.empty((len(self._names), 1))
            return self._tally

    @property
    def tally(self) -> Tally:
        """The account against the comparator that :meth:`watch` was given."""
        if self._watch is None:
            raise InputError("the learner keeps no account: give it a comparator by watch()")
        return self._tally

    def mark(self, weights: bool = True) -> Mark:
        """Remember where the learner is, for :meth:`go_back`; its weights only if wanted."""
        snapshot = self.engine.snapshot() if weights else None
        randomness = self._generator.bit_generator.state
        if self._watch is None:
            return Mark(snapshot, randomness, self._ahead, None, self._tally)
        watch, tally = self._watch.copy(), replace(self._tally)
        return Mark(snapshot, randomness, self._ahead, watch, tally)

    def go_back(self, mark: Mark) -> None:
        """Be where a mark was made, as if nothing had been played since."""
        if mark.snapshot is not None:
            self.engine.restore(mark.snapshot)
        self._generator = _generator(0)
        self._generator.bit_generator.state = mark.generator
        self._ahead, self._watch, self._tally = mark.ahead, mark.watch, mark.tally

    # -- saving

    def save(self, path: str | Path) -> Path:
        """Write the learner to one file, for :func:`driftline.load`; return where it is.

        The file has plain data only. Who loads it goes on with the same bits.
        """
        return archive.write(path, *self.to_saved())

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all of the learner as plain data and arrays."""
        with self._turn.looking:
            return self._to_saved()

    def _to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if self._watch is not None:
            raise InputError(
                "a learner that keeps account against a comparator cannot be saved: certify it, "
                "then end the account by watch(None)"
            )
        for part in self.parts:
            if isinstance(part, Part):
                check_plain(part)
        engine = self.engine
        about = {
            "kind": "OGD",
            "config": self.config(),
            "features": engine.features,
            "transposed": engine.transposed,
            "generator": self._generator.bit_generator.state,
            "ahead": None if self._ahead is None else float(self._ahead[0, 0]),
        }
        weights = {} if engine.stored is None else {"weights": engine.stored}
        return about, {"state": engine.state, **weights}

    @classmethod
    def from_saved(cls, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> OGD:
        """Return the learner that :meth:`to_saved` was asked of."""
        config = about["config"]
        names = ("loss", "decoder", "rate", "domain", "restart")
        parts: dict[str, Any] = {name: from_config(config[name]) for name in names}
        learner = cls(**parts, intercept=bool(config["intercept"]), dtype=config["dtype"])
        saved = Snapshot(arrays.get("weights"), bool(about["transposed"]), arrays["state"])
        learner.engine.resume(saved, about["features"])
        learner._generator.bit_generator.state = about["generator"]
        if about["ahead"] is not None:
            if not 0.0 <= about["ahead"] < 1.0:
                raise InputError(f"a random number of {about['ahead']} was never drawn")
            learner._ahead = np.array([[float(about["ahead"])]])
        return learner

    def __reduce__(self) -> Any:
        """Pickle and copy what is saved: compiled code has other addresses elsewhere."""
        about, arrays = self.to_saved()
        return type(self).from_saved, (about, {k: a.copy() for k, a in arrays.items()})

    # -- looking

    def scores(self, x: Any) -> np.ndarray:
        """Return the scores of an input."""
        with self._turn.looking:
            return self._scores(self._row(x))

    def _scores(self, row: models.Rows, sure: bool = False) -> np.ndarray:
        self._check_features(row)
        if not sure and row.first_bad_row(self.engine.dtype) is not None:
            models.refuse(row, 0)
        return self.engine.scores(row, 0)

    def score_rows(self, inputs: Any) -> np.ndarray:
        """Return the scores of many inputs, a row each: an array or a CSR matrix of them.

        By one product of matrices, whose last bits may differ from those of :meth:`scores`.
        """
        if self.task.ragged:
            raise InputError(f"only plain rows can be scored together, not those of {self.task!r}")
        wrapped = isinstance(inputs, (models.DenseRows, models.SparseRows))
        rows = inputs if wrapped else self.task.rows_of(inputs)
        self._check_features(rows)
        with self._turn.looking, np.errstate(over="ignore", invalid="ignore"):
            scores = self.engine.all_scores(rows)
        if not np.isfinite(scores).all() and (bad := rows.first_bad_row()) is not None:
            models.refuse(rows, bad)
        return scores

    def distribution(self, x: Any) -> Distribution:
        """Return predictions and weights with the expected losses that an input's draws have.

        Of classes, signs and levels, the draws and their probabilities; see
        :meth:`Decoder.distribution <driftline.decoders.Decoder.distribution>`.
        """
        return self.decoder.distribution(self.scores(x))

    def predict(self, x: Any) -> Any:
        """Return the prediction that :meth:`step` would make now. Looking changes nothing."""
        return self.predict_row(self._row(x))

    def predict_row(self, row: models.Rows, sure: bool = False) -> Any:
        """Return the prediction for an input that is wrapped already; ``sure`` if it is finite."""
        with self._turn.looking:
            return self.decoder.draw(self._scores(row, sure), self._peek()[0])

    @property
    def weights(self) -> np.ndarray:
        """A copy of W: a row per score, a column per feature, and one more for an intercept."""
        with self._turn.looking:
            weights = self.engine.look().weights
            if weights is None:
                raise InputError("the learner has no weights before its first input")
            return np.array(weights, order="C")

    @property
    def loss(self) -> Loss:
        """The surrogate loss."""
        return self.parts.loss

    @property
    def decoder(self) -> Decoder:
        """The decoder."""
        return self.parts.decoder

    @property
    def rate(self) -> Rate:
        """The rule for step sizes."""
        return self.parts.rate

    @property
    def domain(self) -> Domain:
        """Where weights may lie."""
        return self.parts.domain

    @property
    def rounds(self) -> int:
        """How many rounds were played or learned from."""
        return int(self.engine.state[at.ROUNDS])

    @property
    def largest_input(self) -> float:
        """The largest norm of an input so far."""
        return float(np.sqrt(self.engine.state[at.LARGEST_INPUT_SQ]))

    def config(self) -> dict[str, Any]:
        """Return the learner's parts as plain data."""
        made = {
            k: v.config() if isinstance(v, Part) else v for k, v in self.parts._asdict().items()
        }
        return made | {"dtype": self.engine.dtype.name}

    def describe(self) -> str:
        """Say which theorem applies, with its constants, and what is missing."""
        return describe(self.parts, self.largest_input)

    def __repr__(self) -> str:
        """Name the parts."""
        loss, decoder, rate, domain, intercept, restart = self.parts
        more = ", intercept=True" if intercept else ""
        more += "" if restart is None else f", restart={restart!r}"
        more += ", dtype=float32" if self.engine.dtype == np.float32 else ""
        return f"OGD({loss!r}, {decoder!r}, {rate!r}, {domain!r}{more})"

    # -- behind the scenes

    def _play_one(self, row: models.Rows, label: Any, uniforms: np.ndarray) -> np.ndarray:
        engine, columns, prediction = self.engine, self._columns, self._prediction
        self._check_features(row)
        if self.task.ragged:
            row.check_labels([label])
            width = self.task.prediction_width([label])
            prediction = np.full((1, width), -1, dtype=np.int64)
        if engine.stored is None and row.first_bad_row(engine.dtype) is not None:
            models.refuse(row, 0)
        engine.hold(row)
        labels = label[np.newaxis] if isinstance(label, np.ndarray) else [label]
        if self._watch is None:
            played = engine.play_one(row, labels, uniforms, columns, prediction)
        else:
            played = self._play(Block(row, 0, 1, labels, uniforms, columns, prediction))
        if not played:
            models.refuse(row, 0)
        row_of_numbers: np.ndarray = prediction[0]
        return row_of_numbers

    def _play(self, block: Block) -> int:
        """Play rounds, under the eyes of a comparator if there is one."""
        if self._watch is None:
            return self.engine.play(block)
        played, seen = self._watch.play(block)
        if played == block.stop - block.start:
            self._tally.add(settled(seen, self.parts))
        return played

    def _row(self, x: Any) -> models.Rows:
        return row_of(self.task, x)

    def standing(self) -> tuple[Any, np.random.Generator, Watch | None, np.ndarray | None]:
        """Return weights, generator, account and what was drawn by looking, as they are now."""
        return self.engine.stored, self._generator, self._watch, self._ahead

    def take_ahead(self) -> Any:
        """Return what was drawn by looking, None if nobody looked: it is used up."""
        ahead, self._ahead = self._ahead, None
        return ahead

    def keep_ahead(self, uniforms: np.ndarray) -> None:
        """Keep a number that was drawn for a round, but not used up."""
        self._ahead = uniforms.copy()

    def _peek(self) -> np.ndarray:
        if self._ahead is None:
            self._ahead = self._generator.random((1, 1))
        return self._ahead

    def _take_uniforms(self, count: int) -> np.ndarray:
        ahead = self.take_ahead()
        if ahead is None:
            return self._generator.random((count, 1))
        return np.vstack([ahead, self._generator.random((count - 1, 1))])

    def cheap(self, size: int) -> bool:
        """Say whether copying the weights costs no more than reading inputs of this size."""
        return self.engine.stored is None or self.engine.stored.size <= size

    def _check_features(self, rows: models.Rows) -> None:
        expected = self.engine.features
        if expected is not None and rows.features != expected:
            raise InputError(
                f"inputs have {rows.features} features, but the learner has seen {expected}"
            )

    def _check_initial(self, initial: Any) -> np.ndarray:
        weights = np.array(initial, dtype=np.float64, order="C")
        if weights.ndim != 2 or weights.shape[0] != self.task.weight_rows:
            raise InputError(
                f"first weights must have {self.task.weight_rows} rows, but their shape is "
                f"{weights.shape}"
            )
        if not np.isfinite(weights).all():
            raise InputError("first weights must be finite, but one is not")
        distance = float(np.linalg.norm(weights - self.domain.project(weights)))
        if distance > 1e-9 * float(np.linalg.norm(weights)):
            raise InputError(
                f"first weights must lie in the domain {self.domain!r}, but are {distance:g} away"
            )
        return models.cast(weights, self.engine.dtype)

    def _check_dtype(self, dtype: Any) -> np.dtype:
        kind = np.dtype(dtype)
        if kind not in (np.float64, np.float32):
            raise InputError(f"weights are float64 or float32, not {kind}")
        if kind == np.float32 and (self.task.ragged or not self.parts.have_kernels):
            what = repr(self.task) if self.task.ragged else "parts without kernels"
            raise InputError(f"float32 is for one row of inputs a round, compiled: not for {what}")
        return kind


def row_of(task: Any, x: Any) -> models.Rows:
    """Wrap the input of one round."""
    row: models.Rows = task.rows_of([x]) if task.ragged else models.row_of(x)
    return row


def _add_kept(error: BaseException, rounds: int) -> None:
    """Let an error say how many rounds were kept, since there was no copy to go back to."""
    words = f"{rounds} rounds of this call were played before that, and are kept"
    if isinstance(error, InputError):
        error.args = (f"{error}; {words}",)
    else:
        error.add_note(words)


def _generator(seed: int | None) -> np.random.Generator:
    """Return a generator whose numbers are not those of a stream with the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
