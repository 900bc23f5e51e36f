"""What happened, one row a round."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from driftline.errors import InputError

__all__ = ["Trace", "check_lengths"]

COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction")
OPTIONAL = ("first_weights", "gap", "restarted")


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The record of a run: what plots, reports and certificates read.

    Per round: the surrogate ``loss``; the ``risk``, which is the expected target loss; the
    ``target_loss`` of the ``prediction`` that was drawn; the step ``eta`` (that of the round
    before where no step was made); the squared norm ``grad_sq`` of the gradient in the
    weights; where a solver was at work, the duality ``gap`` it left; where a detector was, whether
    the learner had ``restarted`` before the round. Beside these, the
    learner's ``config``, the weights before the first round (None where keeping them was too
    much) and a digest of the stream, so that the run can be replayed and audited.
    """

    loss: np.ndarray
    risk: np.ndarray
    target_loss: np.ndarray
    eta: np.ndarray
    grad_sq: np.ndarray
    prediction: np.ndarray
    first_weights: np.ndarray | None = None
    gap: np.ndarray | None = None
    restarted: np.ndarray | None = None
    config: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.loss)

    def __repr__(self) -> str:
        """Name the rounds and the totals."""
        return (
            f"Trace({len(self)} rounds, target loss {self.target_loss.sum():g}, "
            f"risk {self.risk.sum():.6g}, surrogate loss {self.loss.sum():.6g})"
        )

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
        """Whether each round's step was at most the upper end of its range, up to rounding."""
        return self.residual <= 1e-9 * np.maximum(self.loss, 1e-9)

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

    def to_frame(self, constructor: Callable[[dict[str, Any]], Any]) -> Any:
        """Return a data frame, as in ``trace.to_frame(pandas.DataFrame)``."""
        columns: dict[str, Any] = self.to_dict()
        if columns["prediction"].ndim > 1:
            columns["prediction"] = list(columns["prediction"])
        return constructor(columns)

    def save(self, path: str | Path) -> Path:
        """Write the trace as a compressed ``.npz`` file without pickled objects."""
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        np.savez_compressed(path, **self.arrays())
        return path

    def arrays(self) -> dict[str, Any]:
        """Return everything as plain arrays by name."""
        about = json.dumps({"config": self.config, "digest": self.digest})
        columns: dict[str, Any] = self.to_dict() | {"about": np.array(about)}
        for name in OPTIONAL:
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        return columns

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Trace:
        """Return the trace that :meth:`arrays` was made from."""
        columns = {name: arrays[name] for name in COLUMNS}
        columns |= {name: arrays[name] for name in OPTIONAL if name in arrays}
        about = json.loads(str(arrays["about"]))
        return cls(**columns, config=about["config"], digest=about["digest"])

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                trace = cls.from_arrays(file)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise InputError(f"{path} is not a trace: {error}") from error
        check_lengths(path, trace.to_dict())
        return trace


def check_lengths(path: str | Path, columns: Mapping[str, np.ndarray]) -> None:
    """Refuse columns that differ in length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{path} is not a trace: its columns differ in length, {lengths}")
