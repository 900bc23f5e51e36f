"""``python -m benchmarks.spark``: a learner for every key on Spark, beside one machine.

Half of the rows have their labels, the others get them in rows of their own, up to 5,000 rows
later. The stream is played by ``dl.Keyed``, row by row; by Spark in local mode, without a break;
and by Spark with a driver that is killed in the middle and started again. All predictions and the
learners of all keys must be equal, bit for bit. Then a table with all labels, by ``dl.Keyed.run``
and by Spark. Times of Spark begin when its session is there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

import driftline as dl
from driftline.integrations.spark import learner_of, predictions

SCHEMA = "key bigint, id bigint, t bigint, x array<double>, y bigint"
COLUMNS: dict[str, Any] = dict(key="key", id="id", features="x", label="y", order="t")
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FEATURES, LATE = 16, 5000


def made_learner(name: str) -> Any:
    task = dl.tasks.Multiclass(3)
    if name == "fast":
        return dl.auto(task, effort="fast")
    loss = dl.losses.Logistic(task)
    return dl.OGD(loss, dl.decoders.GapOptimal(loss), seed=1)  # drawn: numbers of tickets count


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDER)
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def stream(rows: int, keys: int) -> dict[str, np.ndarray]:
    """Return events in their order: ``x`` is a row of the inputs, or -1 in a row of a label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES))
    key, at = rng.integers(0, keys, rows), np.arange(rows)
    turned = (at * 4 // rows) % 2  # classes change places three times
    y = ((X[:, 0] > 0).astype(int) + (X[:, 1] > 0) + turned) % 3
    late = rng.random(rows) < 0.5
    when = (at + rng.integers(1, LATE, rows) + 0.5)[late]
    place = np.concatenate([at.astype(float), when])
    order = np.argsort(place, kind="stable")
    event = {
        "key": np.concatenate([key, key[late]])[order],
        "id": np.concatenate([at, at[late]])[order],
        "x": np.concatenate([at, np.full(late.sum(), -1)])[order],
        "y": np.concatenate([np.where(late, -1, y), y[late]])[order],
        "t": np.arange(len(order)),
    }
    return event | {"inputs": X, "keys": key, "labels": y}


def write(folder: Path, data: dict[str, np.ndarray], files: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True)
    rng, X = np.random.default_rng(1), data["inputs"]
    for place, part in enumerate(np.array_split(data["t"], files)):
        rows = rng.permutation(part)
        inputs = [X[i] if i >= 0 else None for i in data["x"][rows].tolist()]
        labels = data["y"][rows]
        columns = [
            pa.array(data["key"][rows]),
            pa.array(data["id"][rows]),
            pa.array(rows),
            pa.array(inputs, pa.list_(pa.float64())),
            pa.array(labels, mask=labels < 0),
        ]
        path = folder / f"{place:04}.parquet"
        parquet.write_table(pa.Table.from_arrays(columns, ["key", "id", "t", "x", "y"]), path)
        os.utime(path, (1_000_000_000 + place, 1_000_000_000 + place))


def play(spark: Any, inputs: Path, folder: Path, learner: Any) -> None:
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(inputs))
    writer = predictions(source, learner, **COLUMNS).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()


def one_machine(data: dict[str, np.ndarray], learner: Any) -> tuple[Any, dict[int, int]]:
    fleet, tickets, made, X = dl.Keyed(learner), {}, {}, data["inputs"]
    names = ("key", "id", "x", "y")
    for key, id, place, label in zip(*(data[name].tolist() for name in names), strict=True):
        if place < 0:
            fleet.tell(tickets.pop(id), label)
        elif label < 0:
            tickets[id] = fleet.ask(key, X[place])
            made[id] = tickets[id].prediction
        else:
            made[id] = fleet.step(key, X[place], label).prediction
    return fleet, made


def check(spark: Any, folder: Path, fleet: Any, expected: dict[int, int]) -> str:
    table = spark.read.parquet(str(folder / "out")).select("id", "prediction", "error").collect()
    same = len(table) == len(expected) and {row[0]: row[1] for row in table} == expected
    reader = spark.read.format("statestore").option("path", str(folder / "checkpoint"))
    states = reader.option("stateVarName", "learner").load().collect()
    same &= len(states) == len(fleet)
    for row in states:
        (about, own), (also, other) = (
            learner.to_saved()
            for learner in (learner_of(row.value.content), fleet.learner(row.key.key))
        )
        same &= about == also and own.keys() == other.keys()
        same &= all(own[name].tobytes() == other[name].tobytes() for name in own)
    return "equal bit for bit" if same else "NOT EQUAL"


def committed(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def killed(inputs: Path, folder: Path, name: str, cores: int, files: int) -> int:
    """Let a driver play half of the files, kill it, and return how many micro batches are done."""
    command = [sys.executable, "-m", "benchmarks.spark", "--learner", name, "--cores", str(cores)]
    driver = subprocess.Popen(
        [*command, "--drive", str(inputs), str(folder)],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while committed(folder) < files // 2 and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(1.0)  # into the middle of a micro batch
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    return committed(folder)


@click.command()
@click.option("--rows", default=200_000, show_default=True)
@click.option("--keys", default=1000, show_default=True)
@click.option("--files", default=10, show_default=True, help="Micro batches.")
@click.option("--cores", default=2, show_default=True)
@click.option("--learner", type=click.Choice(["ogd", "fast"]), default="ogd", show_default=True)
@click.option("--drive", nargs=2, type=click.Path(path_type=Path), hidden=True)
def main(rows: int, keys: int, files: int, cores: int, learner: str, drive: Any) -> None:
    """Play a stream and a table on Spark and on one machine, and compare."""
    if drive:
        play(session(cores), *drive, made_learner(learner))
        return

    def say(name: str, start: float, count: int, words: str = "") -> None:
        took = time.perf_counter() - start
        print(f"{name:44}{took:8.1f} s{count / took:10,.0f} rows/s  {words}", flush=True)

    data = stream(rows, keys)
    events = len(data["t"])
    print(f"{learner}: {rows:,} rows of {keys:,} keys, {events:,} with those of late labels")
    made_learner(learner).run(data["inputs"][:100], data["labels"][:100])  # compiled before
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / "in", data, files)
        start = time.perf_counter()
        fleet, expected = one_machine(data, made_learner(learner))
        say("stream, dl.Keyed, ask and tell", start, events)
        before = killed(folder / "in", folder / "killed", learner, cores, files)
        spark = session(cores)
        start = time.perf_counter()
        play(spark, folder / "in", folder / "whole", made_learner(learner))
        say(f"stream, Spark, {files} micro batches", start, events)
        print("  ", check(spark, folder / "whole", fleet, expected))
        play(spark, folder / "in", folder / "killed", made_learner(learner))
        print(f"   killed after {before} of {files} micro batches and started again:", end=" ")
        print(check(spark, folder / "killed", fleet, expected), flush=True)
        start = time.perf_counter()
        trace = dl.Keyed(made_learner(learner)).run(data["keys"], data["inputs"], data["labels"])
        say("table, dl.Keyed.run", start, rows)
        at = np.arange(rows)
        whole = {"key": data["keys"], "id": at, "t": at, "x": at, "y": data["labels"]}
        write(folder / "table", whole | {"inputs": data["inputs"]}, 4)
        start = time.perf_counter()
        table = predictions(
            spark.read.parquet(str(folder / "table")), made_learner(learner), **COLUMNS
        )
        got = dict(table.select("id", "prediction").collect())
        same = [got[i] for i in range(rows)] == trace.prediction.tolist()
        say("table, Spark", start, rows, "equal" if same else "NOT EQUAL")
        spark.stop()


if __name__ == "__main__":
    main()
