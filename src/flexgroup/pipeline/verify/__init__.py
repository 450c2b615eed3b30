"""Verification on Spark: a verdict for every run and property, whatever the size of the run.

Runs that fit into one task are judged whole, many of them at a time, by the plain-Python
properties: from their files, where the task can open them, or else from the events that Spark
brings together. Larger ones are cut into pieces (see `large_runs`); what is found there is told by
the same plain-Python properties, from the few messages that matter. Minimality reads the packets,
which are most of a trace, with column expressions alone.
"""

from flexgroup.pipeline.in_memory.verdict_table import VERDICTS
from flexgroup.pipeline.verify.evidence import evidence
from flexgroup.pipeline.verify.verify import SizeLimits, verify

__all__ = [
    "VERDICTS",
    "SizeLimits",
    "evidence",
    "verify",
]
