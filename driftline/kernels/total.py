"""The loss of fixed weights on many rounds, and its gradient."""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.calls import call_encode, call_loss
from driftline.kernels.compile import Kernel, kernel
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.round import assemble
from driftline.kernels.signatures import TOTAL, TOTAL_SPARSE32, TOTAL_SPARSE64


@kernel(TOTAL)
def total_dense(code, params, inputs, labels, weights, state, buffer, gradient):
    """Add up losses over dense rows; add their gradients to ``gradient``."""
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    features = inputs.shape[1]
    intercept = code[at.INTERCEPT]
    total = 0.0
    for t in range(inputs.shape[0]):
        x = inputs[t]
        for k in range(weights.shape[0]):
            m.theta[k] = dot(weights[k, :features], x)
            if intercept:
                m.theta[k] += weights[k, features]
        call_encode(code[at.ENCODE], (labels[t], m.task, m.target))
        total += call_loss(code[at.LOSS], (m.theta, m.target, m.loss, m.work, m.grad))
        for k in range(weights.shape[0]):
            if m.grad[k] != 0.0:
                add_scaled(gradient[k, :features], m.grad[k], x)
                if intercept:
                    gradient[k, features] += m.grad[k]
    return total


def total_sparse(code, params, values, columns, starts, labels, weights, state, buffer, gradient):
    """Do the same over CSR rows; weights and gradient have a row per feature."""
    m = assemble(code, params, state, buffer, code[at.OUTPUTS])
    last, outputs = weights.shape[0] - 1, weights.shape[1]
    intercept = code[at.INTERCEPT]
    total = 0.0
    for t in range(starts.size - 1):
        first, stop = starts[t], starts[t + 1]
        gather(weights, values, columns, first, stop, m.theta)
        if intercept:
            for k in range(outputs):
                m.theta[k] += weights[last, k]
        call_encode(code[at.ENCODE], (labels[t], m.task, m.target))
        total += call_loss(code[at.LOSS], (m.theta, m.target, m.loss, m.work, m.grad))
        scatter(gradient, values, columns, first, stop, m.grad)
        if intercept:
            for k in range(outputs):
                gradient[last, k] += m.grad[k]
    return total


total_sparse_32 = Kernel(total_sparse, TOTAL_SPARSE32)
total_sparse_64 = Kernel(total_sparse, TOTAL_SPARSE64)
