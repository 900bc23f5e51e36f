"""``driftline certify`` takes the folder of a run, and replays what is in it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from commands import call, data, write_csv
from test_runs_killed import ranking, sparse, tags

from driftline.app.runs import audit_buffer
from driftline.committee import CommitteeTrace


def classes(folder):
    return write_csv(folder / "t.csv", *data(240)), ()


def paper(folder):
    return write_csv(folder / "t.csv", *data(240)), ("--learner", "paper")


@pytest.mark.parametrize("kind", [classes, tags, ranking, sparse, paper])
def test_a_run_with_a_trace_is_replayed_from_its_folder(tmp_path, kind):
    path, options = kind(tmp_path)
    out = tmp_path / "out"
    options = [option for option in options if option != "--trace"]
    assert call("run", path, *options, "--out", out, "--trace", "--certify").exit_code == 0
    recorded = json.loads((out / "summary.json").read_text())["certificate"]
    for run in (out, out / "trace.npz"):
        done = call("certify", run, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["total"] == pytest.approx(recorded["paid"])
    shown = call("certify", out)
    assert shown.exit_code == 0 and "pickle" not in shown.output


def test_a_trace_that_was_edited_is_found_out(tmp_path):
    path, out = classes(tmp_path)[0], tmp_path / "out"
    call("run", path, "--out", out, "--trace")
    trace = CommitteeTrace.load(out / "trace.npz")
    trace.member_risk[17, 0] += 0.25
    trace.save(out / "trace.npz")
    done = call("certify", out)
    assert done.exit_code == 1, done.output


def test_without_a_trace_the_audit_at_the_end_is_shown(tmp_path):
    path, out = classes(tmp_path)[0], tmp_path / "out"
    call("run", path, "--out", out)
    done = call("certify", out)
    assert done.exit_code == 0 and "as recorded at the end of the run" in done.stdout
    assert "nothing to object to" in done.stdout and "--trace" in done.stderr
    recorded = json.loads((out / "summary.json").read_text())["certificate"]
    assert json.loads(call("certify", out, "--json").stdout) == recorded


def test_what_cannot_be_certified_says_why(tmp_path, monkeypatch):
    path, out = classes(tmp_path)[0], tmp_path / "out"
    call("run", path, "--out", out, "--no-certify")
    done = call("certify", out)
    assert done.exit_code and "nothing was kept for an audit" in done.output
    monkeypatch.setattr(audit_buffer, "MOST", 10)
    call("run", path, "--out", out, "--fresh")
    done = call("certify", out)
    assert done.exit_code and "the run is too long to be kept for an audit" in done.output
    assert "driftline run --trace" in done.output
    (out / "summary.json").write_text('{"certificate": 3}')
    assert "summary.json is damaged or was edited" in call("certify", out).output
    (tmp_path / "empty").mkdir()
    assert "holds no finished run" in call("certify", tmp_path / "empty").output
    call("run", path, "--out", out, "--trace", "--fresh")
    shutil.copy(out / "trace.npz", tmp_path / "alone.npz")
    assert "a trace without its inputs" in call("certify", tmp_path / "alone.npz").output
    assert "leave --data out" in call("certify", out, "--data", out / "inputs.npz").output
    (out / "inputs.npz").unlink()
    assert "has no inputs.npz" in call("certify", out).output


def test_no_advice_on_pickles_is_given(tmp_path):
    path, out = classes(tmp_path)[0], tmp_path / "out"
    call("run", path, "--out", out, "--trace")
    np.savez(tmp_path / "objects.npz", inputs=np.array([{}], dtype=object), labels=[0])
    for wrong in (path, tmp_path / "objects.npz"):
        done = call("certify", out / "trace.npz", "--data", wrong)
        assert done.exit_code and "allow_pickle" not in done.output
        assert "expected inputs and labels, as numpy.savez writes them" in done.output
