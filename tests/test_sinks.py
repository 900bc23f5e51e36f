"""Laws of sinks: what is handed on in batches is the trace of the run."""

import numpy as np
import pytest

import driftline as dl
from driftline.trace import trace_file


def rankings():
    return dl.streams.PlantedRankings(dl.tasks.NDCG(5), rounds=300, seed=3)


def learners():
    flips = dl.streams.LabelFlips(rounds=40_000, flips=3, seed=1)
    loss = dl.losses.Logistic(flips.task)
    doubled = dl.losses.Scaled(loss, 2.0)
    pair = [dl.OGD(loss, seed=1), dl.OGD(doubled, dl.decoders.Argmax(doubled))]
    restarting = dl.OGD(loss, restart=dl.detectors.Cusum(), seed=4)
    words = dl.streams.PlantedSequences(rounds=60, tags=3, longest=4, seed=2)
    return {
        "drawn": (lambda: dl.OGD(loss, seed=3), flips),
        "certain": (lambda: dl.OGD(doubled, dl.decoders.Argmax(doubled)), flips),
        "restarting": (lambda: restarting.copy(), flips),
        "committee": (lambda: dl.auto(flips.task, effort="fast"), flips),
        "guarded": (lambda: dl.Committee([one.copy() for one in pair], budget=1.5), flips),
        "documents": (lambda: dl.auto(rankings().task, effort="fast"), rankings()),
        "words": (lambda: dl.auto(words.task, effort="fast"), words),
    }


KINDS = learners()


class Traces(dl.Sink):
    """Keeps what it is handed, and how it ended."""

    def __init__(self, fail_at=None):
        self.traces, self.ended, self.fail_at = [], None, fail_at

    def add(self, trace):
        if len(self.traces) == self.fail_at:
            raise OSError(28, "No space left on device")
        self.traces.append(trace)

    def __exit__(self, kind, error, trace):
        self.ended = kind


def assert_same(trace, other):
    columns, others = trace.columns(), other.columns()
    assert columns.keys() == others.keys()
    for name, column in columns.items():
        assert column.dtype == others[name].dtype
        np.testing.assert_array_equal(column, others[name], err_msg=name)
    saved, again = trace.to_saved(), other.to_saved()
    assert saved[0] == again[0]
    for name, array in saved[1].items():
        np.testing.assert_array_equal(array, again[1][name], err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_joined_are_the_trace_of_the_run(kind):
    make, stream = KINDS[kind]
    whole, sink, learner = make().run(stream, audit=True), Traces(), make()
    assert learner.run(stream, audit=True, sink=sink) is None
    assert sink.ended is None
    assert_same(type(whole).join(sink.traces), whole)
    assert learner.rounds == len(stream.labels)


@pytest.mark.parametrize("kind", KINDS)
def test_a_streamed_file_is_the_trace_of_the_run(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "ROUNDS", 20_000)
    make, stream = KINDS[kind]
    whole, learner = make().run(stream, audit=True), make()
    sink = dl.TraceFile(tmp_path / "run")
    learner.run(stream, audit=True, sink=sink)
    assert sink.path == tmp_path / "run.npz"
    assert_same(type(whole).load(sink.path), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_streamed_run_is_certified(tmp_path):
    stream = dl.streams.LabelFlips(rounds=40_000, flips=3, seed=1)
    learner = dl.auto(stream.task, effort="fast")
    learner.run(stream, audit=True, sink=dl.TraceFile(tmp_path / "run"))
    trace = dl.CommitteeTrace.load(tmp_path / "run.npz")
    assert dl.certify(trace, None, stream).valid


def bad_stream():
    stream = dl.streams.LabelFlips(rounds=40_000, flips=3, seed=1)
    inputs = stream.inputs.copy()
    inputs[35_000] = np.nan
    return inputs, stream.labels


@pytest.mark.parametrize("fail_at", [None, 0, 1])
def test_a_run_that_is_refused_was_never_made(fail_at, tmp_path):
    inputs, labels = bad_stream()
    learner = dl.auto(KINDS["drawn"][1].task, effort="fast")
    learner.run(inputs[:500], labels[:500])
    before, sink = learner.save(tmp_path / "before").read_bytes(), Traces(fail_at)
    error = dl.InputError if fail_at is None else OSError
    with pytest.raises(error):
        learner.run(inputs, labels, sink=sink)
    assert sink.ended is error
    assert learner.save(tmp_path / "after").read_bytes() == before


def test_a_run_that_is_refused_leaves_the_older_file(tmp_path):
    inputs, labels = bad_stream()
    learner, sink = dl.OGD(dl.losses.Logistic(KINDS["drawn"][1].task)), dl.TraceFile(tmp_path / "a")
    learner.run(inputs[:100], labels[:100], sink=sink)
    before = sink.path.read_bytes()
    with pytest.raises(dl.InputError):
        learner.run(inputs, labels, sink=sink)
    assert sink.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    learner.run(inputs[100:300], labels[100:300], sink=sink)
    assert len(dl.Trace.load(sink.path)) == 200


def test_a_file_that_was_cut_is_refused(tmp_path):
    make, stream = KINDS["drawn"]
    sink = dl.TraceFile(tmp_path / "a")
    make().run(stream, sink=sink)
    content = sink.path.read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        sink.path.write_bytes(content[:length])
        with pytest.raises(dl.InputError, match="is not a trace"):
            dl.Trace.load(sink.path)


@pytest.mark.parametrize("count", [0, -1, 3, 10**9, "2", None, True])
def test_a_file_of_other_batches_is_refused(count, tmp_path, monkeypatch):
    from driftline.state import archive

    monkeypatch.setattr(trace_file, "ROUNDS", 20_000)
    make, stream = KINDS["drawn"]
    sink = dl.TraceFile(tmp_path / "a")
    make().run(stream, sink=sink)
    about, arrays = archive.read(sink.path)
    assert about["batches"] == 2
    archive.write(sink.path, about | {"batches": count}, arrays)
    with pytest.raises(dl.InputError, match="is not a trace"):
        dl.Trace.load(sink.path)


def test_what_is_no_sink_is_refused():
    make, stream = KINDS["drawn"]
    with pytest.raises(dl.InputError, match="expected a sink"):
        make().run(stream, sink=print)


def test_a_sink_that_is_open_is_for_one_run(tmp_path):
    make, stream = KINDS["drawn"]
    sink = dl.TraceFile(tmp_path / "a")
    with sink, pytest.raises(dl.InputError, match="for one run"):
        make().run(stream, sink=sink)


def test_a_full_disk_leaves_learner_and_folder_as_they_were(tmp_path, monkeypatch):
    from driftline import files

    monkeypatch.setattr(trace_file, "ROUNDS", 20_000)
    make, stream = KINDS["drawn"]
    written, write = [], files.disk.write

    def full(handle, content):
        written.append(len(content))
        if sum(written) > limits[-1]:
            raise OSError(28, "No space left on device")
        write(handle, content)

    limits = [10**9]
    monkeypatch.setattr(files.disk, "write", full)
    make().run(stream, sink=dl.TraceFile(tmp_path / "a"))
    whole = sum(written)
    (tmp_path / "a.npz").unlink()
    for limit in (0, whole // 2, whole - 1):
        written.clear()
        limits.append(limit)
        learner = make()
        with pytest.raises(OSError, match="No space left"):
            learner.run(stream, sink=dl.TraceFile(tmp_path / "a"))
        assert learner.rounds == 0 and not list(tmp_path.iterdir())
