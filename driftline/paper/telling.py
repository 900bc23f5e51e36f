"""An experiment as a report: all methods in one chart, a section for every stream."""

from __future__ import annotations

import numpy as np

from driftline.paper.results import Results
from driftline.reports import ReportData

__all__ = ["sections_of"]


def sections_of(results: Results) -> dict[str, list[ReportData]]:
    """Return the mean curves of all methods over trials, by stream."""
    made = {}
    for data in results.settings["data"]:
        for flips in results.settings["flips"]:
            curves = []
            for method in results.methods():
                runs = results.select(data, flips, method)
                if runs:
                    curve = np.mean([run.curve for run in runs], axis=0)
                    sums = np.diff(curve, prepend=0.0)
                    ends = np.array(results.points)
                    about = {"trials": len(runs), "group": runs[0].group} | results.settings
                    curves.append(ReportData(method, ends, {"loss": sums}, "loss", settings=about))
            many = "change" if flips == 1 else "changes"
            made[f"{data}, {flips} {many}"] = curves
    return made
