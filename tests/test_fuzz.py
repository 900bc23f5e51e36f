"""Bent inputs and edited files by the thousand: they are taken or refused, and nothing else."""

import threading
import warnings
from collections import Counter

import fuzzing
import numpy as np
import pytest
import scipy.sparse as sp
from howmany import number
from mutations import mutated
from seeds import fresh_seed

import driftline as dl
from driftline.state import archive

#: What may be raised: by the library, and by scikit-learn's own checks in estimators.
OURS = (dl.InputError, dl.NoGuaranteeError)
THEIRS = (ValueError, TypeError)


def learner_for(rng, task):
    names = ("classes", "signs", "tags")
    if rng.random() < 0.5 and any(task == fuzzing.TASKS[name][0] for name in names):
        dtype = np.float32 if rng.random() < 0.3 else np.float64
        return dl.OGD(dl.losses.Logistic(task), dtype=dtype)
    if rng.random() < 0.3 and any(task == fuzzing.TASKS[name][0] for name in names[:2]):
        return others(task)[rng.integers(5)]
    return dl.auto(task, scaling=bool(rng.random() < 0.7), effort="fast")


def others(task):
    """Return members that make no gradient steps, and a committee of them and one that does."""
    room = dl.members
    kinds = (room.NaiveBayes, room.Tables, room.Neighbours, room.Forest)
    mixed = [dl.OGD(dl.losses.Logistic(task)), *(kind(task) for kind in kinds)]
    return [*(kind(task) for kind in kinds), dl.Committee(mixed)]


def use(rng, task, good, inputs, labels):
    """Play, look or fit in one of many ways."""
    kind = rng.integers(7)
    if kind == 6:
        kinds = (dl.DriftClassifier, dl.DriftMultilabelClassifier, dl.DriftOrdinalClassifier)
        model = kinds[rng.integers(3)]()
        try:
            model.fit(inputs, labels).predict(inputs)
        except OURS:
            raise
        except THEIRS as error:
            raise dl.InputError(f"scikit-learn: {error}") from error
        return
    learner = learner_for(rng, task)
    if kind >= 2:
        learner.run(*good)
    if kind in (0, 2):
        learner.run(inputs, labels)
    elif kind in (1, 3):
        learner.learn_rows(inputs, labels)
    elif kind == 4:
        learner.score_rows(inputs)
    else:
        before = learner.rounds
        if sp.issparse(inputs):  # whole, since SciPy cuts a broken matrix without a look at it
            first = [inputs, labels if np.ndim(labels) < 2 else labels[:1]]
        else:
            try:
                first = [x if np.ndim(x) < 2 else x[:1] for x in (inputs, labels)]
            except (TypeError, ValueError, IndexError) as error:  # NumPy's own
                raise dl.InputError("has no first row") from error
        try:
            learner.step(*first)
        except OURS:
            assert learner.rounds == before
            raise


def bend(rng, name):
    task, make = fuzzing.TASKS[name]
    inputs = fuzzing.rows(rng)
    labels = make(rng, len(inputs))
    which = rng.integers(3)
    if which != 1:
        bent = fuzzing.bent_sparse if rng.random() < 0.4 else fuzzing.bent_rows
        inputs = bent(rng, inputs)
    if which != 0:
        labels = fuzzing.bent_labels(rng, labels)
    good = rng.standard_normal((12, 4)), make(rng, 12)
    return task, good, inputs, labels


def fuzz_arrays(seed, count):
    rng = np.random.default_rng(seed)
    ends = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(count):
            task, good, inputs, labels = bend(rng, rng.choice(list(fuzzing.TASKS)))
            try:
                use(rng, task, good, inputs, labels)
                ends["taken"] += 1
            except OURS:
                ends["refused"] += 1
    return ends


def saved_learners(folder):
    """Yield files of learners of every kind, with rows to go on from."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    task = dl.tasks.Multiclass(3)
    for j, learner in enumerate(
        (
            dl.OGD(dl.losses.Logistic(task), rate=dl.rates.AdaGrad()),
            dl.OGD(dl.losses.Logistic(task), restart=dl.detectors.Cusum(), dtype=np.float32),
            dl.OGD(dl.losses.Logistic(task), domain=dl.domains.Unbounded()),
            dl.auto(task, effort="fast"),
            dl.DriftClassifier("fast"),
        )
    ):
        for form in (np.asarray, sp.csr_array):
            if isinstance(learner, dl.DriftClassifier):
                made = dl.DriftClassifier("fast").fit(form(X), y)
            else:
                made = dl.load(learner.save(folder / "new"))
                made.run(form(X), y)
            yield made.save(folder / f"{j}{form.__name__}"), form(X), y
    for j, learner in enumerate(others(task)):
        learner.run(X, y)
        yield learner.save(folder / f"other{j}"), X, y


def fuzz_models(seed, count, folder):
    rng = np.random.default_rng(seed)
    files = [(archive.read(path), X, y) for path, X, y in saved_learners(folder)]
    path, ends = folder / "edited", Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(count):
            (about, arrays), X, y = files[rng.integers(len(files))]
            try:
                archive.write(path, *mutated(rng, about, arrays))
            except (TypeError, ValueError):  # what JSON does not take
                continue
            try:
                model = dl.load(path)
                if hasattr(model, "partial_fit"):
                    model.partial_fit(X, y).predict(X)
                else:
                    model.run(X, y)
                ends["taken"] += 1
            except OURS:
                ends["refused"] += 1
    return ends


def fuzz_bytes(seed, count, folder):
    rng = np.random.default_rng(seed)
    contents = [path.read_bytes() for path, *_ in saved_learners(folder)]
    path, ends = folder / "damaged", Counter()
    for _ in range(count):
        content = bytearray(contents[rng.integers(len(contents))])
        if rng.random() < 0.2:
            content = content[: rng.integers(len(content))]
        else:
            for _ in range(rng.integers(1, 4)):
                content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        try:
            dl.load(path)
            ends["taken"] += 1
        except OURS:
            ends["refused"] += 1
    return ends


def test_some_bent_arrays_are_taken_or_refused():
    ends = fuzz_arrays(seed=0, count=number(60, 150))
    assert ends["taken"] > number(5, 20) and ends["refused"] > number(20, 50)


def test_some_edited_models_are_taken_or_refused(tmp_path):
    ends = fuzz_models(seed=0, count=100, folder=tmp_path)
    assert ends["refused"] > 40


def test_damaged_models_are_refused(tmp_path):
    ends = fuzz_bytes(seed=0, count=100, folder=tmp_path)
    assert ends == {"refused": 100}


@pytest.mark.hard
def test_thousands_of_bent_arrays_are_taken_or_refused():
    ends = fuzz_arrays(fresh_seed(), 8000)
    print(f"bent arrays: {dict(ends)}")
    assert ends["taken"] and ends["refused"]


@pytest.mark.hard
def test_thousands_of_edited_models_are_taken_or_refused(tmp_path):
    ends = fuzz_models(fresh_seed(), 4000, tmp_path)
    print(f"edited models: {dict(ends)}")
    assert ends["taken"] and ends["refused"]


@pytest.mark.hard
def test_thousands_of_damaged_models_are_refused(tmp_path):
    ends = fuzz_bytes(fresh_seed(), 4000, tmp_path)
    print(f"damaged models: {dict(ends)}")
    assert set(ends) == {"refused"}


@pytest.mark.hard
def test_threads_that_share_a_learner_are_refused_or_wait_for_their_turn():
    """Rows of both kinds in four threads: every round was played in whole, or refused."""
    rng = np.random.default_rng(fresh_seed())
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    for learner in (dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3))), None):
        if learner is None:
            learner = dl.auto(dl.tasks.Multiclass(3), scaling=False, effort="fast")
        played, refused = [], []

        def play(seed, learner=learner, played=played, refused=refused):
            own = np.random.default_rng(seed)
            for _ in range(100):
                form = (np.asarray, sp.csr_array)[own.integers(2)]
                try:
                    if own.random() < 0.5:
                        learner.run(form(X), y)
                        played.append(300)
                    else:
                        learner.predict(X[0])
                except dl.BusyError:
                    refused.append(1)

        threads = [
            threading.Thread(target=play, args=(int(s),)) for s in rng.integers(2**31, size=4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert learner.rounds == sum(played)
        print(f"{len(played)} runs, {len(refused)} refused")
