"""The packets of a run that one task can hold: how many, how large, how long they waited.

The same is said in column expressions in `traffic.py`, for runs of any length.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flexgroup.core.message import ORIGIN_MASK
from flexgroup.metrics.costs import SLOW_DETAIL
from flexgroup.pipeline.measure.facts import Period
from flexgroup.pipeline.measure.sums import CLIENT, PROCESS
from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints
from flexgroup.trace.reader import ints, messages

Flags = NDArray[np.bool_]

OF_EACH = ("process", "peer", "origin", "seq", "header_bytes", "payload_bytes")
SENT = (*OF_EACH, "packet", "detail")
RECEIVED = (*OF_EACH, "time", "queued")
"""The columns that are needed."""

Spent = tuple[Ints, Ints]
"""Processes, and the picoseconds that something took each of them."""


def sent_counts(sends: pa.Table, processes: int) -> dict[str, int | None]:
    """Sums over the packets about messages that processes sent."""
    about = (ints(sends, "process") < processes) & _present(sends, "origin")
    return {
        "packets": int(about.sum()),
        "header_bytes": _total(sends, "header_bytes", about),
        "payload_bytes": _total(sends, "payload_bytes", about),
    }


def queue_counts(receives: pa.Table, processes: int, period: Period) -> dict[str, int | None]:
    """Sums over the waiting of the packets that processes handled in the measured period."""
    time = ints(receives, "time")
    counted = (time >= period[0]) & (time < period[1]) & (ints(receives, "process") < processes)
    waited = ints(receives, "queued")[counted & _present(receives, "queued")]
    return {
        "received": len(waited),
        "queue_sum": int(waited.sum()) if len(waited) else None,
        "queue_max": int(waited.max()) if len(waited) else None,
        "queued": int((waited > 0).sum()),
        "latest": int(time.max()) if len(time) else None,
    }


def slow_messages(sends: pa.Table) -> Ints:
    """The messages that somebody sent in slow mode."""
    if "detail" not in sends.column_names:
        return messages(sends)[:0]
    return messages(sends.filter(pc.equal(sends["detail"].cast(pa.string()), SLOW_DETAIL)))


def packets_by_type(sends: pa.Table, processes: int) -> list[dict[str, Any]]:
    """What was sent, by the type of packet and by whom: processes or clients."""
    names, sizes = ("is_process", "packet"), ("header_bytes", "payload_bytes")
    columns = {
        "is_process": pa.array(ints(sends, "process") < processes),
        **{name: _column(sends, name) for name in ("packet", *sizes)},
    }
    summed = (
        pa.table(columns)
        .group_by(names)
        .aggregate([([], "count_all"), *((name, "sum") for name in sizes)])
    )
    return [
        {
            "sender": PROCESS if row["is_process"] else CLIENT,
            "packet": row["packet"],
            "packets": row["count_all"],
            **{name: row[f"{name}_sum"] for name in sizes},
        }
        for row in summed.to_pylist()
    ]


def work_of_packets(packets: pa.Table, processes: int, cost: int, byte_cost: int) -> Spent:
    """What sending or receiving these packets took the processes; to oneself costs nothing."""
    process, peer = ints(packets, "process"), ints(packets, "peer", -1)
    size = ints(packets, "header_bytes") + ints(packets, "payload_bytes")
    spent = np.where(process != peer, cost + size * byte_cost, 0)
    inside = process < processes
    return process[inside], spent[inside]


def work_of_answers(history: History, cost: int, last_answers: bool) -> Spent:
    """What it took to answer clients: a packet for each answer, which no trace records."""
    asked, rows = history.multicasts, history.deliveries
    if last_answers:
        answered = np.diff(asked.offsets) > 0
        answering = np.maximum.reduceat(asked.targets, asked.offsets[:-1][answered])
        answers = answering[(asked.message[answered] & ORIGIN_MASK) >= history.processes]
    else:
        answers = rows.process[(rows.message & ORIGIN_MASK) >= history.processes]
    inside = answers[answers < history.processes]
    return inside, np.full(len(inside), cost)


def work_counts(work: Iterable[Spent]) -> dict[str, int | None]:
    processes, spent = (np.concatenate(column) for column in zip(*work, strict=True))
    if len(processes) == 0:
        return dict.fromkeys(("spent", "most_spent"))
    names, row = np.unique(processes, return_inverse=True)
    by_process = np.zeros(len(names), dtype=np.int64)
    np.add.at(by_process, row, spent)
    return {"spent": int(by_process.sum()), "most_spent": int(by_process.max())}


def _column(table: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    """A column, or nulls where a file lacks it."""
    if name in table.column_names:
        return table[name].unify_dictionaries()
    return pa.nulls(table.num_rows, schema.EVENT_COLUMNS.field(name).type)


def _present(table: pa.Table, name: str) -> Flags:
    present: Flags = pc.is_valid(_column(table, name)).to_numpy(zero_copy_only=False)
    return present


def _total(table: pa.Table, name: str, counted: Flags) -> int | None:
    """The sum of what is known; unknown if nothing is."""
    counted = counted & _present(table, name)
    return int(ints(table, name)[counted].sum()) if counted.any() else None
