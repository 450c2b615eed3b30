"""Measuring trace sets on Spark: throughput, latency and costs of every run, in one job."""

from flexgroup.pipeline.measure.points import HALF_WIDTH, points
from flexgroup.pipeline.measure.runs import METRICS, POINT, measure_runs
from flexgroup.pipeline.measure.tables import refuse_to_overwrite, write_tables
from flexgroup.pipeline.measure.traffic import OF_TYPE, by_packet, with_packet_types

__all__ = [
    "HALF_WIDTH",
    "METRICS",
    "OF_TYPE",
    "POINT",
    "by_packet",
    "measure_runs",
    "points",
    "refuse_to_overwrite",
    "with_packet_types",
    "write_tables",
]
