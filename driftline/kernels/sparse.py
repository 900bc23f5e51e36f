"""The loop over CSR rows. Weights are stored with the scores of a feature side by side.

A round touches only the features it has: its cost is the number of its non-zeros times
the number of scores, however many features there are. With many features the weights are not in the
cache: those of the next row are prefetched before this row's loss and step are computed.
"""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels import signatures as kinds
from driftline.kernels.compile import Kernel
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.inner import inner
from driftline.kernels.linalg import dot
from driftline.kernels.prefetch import prefetch_rows
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


def play_sparse(
    code,
    params,
    values,
    columns,
    starts,
    labels,
    extras,
    weights,
    shadow,
    state,
    buffer,
    trace,
    predictions,
):
    """Play until an alarm or a refused round; return how many rounds were played.

    With an intercept, the last row of weights meets an input of constant 1.
    """
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    rounds = starts.size - 1
    intercept = code[at.INTERCEPT]
    last, outputs = weights.shape[0] - 1, weights.shape[1]
    whole = weights.reshape(1, weights.size)  # one long pass is faster than many short ones
    for t in range(rounds):
        first, stop = starts[t], starts[t + 1]
        input_sq = dot(values[first:stop], values[first:stop]) + intercept
        if not input_sq < FARTHEST_SQ:
            return t
        gather(weights, values, columns, first, stop, m.theta)
        if t + 1 < rounds:
            prefetch_rows(weights, columns, stop, starts[t + 2])
        scale = state[at.SCALE]
        for k in range(outputs):
            m.theta[k] = scale * (m.theta[k] + (weights[last, k] if intercept else 0.0))

        if not play_round(m, labels[t], extras[t], trace, t, predictions[t]):
            return t
        write_scores(m, trace, t)
        if code[at.LOOK] or asks(extras[t]):
            continue
        if shadow.size > 0:
            gather(shadow, values, columns, first, stop, m.encoded)
            if intercept:
                for k in range(outputs):
                    m.encoded[k] += shadow[last, k]
            watch(m, extras[t], trace, t)
        eta = choose_step(m, inner(m.grad, m.grad) * input_sq, input_sq, extras[t], trace, t)
        if eta < 0.0:
            return t
        if eta > 0.0:
            step = -eta / refresh(m.state, eta, trace[at.GRAD_ROW, t], whole)
            for k in range(outputs):
                m.steps[k] = step * m.grad[k]
            scatter(weights, values, columns, first, stop, m.steps)
            if intercept:
                for k in range(outputs):
                    weights[last, k] += m.steps[k]
            finish_step(m, eta, trace[at.GRAD_ROW, t], shadow.size > 0)
        if alarmed(m, extras[t], trace, t):
            return t + 1
    return rounds


play_sparse_32 = Kernel(play_sparse, kinds.SPARSE32)
play_sparse_64 = Kernel(play_sparse, kinds.SPARSE64)
play_sparse_32_single = Kernel(play_sparse, kinds.SPARSE32_SINGLE)
play_sparse_64_single = Kernel(play_sparse, kinds.SPARSE64_SINGLE)
