"""Measuring trace sets on Spark: throughput, latency and costs of every run, in one job."""

from flexgroup.pipeline.measure.measured import Measured
from flexgroup.pipeline.measure.metrics import METRICS, POINT
from flexgroup.pipeline.measure.points import HALF_WIDTH, OF_TYPE, points, with_packet_types

__all__ = [
    "HALF_WIDTH",
    "METRICS",
    "OF_TYPE",
    "POINT",
    "Measured",
    "points",
    "with_packet_types",
]
