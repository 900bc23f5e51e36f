"""The loss of fixed weights on many rounds, and its gradient."""

from __future__ import annotations

from driftline.kernels import program as at
from driftline.kernels.calls import call_encode, call_loss
from driftline.kernels.compile import kernel
from driftline.kernels.linalg import add_scaled, dot
from driftline.kernels.round import assemble
from driftline.kernels.signatures import TOTAL


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
