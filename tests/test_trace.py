"""A trace keeps what happened, on disk too."""

import json

import numpy as np
import pytest

import driftline as dl
from driftline.parts import from_config
from driftline.state import archive


@pytest.fixture
def trace():
    stream = dl.streams.DigitTriples(rounds=200, flips=1)
    return dl.OGD(dl.losses.SmoothHinge(stream.task)).run(stream, seed=0)


def test_columns_have_a_row_per_round(trace):
    assert len(trace) == 200
    assert {name: column.shape for name, column in trace.to_dict().items()} == dict.fromkeys(
        ("loss", "risk", "target_loss", "eta", "grad_sq", "prediction"), (200,)
    )
    assert set(np.unique(trace.target_loss)) <= {0.0, 1.0}
    assert trace.prediction.dtype == np.int64


def test_summary_adds_up(trace):
    summary = trace.summary()
    assert summary["target_loss"] == trace.target_loss.sum()
    assert summary["admissible"] == 1.0
    assert "200 rounds" in repr(trace)


def test_to_any_frame(trace):
    frame = trace.to_frame(dict)
    assert list(frame) == ["loss", "risk", "target_loss", "eta", "grad_sq", "prediction"]


def test_save_and_load(trace, tmp_path):
    path = trace.save(tmp_path / "run")
    assert path == tmp_path / "run.npz"
    again = dl.Trace.load(path)
    for name, column in trace.to_dict().items():
        np.testing.assert_array_equal(getattr(again, name), column)
    np.testing.assert_array_equal(again.first_weights, trace.first_weights)
    assert again.config == trace.config and again.digest == trace.digest


def test_no_pickle_is_ever_loaded(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, loss=np.array([object()], dtype=object))
    with pytest.raises(dl.InputError, match="is not a trace"):
        dl.Trace.load(path)


def test_files_that_are_no_trace(trace, tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(dl.InputError, match="is not a trace"):
        dl.Trace.load(tmp_path / "text.npz")
    about, arrays = trace.to_saved()
    arrays["risk"] = arrays["risk"][:-1]
    path = archive.write(tmp_path / "short", about, arrays)
    with pytest.raises(dl.InputError, match="differ in length"):
        dl.Trace.load(path)
    with pytest.raises(FileNotFoundError):
        dl.Trace.load(tmp_path / "none.npz")


def test_config_rebuilds_the_learner(trace):
    config = json.loads(json.dumps(trace.config))
    stream = dl.streams.DigitTriples(rounds=200, flips=1)
    learner = dl.OGD(
        **{name: from_config(config[name]) for name in ("loss", "decoder", "rate", "domain")}
    )
    np.testing.assert_array_equal(learner.run(stream, seed=0).loss, trace.loss)


PARTS = [
    dl.tasks.Multiclass(4),
    dl.tasks.Binary(),
    dl.tasks.CostSensitive([[0, 1.5], [2, 0]]),
    dl.losses.Scaled(dl.losses.Logistic(dl.tasks.Binary(), base=1.5), 2.0),
    dl.losses.Hinge(dl.tasks.Multiclass(3), 0.5),
    dl.decoders.NearestVertex(dl.losses.Logistic(dl.tasks.Multiclass(3), 3.0), allow_no_gap=True),
    dl.decoders.Argmax(dl.losses.SmoothHinge(dl.tasks.Binary())),
    dl.rates.Constant(),
    dl.rates.Constant(0.1, 3.0),
    dl.rates.AdaGrad(),
    dl.rates.Polyak(monotone=False, cap=2.0),
    dl.domains.Ball(3.0),
    dl.domains.Unbounded(),
    dl.domains.BallAround([[1.0, 2.0], [3.0, 4.0]], 2.0),
    dl.domains.Box([[0.0, -1.0]], [[1.0, 2.0]]),
    dl.domains.RowBalls(3, 2.0),
]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_every_part_is_rebuilt_from_plain_data(part):
    assert from_config(json.loads(json.dumps(part.config()))) == part
    assert hash(part) == hash(from_config(part.config()))


def test_an_infinite_cap_survives_json():
    part = dl.rates.Polyak()
    assert from_config(json.loads(json.dumps(part.config()))) == part


@pytest.mark.parametrize(
    "config, words",
    [
        ({"type": "os.system"}, "no part is registered"),
        ({"type": ["x"]}, "no part is registered"),
        ({}, "no part is registered"),
        ({"type": "domains.Ball", "radius": 3}, "no field 'radius'"),
        ({"type": "domains.Ball", "diameter": -3}, "must be positive"),
    ],
)
def test_strange_configurations_are_refused(config, words):
    with pytest.raises(dl.InputError, match=words):
        from_config(config)


def test_the_digest_tells_streams_apart():
    stream = dl.streams.LabelFlips(rounds=200, flips=1)
    runs = []
    for labels, inputs in (
        (stream.labels, stream.inputs),
        (stream.labels, stream.inputs.copy()),
        (-stream.labels, stream.inputs),
        (stream.labels, -stream.inputs),
    ):
        runs.append(dl.OGD(dl.losses.Logistic(stream.task)).run(inputs, labels).digest)
    assert runs[0] == runs[1] and len(set(runs)) == 3
