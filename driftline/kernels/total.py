"""The loss of fixed weights on many rounds, and its gradient.

The weights are those of a comparator, and what moves is the gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from driftline.kernels import dense, sparse
from driftline.kernels import program as at
from driftline.kernels.calls import call_encode, call_loss
from driftline.kernels.compile import helper, kernel, variants
from driftline.kernels.linalg import add_scaled
from driftline.kernels.round import assemble
from driftline.kernels.signatures import TOTAL, TOTAL_SPARSE


def build_total(compare: Callable[..., object], add: Callable[..., object]) -> Callable[..., float]:
    """Make ``total(m, rows, labels)``, which adds up losses, and gradients to ``rows.weights``."""

    @helper
    def total(m, rows, labels):
        sum_of_losses = 0.0
        for t in range(rows.rounds):
            compare(m, rows, t)
            call_encode(m.code[at.ENCODE], (labels[t], m.task, m.target))
            given = (m.encoded, m.target, m.loss, m.work, m.grad)
            sum_of_losses += call_loss(m.code[at.LOSS], given)
            add(m, rows, t, 1.0)
        return sum_of_losses

    return total


@helper
def add_dense(m, rows, t, step):
    """Add the gradient of one row at once."""
    x, gradient = rows.inputs[t], rows.weights
    for k in range(gradient.shape[0]):
        add_scaled(gradient[k, : x.size], step * m.grad[k], x)
        if rows.intercept:
            gradient[k, x.size] += step * m.grad[k]


over_dense = build_total(dense.compare, add_dense)
over_sparse = build_total(sparse.compare, sparse.move)


@kernel(TOTAL)
def total_dense(code, params, inputs, labels, weights, state, buffer, gradient):
    """Add up losses over dense rows; add their gradients to ``gradient``."""
    m, intercept = assemble(code, params, state, buffer, code[at.OUTPUTS]), code[at.INTERCEPT]
    rows = dense.Dense(inputs.shape[0], inputs, gradient, gradient, weights, intercept)
    return over_dense(m, rows, labels)


@variants(TOTAL_SPARSE)
def total_sparse(code, params, values, columns, starts, labels, weights, state, buffer, gradient):
    """Do the same over CSR rows; weights and gradient have a row per feature."""
    m, intercept, rounds = (
        assemble(code, params, state, buffer, code[at.OUTPUTS]),
        code[at.INTERCEPT],
        starts.size - 1,
    )
    rows = sparse.Sparse(rounds, values, columns, starts, gradient, gradient, weights, intercept)
    return over_sparse(m, rows, labels)
