"""The record of a run, one row a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from driftline.detectors import alarms_of
from driftline.errors import DAMAGE, InputError
from driftline.parts import from_config
from driftline.state import State, archive
from driftline.trace.batch import Batch
from driftline.trace.columns import (
    ASKED,
    CAME,
    TOLD,
    Column,
    checked,
    column,
    joined,
    of_rounds,
    places,
)
from driftline.typing import Json, Saved

__all__ = [
    "BATCHES",
    "Trace",
    "at_most_rounding",
    "batch_name",
    "read_file",
    "with_suffix",
]

#: The columns of every trace, and those of some.
COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction")
OPTIONAL = (
    "gap", "restarted", "sample_weight", "arrival", "known", "arrival_risk", "chance", "slack"
)  # fmt: skip

#: The column that is not saved.
PROBABILITIES = "probabilities"

KINDS = {name: Column(TOLD) for name in ("loss", "eta", "grad_sq", "gap", "arrival_risk")}
KINDS |= {name: Column(CAME) for name in ("risk", "target_loss")}
KINDS |= {name: Column(ASKED) for name in ("sample_weight", "chance")}
KINDS |= {name: Column(ASKED, (np.int64,)) for name in ("arrival", "known")}
KINDS["prediction"] = Column(ASKED, (np.float64, np.int64), (1, 2))
KINDS["restarted"] = Column(TOLD, (np.bool_,))
KINDS["slack"] = Column(TOLD, ndims=(2,))
KINDS[PROBABILITIES] = Column(ASKED, ndims=(2,))

Made = TypeVar("Made")

#: The key of the number of batches that the columns of a streamed trace come in.
BATCHES = "batches"

#: The prefix of the names of arrays of the state before the first round.
ORIGIN = "origin."

#: Squares of larger steps overflow.
LARGEST_STEP = 1e150


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The record of a run: what plots, reports and certificates read.

    Per round: the surrogate ``loss``; the ``risk``, which is the expected target loss; the
    ``target_loss`` of the ``prediction`` that was drawn; the step ``eta`` (that of the round
    before where no step was made); the squared norm ``grad_sq`` of the gradient in the
    weights; where a solver was at work, the duality ``gap`` it left; where a detector was, whether
    the learner had ``restarted`` before the round; where rounds do not all count once, the
    ``sample_weight``, by which losses and gradients are multiplied; where labels come late, the
    ``arrival``, which is the place of the round in the order in which they came, -1 if that has not
    come. Then loss, step and gradient are those of the arrival, prediction and risk those of the
    prediction; all are NaN without a label. ``known`` is how many labels had come before the
    prediction, ``arrival_risk`` what a prediction at the arrival would have cost, and ``carried``
    how many labels of earlier runs came in this one. Where only hits and misses are seen,
    ``chance`` is the probability with which the prediction was drawn, and ``slack`` has a column
    for each unbiased policy: see :class:`~driftline.bandit.Bandit`; of a label that came late, at
    the scores of the arrival. ``probabilities``, which are not saved, has those of every label
    before every round, if the run was asked for them. Beside these, the learner's
    ``config``, its ``origin``, which is its state before the first round (None where that
    was too large to keep), and a digest of the stream, so that the run can be replayed and audited.
    """

    loss: np.ndarray
    risk: np.ndarray
    target_loss: np.ndarray
    eta: np.ndarray
    grad_sq: np.ndarray
    prediction: np.ndarray
    origin: State | None = None
    gap: np.ndarray | None = None
    restarted: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    arrival: np.ndarray | None = None
    known: np.ndarray | None = None
    arrival_risk: np.ndarray | None = None
    carried: int = 0
    chance: np.ndarray | None = None
    slack: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    config: Json = field(default_factory=dict)
    digest: str = ""

    #: What is known of the columns.
    kinds: ClassVar[Mapping[str, Column]] = KINDS

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.loss)

    def __repr__(self) -> str:
        """Name the rounds and the totals."""
        totals = [float(np.nansum(column)) for column in (self.target_loss, self.risk, self.loss)]
        late = "" if self.arrival is None else f", {int((~self.arrived).sum())} labels to come"
        return (
            f"Trace({len(self)} rounds{late}, target loss {totals[0]:g}, risk {totals[1]:.6g}, "
            f"surrogate loss {totals[2]:.6g})"
        )

    @property
    def arrived(self) -> np.ndarray:
        """Whether the label of each round has come."""
        return np.ones(len(self), dtype=bool) if self.arrival is None else self.arrival >= 0

    def of_events(self, late: Any) -> Trace:
        """Return the trace of a run's events, in which those that are asked for make no step.

        They have a loss and a gradient of 0 and a step of 1, which nobody reads.
        """
        blank = {"loss": 0.0, "eta": 1.0, "grad_sq": 0.0}
        blank |= {} if self.gap is None else {"gap": 0.0}
        columns: dict[str, Any] = {
            name: np.where(late.asked, value, getattr(self, name)) for name, value in blank.items()
        }
        return replace(self, **columns)

    def rounds_of(self, late: Any) -> Trace:
        """Return the rounds of a run whose labels came late, from its events."""
        told = late.tell_events[late.carried :]
        whole = self.columns()
        if self.probabilities is not None:
            whole[PROBABILITIES] = self.probabilities
        columns: dict[str, Any] = of_rounds(whole, KINDS, late)
        columns["arrival_risk"] = np.where(told >= 0, self.risk[told], np.nan)
        columns["known"] = late.ask_events - np.arange(len(late.ask_events))
        carried = int((late.tell_events[: late.carried] >= 0).sum())
        return replace(self, **columns, arrival=late.arrivals, carried=carried)

    @property
    def first_weights(self) -> np.ndarray | None:
        """The weights before the first round, a row per score; None where they were not kept."""
        return None if self.origin is None else self.origin.scaled_weights

    @property
    def largest_eta(self) -> np.ndarray:
        """The upper end of the admissible range, 2 (loss - risk) / grad_sq, in every round."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = 2.0 * (self.loss - self.risk) / self.grad_sq
        return np.where(self.grad_sq > 0.0, ends, np.inf)

    @property
    def residual(self) -> np.ndarray:
        """``eta / 2 * grad_sq - (loss - risk)``: at most 0 where the step was admissible."""
        return 0.5 * self.eta * self.grad_sq - (self.loss - self.risk)

    @property
    def admissible(self) -> np.ndarray:
        """Whether each round's step was at most the upper end of its range.

        Up to rounding and the solver's ``gap``, by which a loss may be too large or too small.
        """
        return at_most_rounding(self.residual, self.loss, self.gap)

    @property
    def task(self) -> Any:
        """The task of the run; None where it is not known."""
        part = from_config(self.config.get("loss") or self.config.get("task"))
        return getattr(part, "task", part)

    @property
    def largest_loss(self) -> float:
        """The largest target loss that there is in the task; 1 where the task is not known."""
        return 1.0 if self.task is None else float(self.task.largest_loss)

    @property
    def alarms(self) -> np.ndarray:
        """The rounds after which the expected loss was seen to have risen, by a new detector.

        See :mod:`driftline.detectors.alarms`. A learner that restarts by a detector of its own has
        ``restarted``, too.

        >>> import driftline as dl
        >>> stream = dl.streams.LabelFlips(rounds=2000, flips=1, seed=0)
        >>> dl.OGD(dl.losses.Logistic(stream.task)).run(stream).alarms
        array([1002])
        """
        return alarms_of(self.risk / self.largest_loss, self.sample_weight)

    def summary(self) -> dict[str, float]:
        """Return totals and the share of rounds with an admissible step."""
        return {
            "rounds": len(self),
            "target_loss": float(self.target_loss.sum()),
            "risk": float(self.risk.sum()),
            "loss": float(self.loss.sum()),
            "eta_first": float(self.eta[0]),
            "eta_last": float(self.eta[-1]),
            "admissible": float(self.admissible.mean()),
        }

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def to_frame(self, constructor: Callable[[dict[str, Any]], Made]) -> Made:
        """Return a data frame, as in ``trace.to_frame(pandas.DataFrame)``."""
        columns: dict[str, Any] = self.to_dict()
        if columns["prediction"].ndim > 1:
            columns["prediction"] = list(columns["prediction"])
        return constructor(columns)

    # -- saving

    def save(self, path: str | Path) -> Path:
        """Write the trace to one sealed file of plain data, named ``.npz``; return where it is."""
        return archive.write(with_suffix(path), *self.to_saved())

    @classmethod
    def of(
        cls, batch: Batch, task: Any, config: Json, origin: State | None, digest: str = ""
    ) -> Trace:
        """Return the trace of a run from its rounds."""
        columns: dict[str, Any] = {
            name: batch.columns.get(name) for name in (*COLUMNS[:-1], *OPTIONAL, PROBABILITIES)
        }
        prediction = task.predictions.values(batch["prediction"])
        return cls(**columns, prediction=prediction, origin=origin, config=config, digest=digest)

    def columns(self) -> dict[str, np.ndarray]:
        """Return all columns by name."""
        names = [name for name in OPTIONAL if getattr(self, name) is not None]
        return self.to_dict() | {name: getattr(self, name) for name in names}

    @classmethod
    def join(cls, traces: Sequence[Trace]) -> Trace:
        """Return one trace of rounds that follow each other, with the origin of the first."""
        if any(trace.arrival is not None for trace in traces):
            raise InputError("traces of runs whose labels came late cannot be joined")
        columns: dict[str, Any] = joined([trace.columns() for trace in traces])
        return replace(traces[0], **columns, probabilities=None)

    def to_saved(self) -> Saved:
        """Return everything as plain data and arrays."""
        arrays = self.columns()
        about: Json = {"kind": "Trace", "config": self.config, "digest": self.digest}
        about["origin"] = None
        if self.arrival is not None:
            about["carried"] = self.carried
        if self.origin is not None:
            about["origin"], own = self.origin.to_saved()
            arrays |= {f"{ORIGIN}{name}": array for name, array in own.items()}
        return about, arrays

    @classmethod
    def from_saved(cls, about: Json, arrays: Mapping[str, np.ndarray]) -> Trace:
        """Return the trace from what :meth:`to_saved` returned, if it is valid."""
        config, digest = about["config"], about["digest"]
        if not isinstance(config, dict) or not isinstance(digest, str):
            raise InputError(f"the config must be a table and the digest a text, not {digest!r}")
        origin = _origin(about, arrays)
        known = {name for name in arrays if name.startswith(ORIGIN)} if origin else set()
        if unknown := set(arrays) - {*COLUMNS, *OPTIONAL, *known}:
            raise InputError(f"these are no columns of a trace: {', '.join(sorted(unknown))}")
        rounds = len(column(arrays, "loss", KINDS["loss"], came=slice(0, 0)))
        if rounds == 0:
            raise InputError("a trace has 1 round or more, but this one has none")
        columns: dict[str, Any] = checked(arrays, KINDS, rounds, *OPTIONAL, PROBABILITIES)
        eta, weights = columns["eta"][places(arrays, rounds)], columns.get("sample_weight")
        if not ((eta > 0.0) & (eta < LARGEST_STEP)).all():
            raise InputError(f"steps must be positive and finite, but reach to {eta.max()}")
        if weights is not None and not (weights >= 0.0).all():
            raise InputError("sample weights must be 0 or more")
        if "arrival" in arrays:
            for name in ("known", "arrival_risk"):
                column(arrays, name, KINDS[name], came=slice(0, 0))
            columns["carried"] = about["carried"]
            if type(columns["carried"]) is not int or columns["carried"] < 0:
                raise InputError(f"{columns['carried']!r:.80} labels cannot be carried over")
        chance = columns.get("chance", np.ones(1))
        if not ((chance > 0.0) & (chance <= 1.0 + 1e-9)).all():
            raise InputError("chances of predictions lie above 0, up to 1")
        return cls(**columns, origin=origin, config=config, digest=digest)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what :meth:`save` wrote."""
        return read_file(path, "Trace", cls.from_saved)


def at_most_rounding(
    residual: np.ndarray, loss: np.ndarray, gap: np.ndarray | None = None
) -> np.ndarray:
    """Return where residuals are at most 0, up to the rounding of the losses and solver gaps.

    A small loss is a difference of larger scores, and has their rounding error. A bound adds the
    gaps of losses that may be too large, so that an allowance for them costs it nothing.
    """
    return residual <= 1e-9 * np.maximum(loss, 1e-3) + (0.0 if gap is None else gap)


def batch_name(name: str, batch: int) -> str:
    """Return the name of one batch's column in a file."""
    return f"{name}.batch{batch}"


def with_suffix(path: str | Path) -> Path:
    """Return a path with the suffix of traces."""
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


def read_file(
    path: str | Path, kind: str, make: Callable[[Json, dict[str, np.ndarray]], Made]
) -> Made:
    """Read a trace's file by a function of its content."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        about, arrays = archive.read(path)
    except Exception as error:  # readers may raise anything on a damaged file
        raise InputError(f"{path} is not a trace: {error}") from error
    try:
        if about.get("kind") != kind:
            raise InputError(f"it holds a {about.get('kind')!r}: expected a {kind!r}")
        if BATCHES in about:
            arrays = _joined_batches(arrays, about[BATCHES])
        return make(about, arrays)
    except DAMAGE as error:
        told = error if isinstance(error, InputError) else repr(error)
        raise InputError(f"{path} is not a trace: {told}") from error


def _joined_batches(arrays: dict[str, np.ndarray], count: object) -> dict[str, np.ndarray]:
    """Return the arrays of a streamed file as those of a trace that was saved in whole."""
    if type(count) is not int or not 1 <= count <= len(arrays):
        raise InputError(f"{len(arrays)} arrays cannot be {count!r:.80} batches")
    batches: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
    rest = {}
    for name, array in arrays.items():
        own, _, batch = name.rpartition(".batch")
        if own and batch.isdecimal() and int(batch) < count:
            batches[int(batch)][own] = array
        else:
            rest[name] = array
    shapes = [{name: (a.dtype, a.shape[2:], a.ndim) for name, a in b.items()} for b in batches]
    if any(shape != shapes[0] for shape in shapes) or batches[0].keys() & rest.keys():
        raise InputError("its batches do not have the same columns")
    return rest | joined(batches)


def _origin(about: Json, arrays: Mapping[str, np.ndarray]) -> State | None:
    """Return the state before the first round, if valid; a learner checks it against its parts."""
    if about["origin"] is None:
        return None
    own = {k.removeprefix(ORIGIN): a for k, a in arrays.items() if k.startswith(ORIGIN)}
    origin = State.from_saved(about["origin"], own)
    if origin.model is not None:
        return origin
    if origin.memory is not None:
        if origin.weights is not None or not np.isfinite(origin.memory).all():
            raise InputError("the memory of a learner must have finite numbers only")
        return origin
    if origin.weights is None:
        raise InputError("the origin of the run has no weights")
    with np.errstate(over="ignore", invalid="ignore"):
        weights = origin.scaled_weights
    if not np.isfinite(origin.weights).all() or not np.isfinite(weights).all():  # type: ignore[arg-type]
        raise InputError("first weights must be finite, also when multiplied by their scale")
    return origin
