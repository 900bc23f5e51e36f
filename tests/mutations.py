"""Files that somebody has edited and sealed again: one or two entries are not what they were."""

import copy

import numpy as np

VALUES = [
    *(None, True, False, -1, 0, 1, 2, 20, 2**31, 2**63, 2**70, 0.5, 1e-320, 1e308),
    *(float("inf"), float("nan"), "", "x", "float32", "vote", [], {}, [1, 2], [[0.0, 1.0]]),
    {"type": "tasks.Multiclass", "classes": 3},
    {"type": "tasks.Multilabel", "tags": 4},
    {"type": "tasks.NDCG", "max_relevance": 2},
    {"type": "domains.Ball", "diameter": 1.0},
    {"type": "domains.Unbounded"},
    {"type": "rates.AdaGrad"},
    {"type": "detectors.Cusum"},
    {"type": "polytopes.Simplex", "dim": 2},
]


def mutated(rng, about, arrays):
    """Return a copy with a few entries changed."""
    about, arrays = copy.deepcopy(about), {k: a.copy() for k, a in arrays.items()}
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            _mutate_data(rng, about)
        else:
            _mutate_arrays(rng, arrays)
    return about, arrays


def _places(node):
    """Yield every place in nested data: its container and its key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from _places(node[key])


def _mutate_data(rng, about):
    places = [(node, key) for node, key in _places(about) if key not in ("format", "driftline")]
    node, key = places[rng.integers(len(places))]
    kind = rng.random()
    if kind < 0.15:
        del node[key]
    elif kind < 0.35:
        other, name = places[rng.integers(len(places))]
        node[key] = copy.deepcopy(other[name])
    elif kind < 0.5 and type(node[key]) in (int, float):
        node[key] = node[key] * [0, -1, 2, 1e6, 1e-6][rng.integers(5)]
    else:
        node[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def _mutate_arrays(rng, arrays):
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.atleast_1d(arrays[name])
    match rng.integers(9):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = array[: len(array) // 2]
        case 2:
            arrays[name] = array.T
        case 3:
            arrays[name] = array[np.newaxis]
        case 4:
            kinds = (np.float64, np.float32, np.int64, np.bool_)
            with np.errstate(invalid="ignore", over="ignore"):
                arrays[name] = array.astype(kinds[rng.integers(4)])
        case 5:
            shape = ((3, 0), (0,), (), (30_000, 5), (1, 1), (7, 2))[rng.integers(6)]
            arrays[name] = np.zeros(shape, array.dtype)
        case 6:
            other = sorted(arrays)[rng.integers(len(arrays))]
            arrays[name] = arrays[other].copy()
        case _ if array.size:
            bad = (np.nan, np.inf, -np.inf, -1.0, -5.0, 0.0, 1e300, 2.0**62, 1e-320, 7.0)
            where = rng.integers(array.size) if rng.random() < 0.7 else slice(None)
            with np.errstate(invalid="ignore", over="ignore"):
                array.flat[where] = np.array(bad[rng.integers(10)]).astype(array.dtype)
