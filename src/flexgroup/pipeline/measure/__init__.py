"""Measuring trace sets on Spark: throughput, latency and costs of every run, in one job.

What the metrics are, `flexgroup.metrics` says. Here their sums are counted: runs that fit into one
task are read from their files and counted with numpy, and others by column expressions
(`spark_sums`).
"""

from flexgroup.pipeline.measure.measured import Measured

__all__ = ["Measured"]
