"""Large runs taken apart by message: a task has everything about some of the messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.core.message import ORIGIN_BITS
from flexgroup.pipeline.in_memory.packed_rows import Batches, received_by_run, unpack
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.verify.event_rows import ORDERS
from flexgroup.pipeline.verify.parted_events import DELIVER_COLUMNS, MULTICAST_COLUMNS
from flexgroup.pipeline.verify.parted_frames import parted_events
from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, RunFacts, by_pairs
from flexgroup.trace.run_events import refuse_repeated_multicasts
from flexgroup.trace.schema import DELIVER, MULTICAST

PART_DELIVERIES = 500_000
"""How many deliveries go to a task, roughly."""

MOST_TASKS = 20_000
"""How many tasks a stage has, at most."""


def by_message(traces: TraceSet, numbers: Collection[int], deliveries: int) -> DataFrame:
    """Return what these runs multicast and delivered, so many deliveries in all, as packed rows
    that lie in partitions by message."""
    parts = min(MOST_TASKS, max(2, deliveries // PART_DELIVERIES))
    parted = parted_events(traces, numbers, ORDERS, parts, {})
    return parted.repartitionById(parts, f.col("place"))


def partial_histories(
    batches: Batches, about: Mapping[int, RunFacts]
) -> Iterator[tuple[int, History]]:
    """Yield what some messages tell of each run, from packed rows."""
    for number, kinds in received_by_run(batches).items():
        payloads = {kind: [payload for _, payload in kinds.get(kind, ())] for kind in ORDERS}
        yield number, partial_history(payloads, about[number])


def partial_history(payloads: Mapping[str, Sequence[bytes]], about: RunFacts) -> History:
    """Return what the packed events of some messages tell of a run."""
    history = History(
        **about.facts(),
        multicasts=_multicasts(unpack(payloads[MULTICAST], MULTICAST_COLUMNS)),
        deliveries=_deliveries(unpack(payloads[DELIVER], DELIVER_COLUMNS)),
    )
    refuse_repeated_multicasts(history.run, history.multicasts.message)
    return history


def _deliveries(columns: list[Ints]) -> Deliveries:
    process, step, time, origin, seq = columns
    order = by_pairs(process, step)
    message = (seq << ORIGIN_BITS) | origin
    depth = np.zeros(0, dtype=np.int64)  # nobody here asks for it
    return Deliveries(process[order], step[order], time[order], message[order], depth)


def _multicasts(columns: list[Ints]) -> Multicasts:
    process, step, time, origin, seq, lengths, targets = columns
    order = by_pairs(process, step)
    message = (seq << ORIGIN_BITS) | origin
    ends = np.cumsum(lengths)
    chosen, _ = runs((ends - lengths)[order], ends[order])
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(lengths[order], out=offsets[1:])
    return Multicasts(
        process[order], step[order], time[order], message[order], offsets, targets[chosen]
    )
