"""The laws of rates and detectors."""

from __future__ import annotations

import numpy as np

from driftline.checks.base import law
from driftline.detectors import Detector
from driftline.rates import Rate, Setting, StepRange

__all__ = ["check_detector", "check_rate"]


def check_rate(rate: Rate, setting: Setting | None = None, *, seed: int = 0) -> None:
    """Check a rate: steps are finite, in their range, and the same when rounds are repeated.

    ``setting`` has the constants of the other parts; by default a rate floor of 0.5 and a diameter
    of 20.

    >>> import driftline as dl
    >>> check_rate(dl.rates.Polyak())
    """
    setting = Setting(0.5, 20.0, True) if setting is None else setting
    rate.check(setting)
    first = rate.first(setting)
    made = rate.step_range(setting)
    law(0.0 < first < np.inf, "what rounds before the first step record is positive", first=first)
    runs = []
    for _ in range(2):
        generator, memory = np.random.default_rng(seed), np.array(rate.memory(setting), float)
        eta, steps = first, list[float]()
        for _ in range(200):
            loss = float(generator.exponential())
            risk = float(loss * generator.uniform(0.0, 0.9))
            grad_sq = float(min(4.0 * (loss - risk), generator.exponential()))
            step = rate.next(loss, risk, grad_sq, 1.0, eta, setting, memory)
            seen = {"loss": loss, "risk": risk, "grad_sq": grad_sq, "step": step}
            law(0.0 <= step < np.inf, "steps are finite and not negative", **seen)
            if step > 0.0:
                _in_range(made, steps, **seen)
                eta = step
            steps.append(step)
        runs.append(steps)
    law(runs[0] == runs[1], "all that a rate remembers is in its memory", rate=rate)


def _in_range(made: StepRange, past: list[float], **seen: float) -> None:
    """Check that a step, for an input of norm 1, is in the range that the rate states."""
    step, slack = seen["step"], 1.0 + 1e-9
    low = made.least(1.0) <= step * slack
    law(low and step <= made.most * slack, "steps lie between least and most", range=made, **seen)
    allowed = 2.0 * (seen["loss"] - seen["risk"]) / seen["grad_sq"]
    within = made.norm < 1.0 or step <= allowed * slack
    law(within, "steps are admissible up to this norm of inputs", range=made, **seen)
    before = min((s for s in past if s > 0.0), default=np.inf)
    law(not made.monotone or step <= before * slack, "steps never grow", range=made, **seen)


def check_detector(detector: Detector, *, seed: int = 0) -> None:
    """Check a detector: the same losses give the same alarms, also in pieces.

    >>> import driftline as dl
    >>> check_detector(dl.detectors.Cusum())
    """
    losses = np.random.default_rng(seed).random(400) ** 2
    losses[200:] = np.sqrt(losses[200:])
    whole = detector.alarms(losses)
    law(
        np.array_equal(whole, detector.alarms(losses)),
        "all that a detector remembers is in its memory",
        detector=detector,
    )
    if len(whole):
        rest = detector.alarms(losses[whole[0] + 1 :]) + whole[0] + 1
        words = "a detector begins afresh after an alarm"
        law(np.array_equal(rest, whole[1:]), words, whole=whole, rest=rest)
