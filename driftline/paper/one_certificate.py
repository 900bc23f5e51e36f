"""One run of an experiment, certified and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftline.certificates import Certificate, certify
from driftline.comparators import Piecewise
from driftline.paper.reproduce import Settings, make_stream

__all__ = ["certify_one"]

#: Norms of the comparator that are tried, as shares of the ball's radius.
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)


def certify_one(settings: Settings, folder: Path) -> tuple[Certificate, Path] | None:
    """Certify and draw the Polyak rate's first trial on the first stream with a comparator.

    The comparator's norm is that of the smallest exact bound. Only experiments that run
    compiled have one; elsewhere None is returned.
    """
    flips = settings.flips[len(settings.flips) // 2]
    for data in settings.data:
        stream, seed = make_stream(settings, data, flips, 0)
        chosen = [m for m in settings.experiment.methods_for(data) if m.name == "Polyak"]
        if stream.comparator is None or not chosen:
            continue
        learner = chosen[0].make(stream.task)
        if not learner.parts.have_kernels:
            return None
        trace = learner.run(stream, seed=seed, audit=True)
        radius: Any = learner.domain.radius
        made = []
        for share in SHARES:
            scaled = stream.comparator.scaled(share * radius / stream.comparator.largest_norm)
            made.append(certify(trace, _fitting(scaled, learner.weights.shape), stream))
        best = min(made, key=lambda certificate: certificate.exact)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "certificate.png"
        best.plot(path)
        return best, path
    return None


def _fitting(comparator: Piecewise, shape: tuple[int, ...]) -> Piecewise:
    """Return the comparator with a column of zeros where the learner has an intercept."""
    missing = shape[1] - comparator.weights.shape[2]
    wider = np.pad(comparator.weights, ((0, 0), (0, 0), (0, missing)))
    return Piecewise(comparator.starts, wider)
