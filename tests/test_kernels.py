"""The compiled side: the cache on disk, light imports, one loop for all parts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftline as dl
from driftline.kernels import (
    POINT,
    Kernel,
    cache,
    helper,
    kernel,
    play_dense,
    sort_decreasing,
    sorting_room,
)


def python(code, **env):
    """Run code in a new process; return what it prints, as JSON."""
    environment = os.environ | env
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, json, driftline; print(json.dumps(sorted(sys.modules)))"
    loaded = set(python(code))
    heavy = {"numba", "scipy", "sklearn", "matplotlib", "click", "rich", "pandas", "torch"}
    assert not loaded & heavy


def test_a_learner_needs_neither_scipy_nor_scikit_learn():
    code = (
        "import sys, json, driftline as dl;"
        "dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(3)));"
        "print(json.dumps(sorted(sys.modules)))"
    )
    brought = set(python("import sys, json, scipy.linalg; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"scipy.sparse", "sklearn", "matplotlib", "click", "rich"} - brought  # by compiled code
    assert not set(python(code)) & heavy


RUN = """
import json, numpy as np, driftline as dl
stream = dl.streams.LabelFlips(rounds=50, flips=1)
trace = dl.OGD(dl.losses.Logistic(stream.task)).run(stream, seed=0)
from pathlib import Path
from driftline.kernels import cache_directory, dense
loop = dense.play_dense[np.dtype(float)]
folder, stats = cache_directory(Path(dense.__file__)), loop.compiled.stats
print(json.dumps([trace.risk.sum(), str(folder), sum(stats.cache_hits.values())]))
"""


@pytest.mark.slow
def test_the_cache_serves_the_next_process(tmp_path):
    cold = python(RUN, DRIFTLINE_CACHE=str(tmp_path))
    warm = python(RUN, DRIFTLINE_CACHE=str(tmp_path))
    assert cold[0] == warm[0]
    assert cold[2] == 0 and warm[2] == 1
    assert cold[1].startswith(str(tmp_path))


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    answer = python(RUN, DRIFTLINE_CACHE=str(blocked))
    assert answer[1] == "None"


def test_the_cache_is_named_after_the_sources_that_a_kernel_depends_on(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PACKAGE", tmp_path / "driftline")

    def digest_of(folder, name, **changed):
        files = {
            "losses/own.py": "from driftline.kernels import (\n    kernel,\n    dot,\n)",
            "kernels/__init__.py": "from driftline.kernels.linalg import dot as dot",
            "kernels/linalg.py": "import driftline.errors",
            "errors.py": "one",
            "words.py": "from driftline.losses import own",
        } | {path.replace("__", "/") + ".py": text for path, text in changed.items()}
        for path, text in files.items():
            file = tmp_path / folder / "driftline" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.setattr(cache, "PACKAGE", tmp_path / folder / "driftline")
        return cache.sources_digest(cache.PACKAGE / name)

    first = digest_of("a", "losses/own.py")
    assert digest_of("b", "losses/own.py") == first  # wherever it lies
    assert digest_of("c", "losses/own.py", words="two") == first  # what imports it
    assert digest_of("d", "losses/own.py", errors="two") != first  # what it imports, by a door
    assert digest_of("e", "kernels/linalg.py", losses__own="two") == digest_of(
        "f", "kernels/linalg.py"
    )


@pytest.mark.parametrize(
    "words",
    ["from pieces import one", "import pieces", "from . import pieces", "from .pieces import *"],
)
def test_the_cache_knows_what_a_file_of_a_user_imports(words, tmp_path):
    digests = list[str]()
    for value in (1, 1, 2):
        folder = tmp_path / f"{len(digests)}" / "mine"
        folder.mkdir(parents=True)
        (folder / "own.py").write_text(
            f"import numpy as np\n{words}\nfrom driftline.kernels import helper"
        )
        (folder / "pieces.py").write_text(f"one = {value}")
        digests.append(cache.sources_digest(folder / "own.py"))
    assert digests[0] == digests[1] != digests[2]


def test_the_cache_knows_the_files_of_all_that_a_kernel_calls():
    def called(function, known):
        for name in function.__code__.co_names:
            own = function.__globals__.get(name)
            own = getattr(own, "py_func", getattr(own, "function", own))
            if own not in known and getattr(own, "__module__", "").startswith("driftline"):
                if hasattr(own, "__code__"):
                    known.add(own)
                    called(own, known)
        return known

    modules = [own for name, own in sys.modules.copy().items() if name.startswith("driftline.")]
    kernels = {own for module in modules for own in vars(module).values() if type(own) is Kernel}
    assert len(kernels) > 100
    for one in kernels:
        source = Path(one.function.__code__.co_filename).resolve()
        files, queue = set(), [source]
        while queue:
            if (path := queue.pop()) not in files:
                files.add(path)
                queue += cache._imported(path)
        assert {Path(own.__code__.co_filename) for own in called(one.function, set())} <= files


def test_all_parts_share_one_compiled_loop():
    X, y = np.eye(3), np.array([0, 1, 2])
    task = dl.tasks.Multiclass(3)
    loop = play_dense[np.dtype(float)]
    before = len(loop.compiled.overloads)
    for loss in (dl.losses.Logistic(task), dl.losses.SmoothHinge(task)):
        for make in (dl.decoders.UniformMix, dl.decoders.GapOptimal, dl.decoders.StepOptimal):
            for rate in (dl.rates.Polyak(), dl.rates.AdaGrad(), dl.rates.Constant()):
                dl.OGD(loss, make(loss), rate).run(X, y)
    assert len(loop.compiled.overloads) == before == 1


@kernel(POINT)
def order_of(point, params, scratch, out):
    """Sort, for the test below."""
    sort_decreasing(point, out, scratch)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100, 1000, 5000])
def test_sorting_is_stable_at_every_size(n):
    generator = np.random.default_rng(n)
    for values in (
        generator.standard_normal(n),
        generator.integers(-3, 4, n).astype(float),
        10.0 ** generator.uniform(-300, 300, n) * generator.choice([-1, 1], n),
        np.zeros(n),
        np.where(generator.random(n) < 0.5, 0.0, -0.0),
        np.arange(n, dtype=float),
    ):
        out = np.empty(n)
        order_of(values, np.zeros(1), np.empty(sorting_room(n)), out)
        np.testing.assert_array_equal(out, np.argsort(-values, kind="stable"))


def test_kernels_are_named():
    assert repr(play_dense[np.dtype(float)]) == "<kernel driftline.kernels.dense.play_dense>"


def test_a_kernel_typed_at_a_prompt_is_compiled():
    source = "from driftline.kernels import RATE, kernel\n@kernel(RATE)\n"
    source += "def half(loss, risk, grad_sq, input_sq, previous, params, memory):\n    return 0.5\n"
    names = {"__name__": "__main__"}
    exec(compile(source, "<stdin>", "exec"), names)
    assert names["half"](1.0, 0.0, 1.0, 1.0, 1.0, np.zeros(1), np.zeros(1)) == 0.5


def test_a_piece_of_kernels_is_refused_by_python():
    """It has no machine code of its own, before and after a kernel was made with it."""

    @helper
    def half(x):
        return 0.5 * x

    @kernel(POINT)
    def halve(x, params, scratch, out):
        for i in range(x.size):
            out[i] = half(x[i])

    with pytest.raises(TypeError, match="not callable"):
        half(1.0)
    out = np.empty(2)
    halve(np.array([2.0, 3.0]), np.zeros(0), np.zeros(0), out)
    assert out.tolist() == [1.0, 1.5]
    with pytest.raises(TypeError, match="not callable"):
        half(1.0)
