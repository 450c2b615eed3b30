"""What watching tells of itself: for programs that read its output, and for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flexgroup.core.errors import UsageError


@dataclass
class WatchFigures:
    """The figures after a batch; those of the first group only grow while the process lives."""

    batches: int = 0
    events: int = 0
    violations: int = 0
    runs_over: int = 0
    runs_refused: int = 0
    runs_open: int = 0
    window_events: int = 0
    state_bytes: int = 0
    rows_kept: int = 0
    lag_seconds: float = 0.0
    batch_seconds: float = 0.0
    events_per_second: float = 0.0

    def batch_done(self, events: int, begun: float, oldest: int | None) -> None:
        """Count a batch that began at this time of the monotonic clock; the oldest of its files was
        written at this time, in microseconds since 1970."""
        self.batches += 1
        self.events += events
        self.batch_seconds = time.monotonic() - begun
        self.events_per_second = events / max(self.batch_seconds, 1e-9)
        if oldest is not None:
            self.lag_seconds = max(0.0, time.time() - oldest / 1e6)

    def to_json(self) -> dict[str, object]:
        rounded = {"lag_seconds", "batch_seconds", "events_per_second"}
        return {
            name: round(value, 3) if name in rounded else value
            for name, value in asdict(self).items()
        }


COUNTERS = {
    "batches": "Batches that were gone through",
    "events": "Events that were read",
    "violations": "Rows of violations that were told",
    "runs_over": "Runs that are over",
    "runs_refused": "Runs that could not be followed",
}
GAUGES = {
    "runs_open": "Runs that go on",
    "window_events": "Events that are kept because they may still matter",
    "state_bytes": "Bytes of the state of runs that go on",
    "rows_kept": "Rows in the table of violations when it was last made small, and since",
    "lag_seconds": "From writing the oldest file of the last batch to the end of that batch",
    "batch_seconds": "How long the last batch took",
    "events_per_second": "Events that the last batch went through in a second",
}


class WatchMetrics(Collector):
    """The figures in the form that collectors read."""

    def __init__(self, figures: WatchFigures) -> None:
        self._figures = figures
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        for name, text in COUNTERS.items():
            value = getattr(self._figures, name)
            yield CounterMetricFamily(f"flexgroup_watch_{name}", text, value=value)
        for name, text in GAUGES.items():
            value = getattr(self._figures, name)
            yield GaugeMetricFamily(f"flexgroup_watch_{name}", text, value=value)

    def serve(self, host: str, port: int) -> int:
        """Answer collectors at this port from now on, in a thread of its own; return the port."""
        try:
            server, _ = start_http_server(port, host, self._registry)
        except OSError as problem:
            raise UsageError(
                f"cannot serve metrics at {host}:{port}: {problem.strerror}; name another port"
            ) from None
        return int(server.server_port)
