"""Verdicts on runs that fit into memory, by the plain-Python properties."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flexgroup.pipeline.in_memory.small_run import SmallRun, each_run
from flexgroup.pipeline.in_memory.verdict_table import VERDICTS, verdict_row, verdict_table
from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.properties.catalogue import check, known_properties
from flexgroup.trace.schema import CHOICE, SUSPECT, TIMER

NOT_IN_HISTORIES = (SUSPECT, TIMER, CHOICE)


def verify_here(files: LocalFiles, properties: Sequence[str] | None = None) -> pa.Table:
    """Check these properties, or what was promised, of every run, one after the other."""
    chosen = None if properties is None else known_properties(properties)
    requests = {run.run: run.promised if chosen is None else chosen for run in files.described}
    return each_run(files, requests, judge, VERDICTS)


def judge(files: SmallRun) -> pa.Table:
    """Return the verdicts on the properties of a run that are asked for."""
    history = files.history()
    for kind in NOT_IN_HISTORIES:
        files.columns(kind)
    files.refuse_contradictions()
    verdicts = check(history, files.request)
    return verdict_table([verdict_row(history.run, verdict) for verdict in verdicts])
