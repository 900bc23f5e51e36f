"""Learners on Spark, in local mode: the bits of one machine, whatever is late, killed or wrong."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import driftline as dl

pytest.importorskip("pyspark", reason="Spark is tested by make test-spark")
pytest.importorskip("pandas")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

import pandas as pd  # noqa: E402
from spark_job import COLUMNS, LEARNERS, committed, drawn, query, session, write  # noqa: E402

from driftline.integrations.spark import learner_of, predictions  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(11)
ROWS, KEYS, FILES = 600, 6, 5
X = RNG.normal(size=(ROWS, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
SHOPS = RNG.integers(0, KEYS, ROWS)


@pytest.fixture(scope="module")
def spark():
    made = session()
    yield made
    made.stop()


def rows_with_late_labels():
    """Return rows as (shop, id, order, input, label): labels at once, late, early or never."""
    rng, made = np.random.default_rng(1), []
    for i, x in enumerate(X.tolist()):
        shop, label, kind = int(SHOPS[i]), int(Y[i]), rng.random()
        made.append((shop, f"r{i}", 1000 * i, x, label if kind < 0.4 else None))
        if 0.4 <= kind < 0.95:
            when = 1000 * (i + int(rng.integers(-20, 200))) + 1 + i
            made.append((shop, f"r{i}", when, None, label))
    return sorted(made, key=lambda row: row[2])


def one_machine(fleet, rows):
    """Play rows one by one by dl.Keyed, as a program with a dictionary would."""
    tickets, early, made = {}, {}, {}
    for shop, id, _, x, label in rows:
        name = shop, id
        if x is not None:
            label = early.pop(name, label)
            if label is not None:
                made[name] = fleet.step(shop, x, label).prediction
            else:
                tickets[name] = fleet.ask(shop, x)
                made[name] = tickets[name].prediction
        elif name in tickets:
            fleet.tell(tickets.pop(name), label)
        else:
            early[name] = label
    return made


def written(folder, rows, files=FILES, first=0):
    (folder / "in").mkdir(exist_ok=True)
    for place, part in enumerate(np.array_split(np.arange(len(rows)), files)):
        write(folder / "in", first + place, [rows[i] for i in part.tolist()])


def answered(spark, folder):
    """Return all predictions of a query, each once."""
    table = spark.read.parquet(str(folder / "out")).collect()
    assert not [row for row in table if row.error is not None]
    made = {(row.shop, row.row): row.prediction for row in table}
    assert len(made) == len(table)
    return made


def saved(learner):
    about, arrays = learner.to_saved()
    return about, {name: array.tobytes() for name, array in arrays.items()}


def learners(spark, folder):
    """Return the learners of all keys from the checkpoint of a query."""
    reader = spark.read.format("statestore").option("path", str(folder / "checkpoint"))
    table = reader.option("stateVarName", "learner").load().collect()
    return {row.key.shop: learner_of(row.value.content) for row in table}


def check_equal(spark, folder, rows, make):
    fleet = dl.Keyed(make())
    assert answered(spark, folder) == one_machine(fleet, rows)
    made = learners(spark, folder)
    assert set(made) == set(fleet)
    for shop, learner in made.items():
        assert saved(learner) == saved(fleet.learner(shop))


# -- tables


def table_of(spark, tmp_path, rows):
    written(tmp_path, rows, files=3)
    return spark.read.parquet(str(tmp_path / "in"))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_table_has_the_predictions_of_one_machine(spark, tmp_path, name):
    rows = [(int(SHOPS[i]), f"r{i}", i, X[i].tolist(), int(Y[i])) for i in range(ROWS)]
    made = predictions(table_of(spark, tmp_path, rows), LEARNERS[name](), **COLUMNS).toPandas()
    trace = dl.Keyed(LEARNERS[name]()).run(SHOPS, X, Y)
    made = made.sort_values("row", key=lambda ids: ids.str[1:].astype(int))
    assert made.prediction.tolist() == trace.prediction.tolist()
    assert made.error.isna().all()


def test_a_table_has_late_labels_too(spark, tmp_path):
    rows = rows_with_late_labels()
    made = predictions(table_of(spark, tmp_path, rows), drawn(), **COLUMNS).collect()
    expected = one_machine(dl.Keyed(drawn()), rows)
    assert {(row.shop, row.row): row.prediction for row in made} == expected


def test_columns_may_be_many_and_keys_may_be_tuples(spark):
    from pyspark.sql import functions

    table = pd.DataFrame(X, columns=["a", "b.c", "d`e"])
    table["shop"] = [f"shop {own}" for own in SHOPS]
    table["shelf"] = (np.arange(ROWS) % 2).astype(np.int32)
    table["time"] = pd.to_datetime(np.arange(ROWS) * 1_000_000, unit="ns")
    table["tags"] = [[int(a), int(b)] for a, b in X[:, :2] > 0]
    frame = spark.createDataFrame(table).withColumn("shelf", functions.col("shelf").cast("int"))
    learner = dl.OGD(dl.losses.Logistic(dl.tasks.Multilabel(2)))
    made = predictions(
        frame.repartition(3),
        learner,
        key=["shop", "shelf"],
        features=["a", "b.c", "d`e"],
        label="tags",
        order="time",
    )
    assert made.columns == ["shop", "shelf", "prediction", "rounds", "error"]
    keys = list(zip(table.shop, table.shelf.tolist(), strict=True))
    trace = dl.Keyed(learner).run(keys, X, np.array(table.tags.tolist()))
    got = {(row.shop, row.shelf, row.rounds): row.prediction for row in made.collect()}
    counts, expected = dict.fromkeys(keys, 0), {}
    for key, prediction in zip(keys, trace.prediction.tolist(), strict=True):
        expected[*key, counts[key]] = prediction
        counts[key] += 1
    assert got == expected


# -- streams


@pytest.mark.parametrize("name", LEARNERS)
def test_a_stream_has_the_bits_of_one_machine(spark, tmp_path, name):
    rows = rows_with_late_labels()
    written(tmp_path, rows)
    query(spark, tmp_path, LEARNERS[name]())
    check_equal(spark, tmp_path, rows, LEARNERS[name])


def test_a_query_that_is_stopped_goes_on_from_its_checkpoint(spark, tmp_path):
    rows = rows_with_late_labels()
    half = len(rows) // 2
    written(tmp_path, rows[:half])
    running = query(spark, tmp_path, drawn(), wait=False)
    deadline = time.monotonic() + 120.0
    while committed(tmp_path) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    running.stop()
    written(tmp_path, rows[half:], first=FILES)
    query(spark, tmp_path, drawn())
    assert committed(tmp_path) >= 2 * FILES
    check_equal(spark, tmp_path, rows, drawn)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_query_whose_driver_is_killed_goes_on_from_its_checkpoint(spark, tmp_path, name):
    rows = rows_with_late_labels()
    written(tmp_path, rows, files=12)
    here = Path(__file__).parent
    for kill in range(2):
        before = committed(tmp_path)
        driver = subprocess.Popen(
            [sys.executable, str(here / "spark_job.py"), str(tmp_path), name],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 180.0
            while committed(tmp_path) < before + 2 + kill and time.monotonic() < deadline:
                assert driver.poll() is None
                time.sleep(0.02)
            time.sleep(0.3 * kill)  # into the middle of a micro batch
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert 4 <= committed(tmp_path) < 12
    query(spark, tmp_path, LEARNERS[name]())
    check_equal(spark, tmp_path, rows, LEARNERS[name])


def test_bad_rows_and_those_that_come_twice_do_not_stop_a_query(spark, tmp_path):
    good = [(1, f"r{i}", i, X[i].tolist(), int(Y[i])) for i in range(40)]
    bad = [
        (1, "no number", 41, [0.0, float("nan"), 0.0], 1),
        (1, "null inside", 42, [0.0, None, 0.0], 1),
        (1, "too short", 43, [0.0], 1),
        (1, "no such label", 44, [0.0, 0.0, 0.0], 7),
        (1, "empty", 45, None, None),
        (1, None, 46, [0.0, 0.0, 0.0], 1),
        (1, "no order", None, [0.0, 0.0, 0.0], 1),
        (None, "no key", 47, [0.0, 0.0, 0.0], 1),
    ]
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", 0, [*good[:30], *bad])
    write(tmp_path / "in", 1, [*good[:10], *good, *bad[:2]])
    query(spark, tmp_path, drawn())
    table = spark.read.parquet(str(tmp_path / "out")).collect()
    refused = [(row.shop, row.row) for row in table if row.error is not None]
    key = lambda pair: str(pair)  # noqa: E731
    assert sorted(refused, key=key) == sorted([own[:2] for own in bad + bad[:2]], key=key)
    assert all(row.prediction is None for row in table if row.error is not None)
    trace = dl.Keyed(drawn()).run([1] * 40, X[:40], Y[:40])
    got = {row.row: row.prediction for row in table if row.error is None}
    assert got == {f"r{i}": int(own) for i, own in enumerate(trace.prediction)}
    assert len(table) == 40 + len(refused)


def test_what_waits_in_a_stream_expires(spark, tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", 0, [(1, "a", 1, X[0].tolist(), None), (1, "b", 2, None, 1)])
    running = query(spark, tmp_path, drawn(), wait=False, expires=1.0)
    try:
        deadline = time.monotonic() + 120.0
        errors = []
        while not errors and time.monotonic() < deadline:
            time.sleep(0.5)
            if committed(tmp_path):
                table = spark.read.parquet(str(tmp_path / "out")).collect()
                errors = [(row.row, row.error) for row in table if row.error is not None]
        assert [row for row, _ in errors] == ["b"] and "unknown id" in errors[0][1]
        write(tmp_path / "in", 1, [(1, "a", 3, None, 1)])
        while len(errors) < 2 and time.monotonic() < deadline:
            time.sleep(0.5)
            table = spark.read.parquet(str(tmp_path / "out")).collect()
            errors = [(row.row, row.error) for row in table if row.error is not None]
    finally:
        running.stop()
    assert "too late" in dict(errors)["a"]


def test_keys_may_be_bytes_and_a_query_with_expiry_can_end(spark, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "in").mkdir()
    keys = [(b"", b"a\x00", None)[i % 3] for i in range(90)]
    columns = {"key": keys, "id": list(range(90)), "x": X[:90].tolist(), "y": Y[:90].tolist()}
    parquet.write_table(pa.table(columns), tmp_path / "in" / "rows.parquet")
    source = spark.readStream.schema("key binary, id bigint, x array<double>, y bigint")
    names = {"key": "key", "id": "id", "features": "x", "label": "y", "order": "id"}
    made = predictions(source.parquet(str(tmp_path / "in")), drawn(), **names, expires=3600.0)
    writer = made.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    try:
        running = writer.start(str(tmp_path / "out"))
        ended = running.awaitTermination(120)
        running.stop()
    finally:
        spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")
    assert ended
    fleet, expected = dl.Keyed(drawn()), {}
    for i, key in enumerate(keys):
        expected[i] = None if key is None else fleet.step(key, X[i], Y[i]).prediction
    table = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {row.id: row.prediction for row in table} == expected
    assert [row.key for row in table if row.error is not None] == [None] * 30


def test_a_checkpoint_of_another_learner_is_refused(spark, tmp_path):
    rows = rows_with_late_labels()
    written(tmp_path, rows[:100], files=1)
    query(spark, tmp_path, drawn())
    written(tmp_path, rows[100:200], files=1, first=1)
    with pytest.raises(Exception, match="other parts or another seed"):
        query(spark, tmp_path, drawn(seed=6))


# -- what is refused before anything runs


def test_wrong_arguments_are_refused(spark, tmp_path):
    table = table_of(spark, tmp_path, [(1, "a", 1, [0.0], 1)])
    wrong = [
        ({"key": "nowhere"}, "there are"),
        ({"key": "x"}, "has the type"),
        ({"key": []}, "one column or more"),
        ({"features": "row"}, "array"),
        ({"features": ["x"]}, "has the type"),
        ({"features": []}, "one column"),
        ({"label": "row"}, "has the type"),
        ({"order": "row"}, "has the type"),
        ({"id": "shop"}, "two columns"),
        ({"expires": 5.0}, "streams"),
        ({"early": -1}, "early"),
    ]
    for change, words in wrong:
        with pytest.raises(dl.InputError, match=words):
            predictions(table, drawn(), **(COLUMNS | change))
    stream = spark.readStream.schema(table.schema).parquet(str(tmp_path / "in"))
    with pytest.raises(dl.InputError, match="needs id="):
        predictions(stream, drawn(), **(COLUMNS | {"id": None}))
    name = "spark.sql.streaming.stateStore.providerClass"
    provider = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        spark.conf.set(name, "org.apache.spark.SomethingElse")
        with pytest.raises(dl.InputError, match="RocksDB"):
            predictions(stream, drawn(), **COLUMNS)
    finally:
        spark.conf.set(name, provider)
