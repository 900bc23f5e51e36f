"""Every pair of decoder and rate on the stream of the lower bound."""

from __future__ import annotations

import math

import numpy as np

from driftline.certificates import certify
from driftline.decoders import Argmax, Decoder, GapOptimal, StepOptimal, UniformMix
from driftline.errors import NoGuaranteeError
from driftline.learner import OGD
from driftline.losses import Scaled, SmoothHinge
from driftline.rates import AdaGrad, Constant, Polyak, Rate
from driftline.streams import LowerBound
from driftline.streams.base import check_count
from driftline.tasks import Multiclass
from driftline.typing import Json

__all__ = ["play_lower_bound"]

FACTOR = 4.0


def _decoders() -> dict[str, Decoder]:
    loss = SmoothHinge(Multiclass(2))
    return {
        "gap-optimal": GapOptimal(loss),
        "uniform mix": UniformMix(loss),
        "step-optimal": StepOptimal(loss),
        f"argmax of {FACTOR:g} L": Argmax(Scaled(loss, FACTOR)),
    }


def _rates() -> dict[str, Rate]:
    return {
        "constant": Constant(),
        "AdaGrad": AdaGrad(),
        "Polyak": Polyak(),
        "free Polyak": Polyak(monotone=False),
    }


def play_lower_bound(
    rounds_fixed: int = 500, rounds_path: int = 500, seeds: int = 10
) -> list[Json]:
    """Play the lower bound's stream with all pairs of decoder and rate.

    Parameters
    ----------
    rounds_fixed, rounds_path
        The stream's two lengths.
    seeds
        How many streams; at least 2, for a standard error.

    Returns
    -------
    list of dict
        For every pair: the mean ``target_loss`` and the mean expected one, ``risk``, each a share
        of all rounds and with its standard error over the seeds (``error``, ``risk_error``); the
        comparator's loss and path as ``F / rounds_fixed`` and ``P / rounds_path`` (at most 3 and
        the root of 2); ``lower``, the mean of (F + P) / 6, and ``upper``, that of the worst case
        of the theorem (None without one), again as shares of all rounds. F is that of the plain
        smooth hinge; ``upper`` has that of the scaled one where the loss is scaled.
    """
    seeds = check_count(seeds, 2, "seeds")
    streams = [LowerBound(rounds_fixed, rounds_path, seed) for seed in range(seeds)]
    rows = []
    for name, decoder in _decoders().items():
        for rate_name, rate in _rates().items():
            runs = [_play(decoder, rate, s, k) for k, s in enumerate(streams)]
            target, risk, F, P, upper = (np.array(column) for column in zip(*runs, strict=True))
            T = len(streams[0])
            rows.append(
                {
                    "decoder": name,
                    "rate": rate_name,
                    "target_loss": float(target.mean()) / T,
                    "error": _error(target) / T,
                    "risk": float(risk.mean()) / T,
                    "risk_error": _error(risk) / T,
                    "F / rounds_fixed": float(F.mean()) / rounds_fixed if rounds_fixed else 0.0,
                    "P / rounds_path": float(P.mean()) / rounds_path if rounds_path else 0.0,
                    "lower": float((F + P).mean()) / 6.0 / T,
                    "upper": None if np.isnan(upper).any() else float(upper.mean()) / T,
                }
            )
    return rows


def _play(decoder: Decoder, rate: Rate, stream: LowerBound, seed: int) -> tuple[float, ...]:
    """Return target loss, risk, F, P and the worst case of one run."""
    learner = OGD(decoder.loss, decoder, rate, stream.domain)
    learner.watch(stream.comparator)
    learner.run(stream, seed=seed)
    made = certify(learner)
    try:
        upper = made.worst_case
    except NoGuaranteeError:
        upper = math.nan
    factor = decoder.loss.factor if isinstance(decoder.loss, Scaled) else 1.0
    return made.sampled, made.expected, made.comparator_loss / factor, made.path_length, upper


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))
