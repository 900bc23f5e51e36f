"""Taggers with features by name or in sparse rows, and the spans of their tags."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import driftline as dl
from driftline.estimators import Span, span_scores, spans


def sentences(rounds=60, seed=0):
    """Return words that tell their tag, but for one that takes it from its neighbour."""
    rng = np.random.default_rng(seed)
    inputs, labels = [], []
    for _ in range(rounds):
        tags = rng.choice(["O", "B-x", "I-x"], rng.integers(1, 7)).tolist()
        words = [f"{tag}{rng.integers(3)}" for tag in tags]
        inputs.append([{"word": w, "long": True, "size": 0.5, "no": False} for w in words])
        labels.append(tags)
    return inputs, labels


def test_features_by_name_are_learned_and_saved(tmp_path):
    X, y = sentences()
    model = dl.DriftTagger(columns=1000).fit(X, y)
    assert model.n_features_in_ == 1000 and model.score(X, y) == 1.0
    assert model.learner_.standardiser is not None and model.learner_.standardiser.sparse
    again = dl.load(model.save(tmp_path / "tagger"))
    more, tags = sentences(10, seed=1)
    assert again.partial_fit(more, tags).n_rounds_ == 70
    model.partial_fit(more, tags)
    for one, two in zip(model.predict(X), again.predict(X), strict=True):
        assert one.tolist() == two.tolist()


def test_one_sequence_has_the_features_of_many():
    X, y = sentences(20)
    whole, pieces = dl.DriftTagger().fit(X, y), dl.DriftTagger()
    for x, tags in zip(X, y, strict=True):
        pieces.partial_fit([x], [tags], classes=["O", "B-x", "I-x"])
    for one, two in zip(whole.predict(X), pieces.predict(X), strict=True):
        assert one.tolist() == two.tolist()


def test_sparse_matrices_are_taken():
    stream = dl.streams.PlantedSequences(rounds=40, tags=3, seed=0)
    X = [csr_array(x) for x in stream.inputs]
    model = dl.DriftTagger(scaling=False).fit(X, stream.labels)
    dense = dl.DriftTagger(scaling=False).fit(stream.inputs, stream.labels)
    same = [
        np.array_equal(a, b)
        for a, b in zip(model.predict(X), dense.predict(X_dense(X)), strict=True)
    ]
    assert np.mean(same) > 0.9


def X_dense(X):  # noqa: N802
    return [x.toarray() for x in X]


@pytest.mark.parametrize(
    "X, text",
    [
        ([[{"a": 1}], []], "sequence 1 must be a list with a dict"),
        ([[{"a": 1}], [{"a": 1}, 3]], "sequence 1 must be a list with a dict"),
        ([[{"a": None}], [{}]], "numbers, True or strings"),
        ([[{3: 1.0}], [{}]], "named by strings"),
        ([[{"a": np.nan}], [{}]], "finite"),
        ([csr_array(np.eye(2)), np.eye(2)], "sequence 1 is not sparse"),
        ([csr_array(np.eye(2)), csr_array(np.eye(3))], "sequence 1 has 3 features"),
        ([], "1 sequence or more"),
    ],
)
def test_what_cannot_be_read_is_refused(X, text):
    with pytest.raises(dl.InputError, match=text):
        dl.DriftTagger().fit(X, [["a"], ["b"]])
    with pytest.raises(dl.InputError, match="columns must be"):
        dl.DriftTagger(columns=0).fit([[{"a": 1}]], [["a"]])


def test_spans_are_those_of_conll():
    assert spans("O O".split()) == []
    assert spans("I-x I-x I-y O B-y B-y".split()) == [
        Span("x", 0, 2),
        Span("y", 2, 3),
        Span("y", 4, 5),
        Span("y", 5, 6),
    ]
    assert spans(["B-a-b", "I-a-b"]) == [Span("a-b", 0, 2)]


def test_scores_of_spans_count_exact_ones():
    true = [["B-x", "I-x", "O", "B-y"], ["O", "B-x"]]
    assert span_scores(true, true).f1 == 1.0
    made = span_scores(true, [["B-x", "O", "O", "B-y"], ["O", "O"]])
    assert made == (0.5, 1 / 3, 0.4)
    assert span_scores([["O"]], [["O"]]) == (0.0, 0.0, 0.0)
    for given in ([["O"]], [["O"], ["O", "O"]], [["O"], ["B"]], [["O"], ["O-x"]], [["O"], ["x"]]):
        with pytest.raises(dl.InputError):
            span_scores([["O"], ["O"]], given)
