"""Queries of Spark for tests, also as a program that can be killed."""

import os
import sys
import time
from pathlib import Path

import numpy as np

import driftline as dl

COLUMNS = {"key": "shop", "id": "row", "features": "x", "label": "y", "order": "t"}
SCHEMA = "shop bigint, row string, t bigint, x array<double>, y bigint"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def drawn(seed=5):
    """Return a learner whose predictions are random: every ticket must have its own number."""
    loss = dl.losses.Logistic(dl.tasks.Multiclass(3))
    return dl.OGD(loss, dl.decoders.GapOptimal(loss), seed=seed)


def committee():
    return dl.auto(dl.tasks.Multiclass(3), effort="fast")


LEARNERS = {"drawn": drawn, "committee": committee}


def session(cores=2):
    """Return a small session in this process."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    made = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDER)
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def write(folder, place, rows, seed=0):
    """Write a file of rows in random order; the stream reads one file at a time, by their place."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [rows[i] for i in np.random.default_rng(seed + place).permutation(len(rows)).tolist()]
    types = [pa.int64(), pa.string(), pa.int64(), pa.list_(pa.float64()), pa.int64()]
    names = ["shop", "row", "t", "x", "y"]
    columns = [list(own) for own in zip(*rows, strict=True)] if rows else [[] for _ in names]
    arrays = [pa.array(own, kind) for own, kind in zip(columns, types, strict=True)]
    path = Path(folder) / f"{place:04}.parquet"
    hidden = path.with_name(f".{path.name}")  # until it is whole
    parquet.write_table(pa.Table.from_arrays(arrays, names), hidden)
    os.utime(hidden, (1_000_000_000 + place, 1_000_000_000 + place))
    hidden.rename(path)


def query(spark, folder, learner, wait=True, **options):
    """Start the query of a folder, or go on with it; by default until all files are played."""
    from driftline.integrations.spark import predictions

    folder = Path(folder)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    made = predictions(stream.parquet(str(folder / "in")), learner, **COLUMNS, **options)
    writer = made.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    if not wait:
        return writer.start(str(folder / "out"))
    running = writer.trigger(availableNow=True).start(str(folder / "out"))
    running.awaitTermination()
    return running


def committed(folder):
    """Return how many micro batches are done."""
    return len(list((Path(folder) / "checkpoint" / "commits").glob("[0-9]*")))


def main(folder, name):
    """Play files as they come, until somebody kills this process."""
    query(session(), folder, LEARNERS[name](), wait=False)
    while True:
        time.sleep(1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
