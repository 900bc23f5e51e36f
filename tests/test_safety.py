"""Compiled code trusts nobody: not sizes, not pointers, not memory that others can write to."""

import copy
import json
import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from howmany import chosen
from numba import types

import driftline as dl
from driftline.kernels import cache, kernel, together
from driftline.kernels import compile as compiling
from driftline.kernels.gathers import gather, scatter
from driftline.kernels.signatures import integers, matrix, vector

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((200, 5)), rng.integers(0, 3, 200)
TASK = dl.tasks.Multiclass(3)
L = dl.losses.Logistic(TASK)


# -- what overflows


def long_row(norm):
    changed = X.copy()
    changed[10] *= norm / np.linalg.norm(changed[10])
    return changed


FAR = {
    "auto": lambda: dl.auto(TASK, scaling=False, effort="fast"),
    "constant": lambda: dl.OGD(L, rate=dl.rates.Constant(10.0)),
    "unbounded": lambda: dl.OGD(L, rate=dl.rates.Constant(10.0), domain=dl.domains.Unbounded()),
    "adagrad": lambda: dl.OGD(L, rate=dl.rates.AdaGrad()),
    "decaying": lambda: dl.OGD(L, rate=dl.rates.Decaying(5.0)),
}


def weights_of(learner):
    members = getattr(learner, "members", [learner])
    return [(m.weights.tobytes(), m.engine.vector.tobytes()) for m in members]


@pytest.mark.parametrize("make", FAR.values(), ids=FAR)
@pytest.mark.parametrize("norm", [8e153, 1e153, 1e141])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_row_that_overflows_is_refused_and_nothing_changes(make, norm, form):
    learner = make()
    learner.run(form(X), Y)
    before = weights_of(learner)
    with pytest.raises(dl.InputError, match="row 10 is too large"):
        learner.run(form(long_row(norm)), Y)
    with pytest.raises(dl.InputError, match="too large"):
        learner.step(form(long_row(norm)[[10]]), 0)
    assert weights_of(learner) == before


def test_the_plain_engine_refuses_the_same_rows():
    class Plain(dl.rates.Rate):
        def next(self, loss, risk, grad_sq, input_sq, previous, setting, memory):
            return 10.0

    learner = dl.OGD(L, rate=Plain())
    with pytest.raises(dl.InputError, match="row 10 is too large"):
        learner.run(long_row(1e153), Y)
    assert learner.rounds == 0


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: dl.OGD(L, domain=dl.domains.Ball(1e-300)), "diameter of Ball is 1e-300"),
        (lambda: dl.OGD(L, domain=dl.domains.Ball(1e200)), "diameter of Ball is 1e"),
        (lambda: dl.OGD(L, rate=dl.rates.Constant(1e200)), "eta of Constant is 1e"),
        (lambda: dl.OGD(dl.losses.Scaled(L, 1e150)), "factor of Scaled is 1e"),
    ],
)
def test_parts_with_absurd_numbers_are_refused(make, words):
    with pytest.raises(dl.InputError, match=words):
        make()


@pytest.mark.parametrize("diameter", [1e-99, 1e-30, 1.0, 1e30, 1e99])
@pytest.mark.parametrize("eta", [1e-99, 1.0, 1e30])
@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_of_any_allowed_size_end_finite_or_are_refused(diameter, eta, size, dtype):
    parts = {"rate": dl.rates.Constant(eta), "domain": dl.domains.Ball(diameter), "dtype": dtype}
    learner = dl.OGD(L, **parts)
    with np.errstate(over="ignore"):
        try:
            learner.run(size * X, Y)
        except dl.InputError as error:
            assert "too large" in str(error)
            return
    with np.errstate(over="ignore", under="ignore"):
        assert not np.isnan(learner.weights).any()


def test_rounds_before_an_overflow_are_kept_and_counted_where_weights_are_not_copied():
    wide = sp.csr_array((np.ones(30), np.arange(30) % 10, np.arange(31)), shape=(30, 1000))
    labels = np.zeros(30, dtype=int)
    parts = (L, dl.decoders.GapOptimal(L), dl.rates.Constant(1e60), dl.domains.Unbounded())
    learner, other = dl.OGD(*parts), dl.OGD(*parts)
    learner.learn(wide[[0]], 0), other.learn(wide[[0]], 0)
    far = wide.copy()
    far.data[20], labels[20] = 1e90, 1
    with pytest.raises(dl.InputError, match="20 rounds of this call were played before"):
        learner.run(far, labels)
    other.run(wide[:20], labels[:20])
    assert weights_of(learner) == weights_of(other)
    assert learner.predict(wide[[3]]) == other.predict(wide[[3]])
    assert learner.state.tickets == other.state.tickets


# -- arrays as they come, and as they should not


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_columns_of_any_integer_type_are_read(kind):
    rows = sp.csr_array(X)
    rows.indices = rows.indices.astype(kind)
    expected = dl.OGD(L).run(sp.csr_array(X), Y)
    np.testing.assert_array_equal(dl.OGD(L).run(rows, Y).loss, expected.loss)


@pytest.mark.parametrize("kind", ["float16", ">f8", "int8", "bool"])
def test_values_of_any_type_are_read_and_looked_at(kind):
    rows = sp.csr_array(X)
    rows.data = rows.data.astype(kind)
    learner = dl.OGD(L)
    learner.run(rows, Y)
    assert learner.score_rows(rows).shape == (200, 3)


def test_masked_entries_are_refused():
    masked = np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) == 7)
    with pytest.raises(dl.InputError, match="inputs have masked entries"):
        dl.OGD(L).run(masked, Y)
    with pytest.raises(dl.InputError, match="labels have masked entries"):
        dl.OGD(L).run(X, np.ma.masked_array(Y, mask=np.arange(200) == 3))
    dl.OGD(L).run(np.ma.masked_array(X), Y)  # nothing is hidden here


def test_views_of_labels_are_read():
    table = np.column_stack([np.zeros((200, 4), dtype=int), Y])
    for labels in (table[:, 4], Y[::-1][::-1], Y.astype(np.int8), Y.tolist(), Y.astype(float)):
        np.testing.assert_array_equal(dl.OGD(L).run(X, labels).loss, dl.OGD(L).run(X, Y).loss)


def broken(change):
    rows = sp.csr_array(X)
    assert rows.has_canonical_format  # and SciPy remembers that
    change(rows)
    return rows


def set_pointer(rows, place, value):
    rows.indptr[place] = value


def set_column(rows, value):
    rows.indices[7] = value


def shorten(rows):
    rows.indices = rows.indices[:-3]


BROKEN = {
    "pointer far outside": lambda rows: set_pointer(rows, 5, 10**8),
    "pointer falls": lambda rows: set_pointer(rows, 5, 0),
    "pointer negative": lambda rows: set_pointer(rows, 0, -4),
    "last pointer outside": lambda rows: set_pointer(rows, -1, 10**6),
    "column negative": lambda rows: set_column(rows, -(2**31)),
    "column outside": lambda rows: set_column(rows, 5),
    "columns too few": shorten,
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_broken_sparse_rows_are_refused_wherever_they_are_given(change):
    learner, committee = dl.OGD(L), dl.auto(TASK, effort="fast")
    learner.run(sp.csr_array(X), Y), committee.run(sp.csr_array(X), Y)
    models = [dl.DriftClassifier("fast").fit(X, Y), dl.DriftClassifier().fit(sp.csr_array(X), Y)]
    models += [dl.DriftOrdinalClassifier("fast").fit(X, Y)]
    tags = dl.DriftMultilabelClassifier("fast").fit(X, np.eye(3, dtype=int)[Y])
    for use in (
        lambda rows: learner.run(rows, Y),
        lambda rows: committee.run(rows, Y),
        lambda rows: committee.learn_rows(rows, Y),
        lambda rows: learner.score_rows(rows),
        lambda rows: committee.score_rows(rows),
        *(lambda rows, m=model: m.predict(rows) for model in [*models, tags]),
        *(lambda rows, m=model: m.partial_fit(rows, Y) for model in models),
        lambda rows: dl.DriftClassifier("fast").fit(rows, Y),
        lambda rows: dl.tasks.NDCG(max_relevance=2).layout.rows((rows, [0, 200])),
    ):
        with pytest.raises(dl.InputError, match="sparse inputs"):
            use(broken(change))


def test_a_callback_that_writes_to_labels_or_columns_reaches_nothing():
    labels = np.tile(Y, 250)
    expected = dl.OGD(L).run(np.tile(X, (250, 1)), np.tile(Y, 250))

    def write_labels(_):
        labels[:] = 10**9

    trace = dl.OGD(L).run(np.tile(X, (250, 1)), labels, progress=write_labels)
    np.testing.assert_array_equal(trace.loss, expected.loss)

    def write_columns(rows):
        rows.indices[:] = 10**9
        rows.indptr[:] = 10**9

    for learner, words in (
        (dl.OGD(L), None),
        (dl.auto(TASK, effort="fast"), "changed while they were read"),
    ):
        rows = sp.csr_array(np.tile(X, (250, 1)))
        with nullcontext() if words is None else pytest.raises(dl.InputError, match=words):
            learner.run(rows, np.tile(Y, 250), progress=lambda _, rows=rows: write_columns(rows))
        assert learner.rounds == (50_000 if words is None else 0)


@kernel(types.void(matrix, vector, integers, types.int64, types.int64, vector))
def gather_entries(weights, values, columns, first, stop, out):
    """Gather, for the test below."""
    gather(weights, values, columns, first, stop, out)


@kernel(types.void(matrix, vector, integers, types.int64, types.int64, vector))
def scatter_entries(weights, values, columns, first, stop, steps):
    """Scatter, for the test below."""
    scatter(weights, values, columns, first, stop, steps)


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 8, 16, 19])
@pytest.mark.parametrize("wild", [10**12, -1, -(2**62), 4])
def test_loops_never_follow_a_column_out_of_the_weights(outputs, wild):
    weights = rng.standard_normal((4, outputs))
    values, columns = np.array([2.0, 3.0]), np.array([1, wild])
    out = np.empty(outputs)
    gather_entries(weights, values, columns, 0, 2, out)
    np.testing.assert_allclose(out, 2.0 * weights[1] + 3.0 * weights[0])
    before = weights.copy()
    scatter_entries(weights, values, columns, 0, 2, np.ones(outputs))
    np.testing.assert_allclose(weights[1], before[1] + 2.0)
    np.testing.assert_array_equal(weights[2:], before[2:])


def test_rows_without_features_are_refused():
    trace = dl.OGD(L).run(X[:12], Y[:12])
    nothing = np.zeros((12, 0))
    for use in (
        lambda: dl.OGD(L).run(nothing, Y[:12]),
        lambda: dl.OGD(L).run(sp.csr_array(nothing), Y[:12]),
        lambda: dl.auto(TASK, effort="fast").run(nothing, Y[:12]),
        lambda: dl.certify(trace, dl.comparators.Fixed(np.zeros((3, 0))), nothing, Y[:12]),
        lambda: dl.OGD(L).step([], 0),
        lambda: dl.auto(dl.tasks.NDCG(2), effort="fast").run([np.zeros((3, 0))], [[0, 1, 2]]),
    ):
        with pytest.raises(dl.InputError, match="no features"):
            use()


# -- one caller at a time


@pytest.mark.parametrize("make", [lambda: dl.OGD(L), lambda: dl.auto(TASK, effort="fast")])
def test_a_busy_learner_refuses_another_thread(make):
    learner = make()
    learner.run(X, Y)
    refused, seen = [], []

    def meddle():
        for use in (
            lambda: learner.run(sp.csr_array(X), Y),
            lambda: learner.step(X[0], 0),
            lambda: learner.learn_rows(X, Y),
            lambda: learner.ask(X[0]),
        ):
            try:
                use()
            except dl.BusyError as error:
                refused.append(str(error))
        seen.extend([learner.predict(X[0]), learner.score_rows(X), copy.deepcopy(learner)])

    def progress(_):
        thread = threading.Thread(target=meddle)
        thread.start()
        thread.join()

    learner.run(X, Y, progress=progress)
    assert len(refused) == 4 and all("busy in another thread" in words for words in refused)
    assert len(seen) == 3  # who only looks is let in between two batches
    learner.step(X[0], 0)


def test_an_interrupt_at_any_call_of_a_run_does_not_leave_the_learner_busy():
    """Interrupts are raised where Python functions begin: at each of them in turn."""
    for number in range(10**6):
        learner, calls = dl.OGD(L), iter(range(10**6))

        def interrupt(frame, event, arg, calls=calls, number=number):
            if "driftline" in frame.f_code.co_filename and next(calls) == number:
                raise KeyboardInterrupt

        before = sys.gettrace()
        try:
            sys.settrace(interrupt)
            learner.run(X, Y)
            done = True
        except KeyboardInterrupt:
            done = False
        finally:
            sys.settrace(before)
        learner.step(X[0], 0)
        assert learner.rounds in (1, len(Y) + 1)
        if done:
            break
    assert number > 20


@pytest.mark.parametrize("make", [lambda: dl.OGD(L), lambda: dl.auto(TASK, effort="fast")])
def test_a_callback_may_look_but_not_learn(make):
    learner, seen = make(), []
    learner.run(X, Y)
    learner.run(X, Y, progress=lambda _: seen.append(learner.predict(X[0])))
    assert seen
    before = weights_of(learner)
    with pytest.raises(dl.BusyError, match="a callback may predict, not learn"):
        learner.run(X, Y, progress=lambda _: learner.step(X[0], 0))
    assert weights_of(learner) == before
    learner.run(X, Y)


def test_threads_with_a_learner_each_go_on_as_alone():
    def play(out, j):
        learner = dl.OGD(L, seed=j)
        for form in (np.asarray, sp.csr_array, np.asarray):
            learner.run(form(X), Y)
        out[j] = learner.weights

    alone, together_ = {}, {}
    for j in range(4):
        play(alone, j)
    threads = [threading.Thread(target=play, args=(together_, j)) for j in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for j in range(4):
        np.testing.assert_array_equal(alone[j], together_[j])


# -- what Numba keeps to itself


def test_an_unknown_layout_of_arrays_is_never_used(monkeypatch):
    expected = [dl.auto(TASK, effort="fast").run(X, Y).target_loss.sum()]
    monkeypatch.setattr(together, "FIELDS", (*together.FIELDS[::-1],))
    together.layout_is_known.cache_clear()
    try:
        assert not together.layout_is_known()
        committee = dl.auto(TASK, effort="fast")
        losses = [committee.step(x, int(y)).target_loss for x, y in zip(X, Y, strict=True)]
        assert committee._groups.groups[0].fused is None
        assert [sum(losses)] == expected
    finally:
        monkeypatch.undo()
        together.layout_is_known.cache_clear()
    assert together.layout_is_known()


# -- the cache of compiled code

SMALL = """
import json, warnings
from pathlib import Path
from driftline.kernels import cache_directory
from driftline.kernels.linalg import dot
from driftline.rates.constant import constant
import numpy as np
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    value = constant(1.0, 0.5, 1.0, 1.0, 1.0, np.array([0.25]), np.zeros(0))
    folder = cache_directory(Path(constant.function.__code__.co_filename))
hits = sum(constant.compiled.stats.cache_hits.values())
print(json.dumps([value, str(folder), hits, [str(w.message) for w in said]]))
"""


def small(folder, **more):
    env = {k: v for k, v in os.environ.items() if k not in more} | {"DRIFTLINE_CACHE": str(folder)}
    env = {k: v for k, v in (env | more).items() if v is not None}
    result = subprocess.run(
        [sys.executable, "-c", SMALL], capture_output=True, text=True, env=env, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("ending", ["nbi", pytest.param("nbc", marks=pytest.mark.slow)])
def test_a_damaged_cache_is_compiled_again(tmp_path, ending):
    os.chmod(tmp_path, 0o700)
    assert small(tmp_path)[2] == 0
    (path,) = tmp_path.glob(f"*/constant.constant-*.{ending}")
    content = path.read_bytes()
    edited = content[:-9] + b"x" + content[-8:]
    for damaged in chosen((edited,), (edited, content[: len(content) // 2], b"")):
        path.write_bytes(damaged)
        value, _, hits, said = small(tmp_path)
        assert (value, hits, said) == (0.25, 0, [])
    assert small(tmp_path)[2] == 1


def test_a_cache_that_others_may_write_to_is_not_used(tmp_path):
    os.chmod(tmp_path, 0o777)
    value, folder, _, said = small(tmp_path)
    assert value == 0.25 and folder == "None"
    assert len(said) == 1 and "others may write to it" in said[0]


def test_a_folder_of_the_cache_that_others_may_write_to_is_not_used(tmp_path):
    os.chmod(tmp_path, 0o700)
    old = os.umask(0)  # with which Numba makes a folder for everybody
    try:
        assert small(tmp_path)[2] == 0
    finally:
        os.umask(old)
    (folder,) = {path.parent for path in tmp_path.glob("*/constant.constant-*.nbi")}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert small(tmp_path)[2] == 1
    os.chmod(folder, 0o770)
    value, used, hits, said = small(tmp_path)
    assert (value, used, hits) == (0.25, "None", 0) and "others may write to it" in said[0]


def test_no_home_directory_is_no_error(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "DRIFTLINE_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nobody(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "expanduser", nobody)
    assert cache.cache_directory.__wrapped__(cache.PACKAGE / "typing.py") is None


def test_an_unreadable_entry_is_deleted_and_compiled_again(tmp_path, monkeypatch):
    os.chmod(tmp_path, 0o700)
    for module in (cache, compiling):
        monkeypatch.setattr(module, "cache_directory", lambda source: tmp_path)
    made = compiling.Kernel(dl.rates.Constant.kernel.function, dl.rates.Constant.kernel.signature)
    assert made(1.0, 0.5, 1.0, 1.0, 1.0, np.array([0.5]), np.zeros(0)) == 0.5
    (index,) = tmp_path.glob("*.nbi")
    index.write_bytes(b"")
    cache.Entry(tmp_path, made.function).seal()  # as if it had been written so
    again = compiling.Kernel(made.function, made.signature)
    assert again(1.0, 0.5, 1.0, 1.0, 1.0, np.array([0.5]), np.zeros(0)) == 0.5


def test_more_features_than_memory_holds_are_refused_before_anything_changes():
    wide = sp.csr_array((np.ones(3), ([0, 1, 2], [0, 5, 2**39])), shape=(3, 2**40))
    for learner in (
        dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3))),
        dl.auto(dl.tasks.Binary(), effort="fast"),
    ):
        with pytest.raises(dl.InputError, match="GiB of memory"):
            learner.run(wide, [1, 1, 1])
        assert learner.rounds == 0
        learner.run(np.eye(3), [1, 1, 1])
        assert learner.rounds == 3


def test_a_word_for_scaling_is_refused():
    with pytest.raises(dl.InputError, match="scaling must be True or False"):
        dl.auto(dl.tasks.Binary(), scaling="no", effort="fast")
    with pytest.raises(dl.InputError, match="scaling must be True or False"):
        dl.DriftClassifier(scaling="no").fit(np.eye(3), [0, 1, 2])
