"""Empty figures, and the colours to draw with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "new_figure"]

#: Colours that most kinds of colour blindness tell apart (Okabe and Ito): blue, orange, green,
#: red, purple, light blue.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure without a window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install matplotlib") from error

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    FigureCanvasAgg(figure)
    return figure
