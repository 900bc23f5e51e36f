"""Without Spark: nothing imports it, and what needs it says how to get it."""

import subprocess
import sys

import pytest

import driftline as dl
from driftline.integrations.spark import predictions


def test_the_module_is_imported_without_spark_and_pandas():
    text = (
        "import sys, driftline.integrations.spark\n"
        "print(sorted({'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["pyspark", "pandas", "pyarrow"])
def test_what_is_missing_is_named_with_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2)))
    with pytest.raises(dl.InputError, match="the extra spark"):
        predictions(None, learner, key="k", features=["a"], label="y", order="t")
