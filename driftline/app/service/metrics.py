"""Numbers for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from driftline.app.service.writer import Writer

__all__ = ["Metrics"]

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """Requests by address and status, how long they took, and what the writer and models say."""

    def __init__(self, writer: Writer):
        self._registry = CollectorRegistry()
        self._writer = writer
        own = self._registry
        self._requests = Counter(
            "driftline_requests",
            "Requests, by address and status.",
            ["what", "status"],
            registry=own,
        )
        self._seconds = Histogram(
            "driftline_request_seconds",
            "How long requests took.",
            ["what"],
            buckets=BUCKETS,
            registry=own,
        )
        self._registry.register(self)
        self._known: dict[tuple[str, int], Any] = {}
        self._times: dict[str, Any] = {}

    def note(self, what: str, status: int, began: float) -> None:
        """Count a request."""
        key = what, status
        counter = self._known.get(key)
        if counter is None:
            counter = self._known[key] = self._requests.labels(what, str(status))
            self._times[what] = self._seconds.labels(what)
        counter.inc()
        self._times[what].observe(time.perf_counter() - began)

    def collect(self) -> Iterator[Metric]:
        """Yield what the writer and the models say."""
        writer = self._writer
        yield GaugeMetricFamily("driftline_queue_rows", "Rows that wait.", writer.waiting)
        yield CounterMetricFamily("driftline_commits", "Commits of the log.", writer.commits)
        full = float(writer.disk_full)
        yield GaugeMetricFamily("driftline_disk_full", "Whether the disk is full.", full)
        yield GaugeMetricFamily("driftline_log_bytes", "Size of the log.", writer.log.size())
        held = float(bool(writer.held))
        yield GaugeMetricFamily("driftline_clock_held", "Whether rows do not expire.", held)
        gone = GaugeMetricFamily(
            "driftline_quarantined", "Models out of service.", labels=["model"]
        )
        for one in list(writer.machine.quarantined.values()):
            gone.add_metric([one.name], 1.0)
        yield gone
        rows = CounterMetricFamily("driftline_rows", "Rows of models.", labels=["model", "what"])
        waits = GaugeMetricFamily("driftline_outstanding", "Rows without label.", labels=["model"])
        paid = CounterMetricFamily("driftline_loss", "Losses paid.", labels=["model", "learner"])
        rounds = CounterMetricFamily(
            "driftline_rounds", "Rounds learned from.", labels=["model", "learner"]
        )
        for hosted in list(writer.machine.models.values()):
            for what, count in hosted.counts.items():
                rows.add_metric([hosted.name, what], count)
            waits.add_metric([hosted.name], hosted.served.outstanding)
            for reader in list(hosted.readers.values()):
                score = reader.served.score
                paid.add_metric([hosted.name, reader.name], score.paid)
                rounds.add_metric([hosted.name, reader.name], score.rounds)
        yield from (rows, waits, paid, rounds)

    def text(self) -> bytes:
        """Return all in Prometheus' format."""
        return generate_latest(self._registry)
