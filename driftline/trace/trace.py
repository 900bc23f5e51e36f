"""The record of a run, one row a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from driftline.detectors import alarms_of
from driftline.errors import DAMAGE, InputError
from driftline.parts import from_config
from driftline.state import State, archive
from driftline.trace.batch import Batch
from driftline.typing import Json, Saved

__all__ = [
    "BATCHES",
    "Trace",
    "at_most_rounding",
    "batch_name",
    "column",
    "joined",
    "predictions",
    "read_file",
    "rounds_that_came",
    "with_suffix",
]

COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction")
OPTIONAL = (
    "gap", "restarted", "sample_weight", "arrival", "known", "arrival_risk", "chance", "slack"
)  # fmt: skip

#: The column that is not saved.
PROBABILITIES = "probabilities"

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
        asked, told = late.ask_events, late.tell_events[late.carried :]
        came = told >= 0
        columns: dict[str, Any] = {"prediction": self.prediction[asked]}
        if self.chance is not None:
            columns["chance"] = self.chance[asked]
        if self.slack is not None:
            columns["slack"] = np.where(came[:, np.newaxis], self.slack[told], np.nan)
        for name in ("risk", "target_loss"):
            columns[name] = np.where(came, getattr(self, name)[asked], np.nan)
        for name in ("loss", "eta", "grad_sq", *(["gap"] if self.gap is not None else [])):
            columns[name] = np.where(came, getattr(self, name)[told], np.nan)
        if self.restarted is not None:
            columns["restarted"] = came & self.restarted[told]
        for name in ("sample_weight", "probabilities"):
            if (own := getattr(self, name)) is not None:
                columns[name] = own[asked]
        columns["arrival_risk"] = np.where(came, self.risk[told], np.nan)
        columns["known"] = asked - np.arange(len(asked))
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
        rounds = len(column(arrays, "loss", came=slice(0, 0)))
        if rounds == 0:
            raise InputError("a trace has 1 round or more, but this one has none")
        came = rounds_that_came(arrays, rounds)
        columns: dict[str, Any] = {n: column(arrays, n, rounds, came=came) for n in COLUMNS[:-1]}
        eta = columns["eta"][came]
        if not ((eta > 0.0) & (eta < LARGEST_STEP)).all():
            raise InputError(f"steps must be positive and finite, but reach to {eta.max()}")
        columns["prediction"] = predictions(arrays, rounds)
        if "gap" in arrays:
            columns["gap"] = column(arrays, "gap", rounds, came=came)
        if "restarted" in arrays:
            columns["restarted"] = column(arrays, "restarted", rounds, np.bool_)
        if "sample_weight" in arrays:
            columns["sample_weight"] = column(arrays, "sample_weight", rounds)
            if not (columns["sample_weight"] >= 0.0).all():
                raise InputError("sample weights must be 0 or more")
        if "arrival" in arrays:
            columns["arrival"] = arrays["arrival"]
            columns["known"] = column(arrays, "known", rounds, np.int64)
            columns["arrival_risk"] = column(arrays, "arrival_risk", rounds, came=came)
            columns["carried"] = about["carried"]
            if type(columns["carried"]) is not int or columns["carried"] < 0:
                raise InputError(f"{columns['carried']!r:.80} labels cannot be carried over")
        if "chance" in arrays:
            columns["chance"] = column(arrays, "chance", rounds)
            if not ((columns["chance"] > 0.0) & (columns["chance"] <= 1.0 + 1e-9)).all():
                raise InputError("chances of predictions lie above 0, up to 1")
        if "slack" in arrays:
            columns["slack"] = column(arrays, "slack", rounds, ndims=(2,), came=came)
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


def predictions(arrays: Mapping[str, np.ndarray], rounds: int) -> np.ndarray:
    """Return the column of predictions: whole numbers, or real ones if the task has such."""
    given = arrays.get("prediction")
    real = given is not None and given.dtype == np.float64
    return column(arrays, "prediction", rounds, np.float64 if real else np.int64, (1, 2))


def column(
    arrays: Mapping[str, np.ndarray],
    name: str,
    rounds: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    ndims: tuple[int, ...] = (1,),
    came: slice | np.ndarray = slice(None),
) -> np.ndarray:
    """Return a column of a trace, if its type, its length and its entries are valid.

    ``came`` are the rounds that must have finite numbers: those whose label has come.
    """
    if name not in arrays:
        raise InputError(f"there is no column {name!r}")
    array = arrays[name]
    if array.dtype != dtype or array.ndim not in ndims:
        raise InputError(
            f"the column {name!r} must be {np.dtype(dtype)} in {ndims[-1]} dimensions, but is "
            f"{array.dtype} of shape {array.shape}"
        )
    if rounds is not None and len(array) != rounds:
        raise InputError(
            f"columns differ in length: {name!r} has {len(array)} rounds, not {rounds}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array[came]).all():
        raise InputError(f"the column {name!r} must have finite numbers only")
    return array


def rounds_that_came(arrays: Mapping[str, np.ndarray], rounds: int) -> slice | np.ndarray:
    """Return the rounds whose label has come."""
    if "arrival" not in arrays:
        return slice(None)
    return np.flatnonzero(column(arrays, "arrival", rounds, np.int64) >= 0)


def batch_name(name: str, batch: int) -> str:
    """Return the name of one batch's column in a file."""
    return f"{name}.batch{batch}"


def joined(batches: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the concatenated columns of consecutive batches; rows are padded by -1."""
    made = {}
    if any(batch.keys() != batches[0].keys() for batch in batches):
        raise InputError("traces with different columns, such as sample weights, cannot be joined")
    for name, first in batches[0].items():
        parts = [columns[name] for columns in batches]
        if name.endswith("prediction") and first.ndim == 2:
            width = max(part.shape[1] for part in parts)
            short = [((0, 0), (0, width - part.shape[1])) for part in parts]
            pairs = zip(parts, short, strict=True)
            parts = [np.pad(part, by, constant_values=-1) for part, by in pairs]
        made[name] = np.concatenate(parts)
    return made


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
