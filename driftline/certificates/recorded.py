"""The learner of a trace, rebuilt from its config and origin, both of which are checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftline.decoders import Decoder
from driftline.domains import Domain
from driftline.errors import DAMAGE, InputError
from driftline.inputs import Rows
from driftline.learner import OGD
from driftline.losses import Loss
from driftline.parts import from_config
from driftline.rates import Rate
from driftline.state import Draws, State
from driftline.state.loading import single_kind
from driftline.tasks import Task
from driftline.trace import Trace
from driftline.typing import CheckedLabels, Inputs, Json, Labels

__all__ = ["as_rows", "feedback_of", "learner_of", "makes_steps", "stream_of", "uniforms_of"]

KINDS: dict[str, type] = {"loss": Loss, "decoder": Decoder, "rate": Rate, "domain": Domain}


def stream_of(
    trace: Trace, task: Task, inputs: Inputs, labels: Labels
) -> tuple[Rows, CheckedLabels]:
    """Return the rows and labels of a trace's rounds, if these can be its rounds."""
    rows, labels = task.layout.rows(inputs), task.labels.check_all(labels)
    if not rows.rounds == len(labels) == len(trace):
        raise InputError(
            f"the trace has {len(trace)} rounds, but there are {rows.rounds} inputs and "
            f"{len(labels)} labels"
        )
    rows.check_labels(labels)
    if (width := task.predictions.width(labels)) != (own := as_rows(trace.prediction).shape[1]):
        raise InputError(
            f"predictions of {task!r} have {width} numbers here, but the trace has {own}"
        )
    dtype = np.dtype(task.predictions.dtype)
    if trace.prediction.dtype != dtype:
        raise InputError(
            f"predictions of {task!r} must be {dtype}, but the trace has {trace.prediction.dtype}"
        )
    return rows, labels


def makes_steps(trace: Trace) -> bool:
    """Return whether the learner of a trace makes gradient steps; others are played again."""
    if not trace.config:
        raise InputError("the trace does not say which learner made it")
    steps: bool = single_kind(trace.config.get("kind", "OGD"))._fixed.steps
    return steps


def feedback_of(trace: Trace) -> str:
    """Return what the learner of a trace learned from: see :class:`~driftline.learner.Member`."""
    feedback: str = single_kind(trace.config.get("kind", "OGD"))._fixed.feedback
    return feedback


def learner_of(trace: Trace, replay: bool = True) -> Any:
    """Return a learner from the config of a trace, in the state before the first round.

    With ``replay`` it repeats recorded steps, else it makes its own.
    """
    steps = makes_steps(trace)
    if trace.origin is None:
        raise InputError(
            "the trace has no first weights, so it cannot be replayed: run with audit=True"
        )
    if steps:
        return _stepping(trace.config, trace.origin, replay)
    try:
        made = single_kind(trace.config["kind"]).from_config(trace.config)
        made.restore(trace.origin)
        return made
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"the trace is of a learner that cannot be made: {error!r}") from error


def _stepping(config: Json, origin: State, replay: bool) -> OGD:
    """Return a learner that makes gradient steps."""
    if origin.weights is None:
        raise InputError("the origin of the run has no weights")
    rows = origin.weights.shape[1 if origin.transposed else 0]
    try:
        loss = from_config(config["loss"])  # first, since its task limits the size of others
        if (expected := loss.task.layout.weight_rows) != rows:
            raise InputError(f"{loss.task!r} has weights of {expected} rows, not {rows}")
        parts: dict[str, Any] = {name: from_config(config[name]) for name in KINDS}
        for name, kind in KINDS.items():
            if not isinstance(parts[name], kind):
                raise InputError(f"{parts[name]!r} is no {name} of a learner")
        restart, intercept = from_config(config["restart"]), config["intercept"]
        if not isinstance(intercept, bool):
            raise InputError(f"intercept must be True or False, not {intercept!r}")
        dtype = origin.weights.dtype
        if config["dtype"] != dtype.name:
            raise InputError(f"weights are {dtype}, but the learner had {config['dtype']!r}")
        features = from_config(config.get("features"))
        made = OGD(**parts, restart=restart, intercept=intercept, features=features, dtype=dtype)
        if replay:
            made.engine = type(made.engine)(made.parts, replay=True, dtype=made.engine.dtype)
        made.restore(origin)
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"the trace is of a learner that cannot be made: {error!r}") from error
    return made


def uniforms_of(key: Any, first: int, count: int) -> np.ndarray:
    """Return the random numbers of ``count`` rounds."""
    return Draws(key).uniforms(first, count)


def as_rows(predictions: np.ndarray) -> np.ndarray:
    """Return predictions as a matrix with a row for each."""
    return predictions[:, np.newaxis] if predictions.ndim == 1 else predictions
