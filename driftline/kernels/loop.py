"""The loop over rounds, whatever their rows are: predict, see the label, pay, learn.

What depends on the kind of rows are five helpers. They get the machine ``m``, the named tuple
``rows`` of this kind, and the number ``t`` of the round:

- ``enter(given, rows, labels, t)`` returns the machine for as many scores as a round has, and the
  label;
- ``score(m, rows, t)`` writes scores to ``m.theta``, and returns the squared norm of the input;
- ``compare(m, rows, t)`` writes the comparator's scores to ``m.encoded``;
- ``slope(m, rows, t, input_sq)`` returns the squared norm of the gradient in the weights, from that
  in the scores, ``m.grad``;
- ``move(m, rows, t, step)`` adds ``step`` times this gradient to the weights.
"""

from __future__ import annotations

from collections.abc import Callable

from driftline.kernels import program as at
from driftline.kernels.compile import helper
from driftline.kernels.inner import inner
from driftline.kernels.round import (
    FARTHEST_SQ,
    alarmed,
    asks,
    assemble,
    choose_step,
    finish_step,
    play_round,
    refresh,
    watch,
    write_scores,
)

__all__ = [
    "LEFT_OUT",
    "MOVED",
    "build_loop",
    "build_round",
    "enter_group",
    "enter_row",
    "slope_of_row",
]


#: What came of a round: it was refused; it made no step, or one; it gave an alarm.
LEFT_OUT, IDLE, MOVED, ALARMED = range(-1, 3)


def build_round(
    score: Callable[..., object],
    compare: Callable[..., object],
    slope: Callable[..., object],
    move: Callable[..., object],
) -> Callable[..., int]:
    """Make one round: ``play(m, rows, t, label, extra, trace, column, prediction) -> outcome``.

    Its record goes to a column of the trace.
    """

    @helper
    def play(m, rows, t, label, extra, trace, column, prediction):
        input_sq = score(m, rows, t)
        if not input_sq < FARTHEST_SQ:
            return LEFT_OUT
        if not play_round(m, label, extra, trace, column, prediction):
            return LEFT_OUT
        write_scores(m, trace, column)
        if m.code[at.LOOK] or asks(extra):
            return IDLE
        watched = rows.shadow.size > 0
        if watched:
            compare(m, rows, t)
            watch(m, extra, trace, column)
        grad_sq = slope(m, rows, t, input_sq)
        eta = choose_step(m, grad_sq, input_sq, extra, trace, column)
        if eta < 0.0:
            return LEFT_OUT
        if eta > 0.0:
            move(m, rows, t, -eta / refresh(m.state, eta, grad_sq, rows.whole))
            finish_step(m, eta, grad_sq, watched)
        if alarmed(m, extra, trace, column):
            return ALARMED
        return MOVED if eta > 0.0 else IDLE

    return play


def build_loop(enter: Callable[..., object], play: Callable[..., int]) -> Callable[..., int]:
    """Make the loop over a kind of rows: ``loop(given, rows, labels, extras, trace, predictions)``.

    What is given goes to ``enter``: a machine, or what it is assembled from for each round.
    It plays until an alarm or a refused round, and returns how many rounds were played.
    """

    @helper
    def loop(given, rows, labels, extras, trace, predictions):
        for t in range(rows.rounds):
            m, label = enter(given, rows, labels, t)
            outcome = play(m, rows, t, label, extras[t], trace, t, predictions[t])
            if outcome == LEFT_OUT:
                return t
            if outcome == ALARMED:
                return t + 1
        return rows.rounds

    return loop


@helper
def enter_row(m, rows, labels, t):
    """Enter a round of one row: all rounds have the same number of scores."""
    return m, labels[t]


@helper
def enter_group(given, rows, labels, t):
    """Enter a round of several rows, each with a score for every tag, and then those of pairs."""
    first, stop = rows.starts[t], rows.starts[t + 1]
    return assemble(*given, (stop - first + rows.pairs) * rows.tags), labels[first:stop]


@helper
def slope_of_row(m, rows, t, input_sq):
    """Return the squared norm of the outer product of a gradient in the scores and a row."""
    return inner(m.grad, m.grad) * input_sq
