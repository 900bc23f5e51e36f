"""All of it runs without Numba: in plain Python, slowly, with the same results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from test_check_learner import GOOD
from test_features import MAPS, SPARSE, dense, sparse_table, table

import driftline as dl
from driftline.checks.learner_stream import planted

HERE = Path(__file__).parent
TASK = dl.tasks.Multiclass(3)
STREAM = dl.streams.Planted(TASK, rounds=80, flips=1)

WITHOUT = """
import json, sys, warnings
sys.modules["numba"] = sys.modules["llvmlite"] = None
sys.path.insert(0, {here!r})
import numpy as np
import driftline as dl
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    made = None
{code}
print(json.dumps([made, [str(w.message) for w in seen]]))
"""


def without_numba(code):
    """Run code in a process that cannot import Numba; return what it made, and its warnings."""
    lines = "\n".join(f"    {line}" for line in code.strip().splitlines())
    script = WITHOUT.format(here=str(HERE), code=lines)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


PLAIN = """
from test_check_learner import plain
from driftline.checks.learner_stream import planted
learner = plain()
trace = learner.run(*planted(learner, 60, 0))
made = trace.loss.tolist(), trace.risk.tolist(), learner.weights.tolist()
"""


def test_a_learner_of_plain_parts_needs_no_numba():
    (loss, risk, weights), seen = without_numba(PLAIN)
    learner = GOOD["plain"]()
    trace = learner.run(*planted(learner, 60, 0))
    assert seen == []
    np.testing.assert_allclose(loss, trace.loss, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(risk, trace.risk, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weights, learner.weights, rtol=1e-12, atol=1e-12)


ALL = """
from test_check_learner import GOOD
from test_features import MAPS, dense, table
from driftline.checks.learner_stream import planted
made = {}
for name in sorted(set(GOOD) - {"single"}):
    learner = GOOD[name]()
    trace = learner.run(*planted(learner, 40, 0))
    made[name] = trace.risk.tolist(), np.asarray(trace.prediction).tolist()
"""


def test_every_learner_falls_back_to_plain_rounds_with_one_warning():
    made, seen = without_numba(ALL)
    assert len(seen) == 1 and "rounds are played in plain Python" in seen[0]
    for name, (risk, prediction) in made.items():
        learner = GOOD[name]()
        trace = learner.run(*planted(learner, 40, 0))
        np.testing.assert_allclose(risk, trace.risk, rtol=1e-12, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(prediction, trace.prediction, err_msg=name)


CHECKED = """
from driftline import checks
from test_check_learner import drawing, voting
checks.check_learner(drawing(), rounds=20)
checks.check_learner(voting(), rounds=20)
checks.check_loss(dl.losses.ConvolutionalFenchelYoung(dl.tasks.Ordinal(3)), trials=6)
checks.check_polytope(dl.polytopes.Permutahedron((3.0, 2.0, 1.0)), trials=6)
"""


def test_laws_hold_without_numba():
    without_numba(CHECKED)


def learners():
    """Compiled learners whose states have all that can differ: a scale, and transposed weights."""
    return {
        "ball": dl.OGD(dl.losses.Logistic(TASK), domain=dl.domains.Ball(0.5)),
        "detector": dl.OGD(dl.losses.Logistic(TASK), restart=dl.detectors.Cusum(0.5)),
        "sparse": dl.OGD(dl.losses.Logistic(TASK), domain=dl.domains.Ball(0.5), intercept=True),
        "auto": dl.auto(TASK, effort="fast"),
    }


def inputs_of(name):
    return sparse.csr_array(STREAM.inputs) if name == "sparse" else STREAM.inputs


ON = """
from pathlib import Path
from test_without_numba import STREAM, inputs_of, learners
made = {{}}
for name in learners():
    learner = dl.load(Path({folder!r}) / name)
    trace = learner.run(inputs_of(name)[40:], STREAM.labels[40:])
    learner.save(Path({folder!r}) / name)
    made[name] = trace.risk.tolist()
"""


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    """Learners that have played, where they were saved and went on, and the risks of that."""
    folder, made = tmp_path_factory.mktemp("continued"), learners()
    for name, learner in made.items():
        learner.run(inputs_of(name)[:40], STREAM.labels[:40])
        learner.save(folder / name)
    return made, folder, without_numba(ON.format(folder=str(folder)))[0]


@pytest.mark.parametrize("name", learners())
def test_a_model_goes_on_where_there_is_no_numba_and_back(name, continued):
    made, folder, risks = continued
    learner, inputs = made[name], inputs_of(name)
    if name == "ball":
        assert learner.state.scale != 1.0
    trace = learner.run(inputs[40:], STREAM.labels[40:])
    np.testing.assert_allclose(risks[name], trace.risk, rtol=1e-10, atol=1e-10)
    back = dl.load(folder / name)
    again = back.run(inputs, STREAM.labels).risk
    np.testing.assert_allclose(again, learner.run(inputs, STREAM.labels).risk, atol=1e-9)


CERTIFIED = """
from test_without_numba import STREAM, TASK
trace = dl.OGD(dl.losses.Logistic(TASK)).run(STREAM)
found = dl.certify(trace, STREAM.comparator, STREAM)
compiled = dl.certify(dl.Trace.load({path!r}), STREAM.comparator, STREAM)
made = found.valid, compiled.valid, found.exact
"""


def test_runs_are_certified_without_numba(tmp_path):
    trace = dl.OGD(dl.losses.Logistic(TASK)).run(STREAM)
    path = trace.save(tmp_path / "trace")
    (valid, compiled, exact), _ = without_numba(CERTIFIED.format(path=str(path)))
    assert valid and compiled
    assert exact == pytest.approx(dl.certify(trace, STREAM.comparator, STREAM).exact)


REFUSED = """
try:
    dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)), dtype=np.float32)
except dl.InputError as error:
    made = str(error), dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3))).describe()
"""


def test_what_is_missing_is_said():
    (refused, described), _ = without_numba(REFUSED)
    assert "without Numba" in refused
    assert described.splitlines()[-1].startswith("speed    no Numba")


MAPPED = """
from test_features import MAPS, SPARSE, dense, sparse_table, table
rows, thin = table(0, 70), sparse_table(rows=70)
made = [dense(part.transform(rows)).tolist() for part in MAPS]
made += [dense(part.transform(thin)).tolist() for part in SPARSE]
"""


def test_maps_of_inputs_are_the_same_in_plain_python():
    found, seen = without_numba(MAPPED)
    assert len(seen) <= 1
    pairs = [(part, table(0, 70)) for part in MAPS]
    pairs += [(part, sparse_table(rows=70)) for part in SPARSE]
    for (part, rows), made in zip(pairs, found, strict=True):
        np.testing.assert_allclose(made, dense(part.transform(rows)), atol=1e-12)
