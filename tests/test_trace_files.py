"""Traces from elsewhere: nothing behind the seal is believed."""

import copy
import json
import warnings

import numpy as np
import pytest
from commands import call
from howmany import number
from mutations import mutated
from seeds import fresh_seed

import driftline as dl
from driftline.state import archive

T, L = dl.tasks, dl.losses
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 5)), RNG.integers(0, 3, 40)
DOCS = [RNG.standard_normal((4, 3)) for _ in range(20)]
GRADES, WORDS = RNG.integers(0, 3, (2, 20, 4))


def single():
    return dl.OGD(L.Logistic(T.Multiclass(3))).run(X, Y), X, Y


def committee():
    return dl.auto(T.Multiclass(3), effort="fast").run(X, Y, audit=True), X, Y


def restarting():
    loss = L.Scaled(L.Logistic(T.Multiclass(3)), 2.0)
    learner = dl.OGD(
        loss,
        dl.decoders.Argmax(loss),
        dl.rates.Decaying(2.0),
        restart=dl.detectors.Cusum(0.5, 1.5, 0.1, 5),
        intercept=True,
        dtype=np.float32,
    )
    learner.run(X, Y)
    return learner.run(X, Y), X, Y


def guarded():
    members = [dl.OGD(L.Logistic(T.Multiclass(3))), dl.OGD(L.SmoothHinge(T.Multiclass(3)))]
    return dl.Committee(members, budget=1.5).run(X, Y), X, Y


def documents():
    labels = list(GRADES)
    return dl.OGD(L.ConvolutionalFenchelYoung(T.NDCG(2))).run(DOCS, labels), DOCS, labels


def words():
    return dl.OGD(L.CRF(T.Sequence(3))).run(DOCS, list(WORDS)), DOCS, list(WORDS)


CASES = (single, committee, restarting, guarded, documents, words)


def certified(trace, inputs, labels):
    """Return the certificate against weights of 0."""
    zeros = None
    if isinstance(trace, dl.Trace):
        shape = (1, 1) if trace.origin is None else trace.first_weights.shape
        zeros = dl.comparators.Fixed(np.zeros(shape))
    return dl.certify(trace, zeros, inputs, labels)


def edited(trace, path, edit):
    """Write a trace that was edited, and sealed again."""
    about, arrays = trace.to_saved()
    about, arrays = copy.deepcopy(about), {k: a.copy() for k, a in arrays.items()}
    edit(about, arrays)
    return archive.write(path / "edited.npz", about, arrays)


@pytest.mark.parametrize("case", CASES)
def test_a_trace_from_a_file_makes_the_same_certificate(case, tmp_path):
    trace, inputs, labels = case()
    again = type(trace).load(trace.save(tmp_path / "run"))
    made = certified(trace, inputs, labels)
    assert made.valid and not made.unchecked
    assert str(certified(again, inputs, labels)) == str(made)


def test_a_trace_is_sealed(tmp_path):
    trace, _, _ = single()
    path = trace.save(tmp_path / "run")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(dl.InputError, match="seal is broken"):
        dl.Trace.load(path)


# -- edits that reached compiled code


def enlarge(about, arrays):
    for name in arrays:
        if name.endswith("origin.weights"):
            arrays[name] = np.zeros((number(50_000, 300_000), 5))


def more_classes(about, arrays):
    text = json.dumps(about).replace('"classes": 3', '"classes": 20', 1)
    about |= json.loads(text)


def more_classes_everywhere(about, arrays):
    about |= json.loads(json.dumps(about).replace('"classes": 3', '"classes": 20'))


def many_members(about, arrays):
    about["members"] = 2**31


def other_predictions(about, arrays):
    for name in arrays:
        if name.endswith("prediction"):
            arrays[name][3] = -(2**40)


def huge_predictions(about, arrays):
    for name in arrays:
        if name.endswith("prediction"):
            arrays[name][3] = 2**40


def another_loss(about, arrays):
    for part in about.get("members", [about]):
        part["config"]["loss"] = L.SmoothHinge(T.Multiclass(3)).config()


def outside(about, arrays):
    for name in arrays:
        if name.endswith("origin.weights"):
            arrays[name][:] = 1e5


def infinite(about, arrays):
    for name in arrays:
        if name.endswith("origin.weights"):
            arrays[name][:] = np.inf


def no_columns(about, arrays):
    for name in arrays:
        if name.endswith("origin.weights"):
            arrays[name] = np.zeros((3, 0))


def steps_of_nothing(about, arrays):
    for name in arrays:
        if name.endswith("eta"):
            arrays[name][3] = 0.0


@pytest.mark.parametrize("case", [single, committee])
@pytest.mark.parametrize(
    "edit",
    [
        enlarge,
        more_classes,
        more_classes_everywhere,
        many_members,
        other_predictions,
        huge_predictions,
        another_loss,
        outside,
        infinite,
        no_columns,
        steps_of_nothing,
    ],
)
def test_what_no_run_has_written_is_refused(case, edit, tmp_path):
    if case is single and edit is many_members:
        return
    trace, inputs, labels = case()
    path = edited(trace, tmp_path, edit)
    with pytest.raises(dl.InputError):
        certified(type(trace).load(path), inputs, labels)
    data = tmp_path / "data.npz"
    np.savez(data, inputs=inputs, labels=labels)
    zeros = tmp_path / "zeros.npz"
    np.savez(zeros, weights=np.zeros((3, 5 if case is single else 6)))
    result = call("certify", path, "--data", data, "--comparator", zeros)
    assert result.exit_code == 1 and "Error" in result.output


def audit_edits(trace, inputs, labels, seeds, folder):
    """Edit a trace in many ways, and audit each; return how many were refused, found, believed."""
    counts = {"refused": 0, "found": 0, "valid": 0}
    for seed in seeds:
        about, arrays = mutated(np.random.default_rng(seed), *trace.to_saved())
        path = archive.write(folder / "edited.npz", about, arrays)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                made = certified(type(trace).load(path), inputs, labels)
                counts["valid" if made.valid else "found"] += bool(str(made))
            except dl.InputError:
                counts["refused"] += 1
    return counts


@pytest.mark.parametrize("field, case", [("items", documents), ("classes", single)])
def test_sizes_that_would_fill_the_memory_are_refused(field, case, tmp_path):
    trace, inputs, labels = case()

    def enlarge_task(about, arrays):
        about["config"]["loss"]["task"][field] = 2**36

    path = edited(trace, tmp_path, enlarge_task)
    with pytest.raises(dl.InputError, match="larger than any task"):
        certified(dl.Trace.load(path), inputs, labels)


def test_edited_traces_are_refused_or_audited_and_nothing_else(tmp_path):
    """Twenty edits of every case; the test below makes many more."""
    for case in CASES:
        counts = audit_edits(*case(), range(20), tmp_path)
        assert counts["refused"] > 5


@pytest.mark.hard
def test_six_thousand_edited_traces_are_refused_or_audited_and_nothing_else(tmp_path):
    first = fresh_seed()
    for case in CASES:
        print(case.__name__, audit_edits(*case(), range(first, first + 1000), tmp_path))


def test_an_edited_model_is_refused_or_loaded_and_nothing_else(tmp_path):
    for seed in range(60):
        random = np.random.default_rng(seed)
        learner = (
            dl.OGD(L.Logistic(T.Multiclass(3)))
            if seed % 2
            else dl.auto(T.Multiclass(3), effort="fast")
        )
        learner.run(X, Y)
        path = archive.write(tmp_path / "model", *mutated(random, *learner.to_saved()))
        try:
            again = dl.load(path)
        except dl.InputError:
            continue
        members = getattr(again, "members", [again])
        for member in members:
            inside = member.domain.radius
            assert np.linalg.norm(member.weights) <= inside * (1.0 + 1e-5)


@pytest.mark.parametrize("domain", [dl.domains.Unbounded(), dl.domains.Ball(2.0)])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200, 7.0])
def test_a_model_with_weights_that_it_cannot_have_is_refused(domain, value, tmp_path):
    learner = dl.OGD(L.Logistic(T.Multiclass(3)), domain=domain)
    learner.run(X, Y)
    about, arrays = learner.to_saved()
    arrays["weights"][:] = value
    path = archive.write(tmp_path / "model", about, arrays)
    if value == 7.0 and isinstance(domain, dl.domains.Unbounded):
        dl.load(path)
        return
    with pytest.raises(dl.InputError, match="finite|outside"):
        dl.load(path)


def test_a_model_whose_norm_is_not_that_of_its_weights_is_refused(tmp_path):
    """Weights whose norm counts as 0 would leave their ball in the next rounds."""
    learner = dl.OGD(L.Logistic(T.Multiclass(3)), domain=dl.domains.Ball(1.0))
    learner.run(X, Y)
    about, arrays = learner.to_saved()
    about["state"]["norm_sq"] = 0.0
    path = archive.write(tmp_path / "model", about, arrays)
    with pytest.raises(dl.InputError, match="the state has another"):
        dl.load(path)
