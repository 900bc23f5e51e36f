"""What happened in a committee, one row a round."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftline.committee.shares import Shares
from driftline.errors import InputError
from driftline.models import Standardiser
from driftline.trace import Trace, check_lengths

__all__ = ["CommitteeTrace", "First"]

COLUMNS = ("risk", "target_loss", "prediction", "weights", "member_risk")


class First(NamedTuple):
    """What a committee was before the first round: what an audit starts from.

    ``combine`` is how it predicts, ``rounds`` how many it had played; its weights and its
    scaling, None without one, have not seen the run; ``digest`` is that of the stream.
    """

    combine: str
    rounds: int
    shares: Shares
    scaling: Standardiser | None
    digest: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class CommitteeTrace:
    """The record of a committee's run.

    ``target_loss`` and ``risk`` are the committee's own; for a vote, which is certain, they are the
    same. ``weights`` has a row of the members' weights before every round, ``member_risk`` a
    row of their expected losses; ``members`` are their own traces, with losses, steps and
    gradients. ``first`` is what the committee was before, so that the run can be audited.
    """

    risk: np.ndarray
    target_loss: np.ndarray
    prediction: np.ndarray
    weights: np.ndarray
    member_risk: np.ndarray
    members: tuple[Trace, ...]
    first: First | None = None

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.risk)

    def __repr__(self) -> str:
        """Name the rounds and the totals."""
        return (
            f"CommitteeTrace({len(self)} rounds, {len(self.members)} members, target loss "
            f"{self.target_loss.sum():g}, best member {self.member_risk.sum(axis=0).min():.6g})"
        )

    @property
    def average(self) -> np.ndarray:
        """The weighted average of the members' risks, which drawing a member would pay."""
        return (self.weights * self.member_risk).sum(axis=1)

    def scaled(self, inputs: Any) -> Any:
        """Return the inputs of the run as members saw them, which comparators act on."""
        if self.first is None or self.first.scaling is None:
            return inputs
        return self.first.scaling.copy().transform(inputs)

    def save(self, path: str | Path) -> Path:
        """Write the trace as a compressed ``.npz`` file without pickled objects."""
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        arrays = {name: getattr(self, name) for name in COLUMNS}
        about: dict[str, Any] = {"members": len(self.members)}
        if self.first is not None:
            combine, rounds, shares, scaling, digest = self.first
            about |= {"combine": combine, "rounds": rounds, "digest": digest}
            arrays["shares"] = shares.state
            if scaling is not None:
                about["scaling"] = scaling.config()
                arrays["scaling"] = scaling.state
        for j, member in enumerate(self.members):
            arrays |= {f"{j}.{name}": column for name, column in member.arrays().items()}
        np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)
        return path

    @classmethod
    def load(cls, path: str | Path) -> CommitteeTrace:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            about = json.loads(str(arrays["about"]))
            members = [_part(arrays, f"{j}.") for j in range(about["members"])]
            trace = cls(
                **{name: arrays[name] for name in COLUMNS},
                members=tuple(Trace.from_arrays(member) for member in members),
                first=_first(arrays, about),
            )
        except FileNotFoundError:
            raise
        except Exception as error:
            raise InputError(f"{path} is not a committee's trace: {error}") from error
        check_lengths(path, {name: getattr(trace, name) for name in COLUMNS})
        return trace


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _first(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> First | None:
    if "combine" not in about:
        return None
    shares, scaling = Shares(about["members"]), None
    shares.state[:] = arrays["shares"]
    if "scaling" in about:
        scaling = Standardiser.from_config(about["scaling"], arrays["scaling"])
    return First(about["combine"], about["rounds"], shares, scaling, about["digest"])
