"""The fixed shapes of kernels: what each kind of part must be able to do.

All vectors are float64 and contiguous, all labels and predictions int64. Output
buffers come last and belong to the caller. Nothing here draws random numbers.
"""

import numpy as np

from driftline.kernels.backend import Signature, types

vector = types.Array(types.float64, 1, "C")
integers = types.Array(types.int64, 1, "C")
flags = types.Array(types.boolean, 1, "C")
matrix = types.Array(types.float64, 2, "C")
labels = predictions = types.Array(types.int64, 2, "C")

#: The types of weights, and those of the columns of sparse rows. Where a kernel has a signature for
#: each, they are dictionaries with these keys, or pairs of them.
NUMBERS: dict[np.dtype, types.Type] = {
    np.dtype(np.float64): types.float64,
    np.dtype(np.float32): types.float32,
}
INDICES: dict[np.dtype, types.Type] = {
    np.dtype(np.int32): types.int32,
    np.dtype(np.int64): types.int64,
}

#: ``encode(label, params, target) -> offset``: write rho(y), return c(y).
ENCODE = types.float64(integers, vector, vector)

#: ``encode_loss(prediction, params, out)``: write the loss encoding of a prediction.
ENCODE_LOSS = types.void(integers, vector, vector)

#: ``draw(mean, params, uniforms, scratch, prediction, encoded)``: draw a prediction whose
#: expected loss encoding is ``mean`` by one uniform number, and write its own loss encoding.
DRAW = types.void(vector, vector, vector, vector, integers, vector)

#: ``loss(theta, target, params, work, grad) -> value``: also fills ``work`` with what
#: depends on the scores alone, for ``values`` and the decoder.
LOSS = types.float64(vector, vector, vector, vector, vector)

#: ``values(theta, params, work, values, squares)``: for every label, the loss and the
#: squared norm of its gradient.
VALUES = types.void(vector, vector, vector, vector, vector)

#: ``mix(values, squares, params, wrong)``: from the losses of all labels to the
#: probability that each label would be missed.
MIX = types.void(vector, vector, vector, vector)

#: ``decode(theta, target, offset, params, work, values, loss_params, mix, scratch, mean)
#: -> risk``: write the expected loss encoding, return the expected target loss to full
#: relative precision. ``values`` and ``mix`` are addresses.
DECODE = types.float64(
    vector,
    vector,
    types.float64,
    vector,
    vector,
    types.int64,
    vector,
    types.int64,
    vector,
    vector,
)

#: ``rate(loss, risk, grad_sq, input_sq, previous, params, state) -> eta``; 0 for no step.
RATE = types.float64(
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    types.float64,
    vector,
    vector,
)

#: ``detect(loss, params, memory) -> alarm``: the loss is divided by the task's largest loss.
DETECT = types.boolean(types.float64, vector, vector)

#: ``find(losses, params, alarms)``: the same, round after round; ``alarms`` is a log of them.
ALARMS = types.void(vector, vector, vector)


def _input(dtype: types.Type, ndim: int) -> types.Array:
    """Users' own arrays, which may be read-only."""
    return types.Array(dtype, ndim, "C", readonly=True)


def _loop(*given: types.Type, weights: types.Type, labels: types.Type = integers) -> Signature:
    """``play(code, params, given, labels, extras, weights, shadow, state, buffer, trace,
    predictions) -> rounds played``. ``given`` are the rows, as a tuple; labels of rounds of several
    rows stand one after the other. ``extras`` has the uniform number of every round, beside it its
    sample weight unless all are 1, and then 1 if it is predicted only; ``shadow`` has a
    comparator's weights, or no entries.
    """  # noqa: D205
    return types.int64(
        integers,
        vector,
        types.BaseTuple.from_types(given),
        labels,
        matrix,
        weights,
        matrix,
        vector,
        vector,
        types.Array(types.float64, 2, "A"),
        predictions,
    )


def _csr(number: types.Type, index: types.Type) -> tuple[types.Type, ...]:
    """Values, columns, starts."""
    return _input(number, 1), _input(index, 1), _input(index, 1)


#: The loop over dense rows. Rows of weights may have room between them.
DENSE = {
    dtype: _loop(_input(number, 2), weights=types.Array(number, 2, "A"), labels=labels)
    for dtype, number in NUMBERS.items()
}

#: The loop over sequences of positions (all positions, where each sequence starts), or of items.
CHAINS = {
    dtype: _loop(_input(number, 2), _input(types.int64, 1), weights=types.Array(number, 2, "A"))
    for dtype, number in NUMBERS.items()
}

#: The loop over CSR rows, by the types of values and of columns.
SPARSE = {
    (dtype, place): _loop(*_csr(number, index), weights=types.Array(number, 2, "C"), labels=labels)
    for dtype, number in NUMBERS.items()
    for place, index in INDICES.items()
}

#: The loop over sequences of CSR positions; where sequences start, and how many features there are.
SPARSE_CHAINS = {
    (dtype, place): _loop(
        *_csr(number, index),
        _input(types.int64, 1),
        types.int64,
        weights=types.Array(number, 2, "C"),
    )
    for dtype, number in NUMBERS.items()
    for place, index in INDICES.items()
}


def _keyed(number: types.Type) -> Signature:
    """``play(code, params, inputs, slots, labels, extras, weights, states, buffer, trace,
    predictions, begins, shared, shared states, shared trace, starts) -> rounds played``; slots say
    whose round each is, and predictions have one row more than there are rounds. Weights
    have the layout of those of :data:`DENSE`, with which norms are summed in the same order.
    """  # noqa: D205
    weights, trace = types.Array(number, 3, "A"), types.Array(types.float64, 2, "A")
    return types.int64(
        integers,
        vector,
        _input(number, 2),
        _input(types.int64, 1),
        labels,
        matrix,
        weights,
        matrix,
        vector,
        trace,
        predictions,
        _input(types.int64, 1),
        weights,
        matrix,
        trace,
        matrix,
    )


#: The loop over dense rows of many learners.
KEYED = {dtype: _keyed(number) for dtype, number in NUMBERS.items()}


def _settings(number: types.Type) -> Signature:
    """``play(codes, params, inputs, labels, extras, weights, states, buffers, traces, predictions,
    played)``; all but inputs, labels and extras have a row or a matrix for every setting.
    """  # noqa: D205
    return types.void(
        types.Array(types.int64, 2, "C"),
        matrix,
        _input(number, 2),
        labels,
        matrix,
        types.Array(number, 3, "A"),
        matrix,
        matrix,
        types.Array(types.float64, 3, "A"),
        predictions,
        integers,
    )


#: The loop over dense rows for many settings of a learner.
SETTINGS = {dtype: _settings(number) for dtype, number in NUMBERS.items()}

#: ``find(keys, salt, known, slots, out) -> missing``: the slots of keys by a hash table, whose size
#: is a power of two; -1 for one that is not there.
FIND = types.int64(
    _input(types.int64, 1), types.int64, integers, types.Array(types.int32, 1, "C"), integers
)
#: ``put(keys, given, salt, known, slots)``: add new keys to the table, with their slots.
PUT = types.void(
    _input(types.int64, 1),
    _input(types.int64, 1),
    types.int64,
    integers,
    types.Array(types.int32, 1, "C"),
)

#: ``first(slots, first)``: the first row of every slot, where ``first`` was -1.
FIRST_ROWS = types.void(_input(types.int64, 1), integers)

#: ``draw(keys, slots, numbers, out)``: the next uniform numbers of many Philox streams, whose keys
#: have two words each.
PHILOX = types.void(types.Array(types.uint64, 2, "C"), _input(types.int64, 1), integers, matrix)

#: ``together(loop, learners) -> played``: one dense round of several learners, a row each.
TOGETHER = types.int64(types.int64, types.Array(types.int64, 2, "C"))


def _total(*inputs: types.Type) -> Signature:
    """``total(code, params, *inputs, labels, weights, state, buffer, gradient) -> loss``."""
    return types.float64(integers, vector, *inputs, labels, matrix, vector, vector, matrix)


#: The loss of fixed weights on dense rows, and on CSR rows.
TOTAL = _total(_input(types.float64, 2))
TOTAL_SPARSE = {place: _total(*_csr(types.float64, index)) for place, index in INDICES.items()}

#: ``point(point, params, scratch, out)``: a polytope's oracle or projection.
POINT = types.void(vector, vector, vector, vector)

#: ``shares(losses, largest, sample_weight, grid, state, work, weights, surrogate, nats, beliefs,
#: params, log, rounds, paid)``: the weights of members, round after round; beliefs, if there are
#: any, from surrogate losses; and a log of alarms, where the weighted mean of losses rises. Where
#: labels come late, the round of every event and what sets paid for each.
SHARES = types.void(
    matrix,
    types.float64,
    vector,
    matrix,
    vector,
    vector,
    matrix,
    matrix,
    vector,
    vector,
    matrix,
    vector,
    vector,
    integers,
    matrix,
)

#: ``mix(scores, losses, labels, cost, sample weights, grid, state, calibration, work, weights,
#: probabilities, predictions, theirs, params, alarms, rounds, kept)``: scores by round, label and
#: member; see :mod:`driftline.committee.mixture`.
MIXTURE = types.void(
    types.Array(types.float64, 3, "C"),
    matrix,
    integers,
    types.float64,
    vector,
    matrix,
    vector,
    vector,
    vector,
    matrix,
    matrix,
    predictions,
    predictions,
    vector,
    vector,
    integers,
    matrix,
)

#: ``watch(scores, champion, labels, uniforms, sample weights, kinds, params, state, work, played,
#: paid, book, rounds, kept)``: see :mod:`driftline.committee.guard`.
GUARD = types.void(
    types.Array(types.float64, 3, "C"),
    predictions,
    integers,
    vector,
    vector,
    integers,
    vector,
    vector,
    vector,
    predictions,
    matrix,
    matrix,
    integers,
    matrix,
)

#: ``walk(cells, tops, ends, codes, events, asked, of labels, inside, coverage, account, counts,
#: sums, made)``: see :mod:`driftline.sets.level`.
LEVEL = types.void(
    *(predictions, integers, integers, integers, integers, flags, integers, flags),
    *(types.float64, vector, vector, vector, types.Array(types.boolean, 2, "C")),
)

#: ``balance(given, sample weights, params, state, paid, rounds, kept)``: see
#: :mod:`driftline.committee.one_book`.
BALANCE = types.void(matrix, vector, vector, vector, matrix, integers, matrix)

#: ``vote(predictions, weights, params, behind, out)``: from the members' labels, round after round.
VOTE = types.void(predictions, matrix, vector, vector, predictions)

#: ``pool(scores, weights, room, out)``: from the scores of rounds, members and labels to the
#: logarithms of mean probabilities.
POOL = types.void(types.Array(types.float64, 3, "C"), matrix, vector, matrix)

#: ``best(scores, code, params, room, out)``: the best vertex for every row of scores, as a
#: prediction; and ``average(predictions, weights, code, params, room, out)``, that for the mean
#: encoding of the members' predictions (members, rounds, numbers).
BEST = types.void(matrix, integers, vector, vector, predictions)
AVERAGE = types.void(
    types.Array(types.int64, 3, "C"), matrix, integers, vector, vector, predictions
)

#: ``losses(predictions, labels, code, params, room, out)``: the target loss of every prediction.
LOSSES = types.void(predictions, labels, integers, vector, vector, vector)

#: ``losses(predictions, labels, starts, params, room, out)``: the same where sizes differ, with
#: padded predictions, and labels one after the other.
LISTED_LOSSES = types.void(predictions, integers, integers, vector, vector, vector)

#: ``top(scores, params, out)``: the prediction of highest score, row after row.
TOP = types.void(matrix, vector, predictions)

#: ``scale(inputs, state, room, learning, out) -> rows``: standardise rows as they come, if all are
#: finite, and learn from those of which ``learning`` says so.
SCALE = types.int64(_input(types.float64, 2), vector, vector, flags, matrix)
SCALE_SINGLE = types.int64(
    _input(types.float64, 2), vector, vector, flags, types.Array(types.float32, 2, "C")
)

#: ``scale(inputs, starts, state, room, learning, out) -> rounds``: the same for rounds of several
#: rows.
SCALE_ROUNDS, SCALE_ROUNDS_SINGLE = (
    types.int64(_input(types.float64, 2), _input(types.int64, 1), vector, vector, flags, out)
    for out in (matrix, types.Array(types.float32, 2, "C"))
)

#: ``map(inputs, constants, state, room, learning, out) -> rows``: map rows by what is known of
#: those before that were learned from, which ``learning`` says of each; stop at one that is not
#: finite.
MAP = types.int64(_input(types.float64, 2), vector, vector, vector, flags, matrix)

#: ``map(inputs, starts, constants, state, room, learning, out) -> rounds``: the same for rounds of
#: several rows, each mapped by what is known of the rounds before.
MAP_ROUNDS = types.int64(
    _input(types.float64, 2), _input(types.int64, 1), vector, vector, vector, flags, matrix
)

#: The same into sparse rows, each of the same number of entries: their values, and their columns.
MAP_SPARSE = types.int64(
    _input(types.float64, 2),
    vector,
    vector,
    vector,
    flags,
    matrix,
    types.Array(types.int32, 2, "C"),
)

#: ``hash(values, columns, starts, constants, room, out, out columns, out starts) -> rows``: map
#: sparse rows into sparse rows, of as many entries at most; room is for integers.
HASH = types.int64(
    _input(types.float64, 1),
    _input(types.int64, 1),
    _input(types.int64, 1),
    vector,
    integers,
    vector,
    types.Array(types.int32, 1, "C"),
    types.Array(types.int32, 1, "C"),
)

#: ``member(inputs, labels, sample_weight, constants, memory, room, playing, learning, scores,
#: trace, predictions) -> rows``: score rows by the memory; if ``playing``, also write a column of
#: the trace for each, and update the memory by those to be learned from; stop at the first row
#: that is not finite. Without sample weights all are 1.
MEMBER = types.int64(
    _input(types.float64, 2),
    labels,
    vector,
    vector,
    vector,
    vector,
    types.boolean,
    flags,
    matrix,
    types.Array(types.float64, 2, "A"),
    predictions,
)

#: ``bandit(inputs, labels, uniforms, asked, places, kept, constants, memory, room, learning, trace,
#: chance, slack, noise, inverse, predictions) -> rows``: see :mod:`driftline.bandit.kernel`; stop
#: at the first row that is not finite, or too long.
BANDIT = types.int64(
    _input(types.float64, 2),
    labels,
    matrix,
    flags,
    integers,
    matrix,
    vector,
    vector,
    vector,
    types.boolean,
    types.Array(types.float64, 2, "A"),
    vector,
    matrix,
    matrix,
    matrix,
    predictions,
)

#: ``clicks(inputs, starts, labels, uniforms, asked, places, kept, constants, discounts, memory,
#: room, learning, trace, slack, noise, inverse, shown, chances) -> rounds``: see
#: :mod:`driftline.bandit.clicks_kernel`; stop at the first round with a row that is not finite, or
#: too long.
CLICKS = types.int64(
    _input(types.float64, 2),
    integers,
    integers,
    matrix,
    flags,
    integers,
    matrix,
    vector,
    vector,
    vector,
    vector,
    types.boolean,
    types.Array(types.float64, 2, "A"),
    matrix,
    matrix,
    matrix,
    integers,
    vector,
)


def _scale_sparse(index: types.Type, *rounds: types.Type) -> Signature:
    """``scale(values, columns, starts, state, size, learning, out, out columns, out starts)``.

    Returns the number of rows. ``size`` is the value of the constant feature, 0 for none. For
    rounds of several rows, where each round starts stands before the state.
    """
    integers = types.Array(index, 1, "C")
    inputs = (_input(types.float64, 1), _input(index, 1), _input(index, 1), *rounds)
    sizes = (types.float64, flags)
    return types.int64(*inputs, vector, *sizes, vector, integers, integers)


SCALE_SPARSE32, SCALE_SPARSE64 = _scale_sparse(types.int32), _scale_sparse(types.int64)
SCALE_SPARSE_ROUNDS32, SCALE_SPARSE_ROUNDS64 = (
    _scale_sparse(index, _input(types.int64, 1)) for index in (types.int32, types.int64)
)

#: ``map(values, columns, starts, rounds, constants, state, learning, out) -> rounds``: rounds of
#: several CSR rows, of which only the values change.
MAP_SPARSE_ROUNDS32, MAP_SPARSE_ROUNDS64 = (
    types.int64(
        _input(types.float64, 1),
        _input(index, 1),
        _input(index, 1),
        _input(types.int64, 1),
        vector,
        vector,
        flags,
        vector,
    )
    for index in (types.int32, types.int64)
)

#: ``conjugate(theta, params, scratch, mean) -> value``: a regularizer's conjugate on a polytope
#: and its gradient, the mean prediction.
CONJUGATE = types.float64(vector, vector, vector, vector)
