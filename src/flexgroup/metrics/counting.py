"""Counting the named sums of a run that fits into memory, with numpy.

The same sums are counted with Spark in `flexgroup.pipeline.measure`, for runs of any length;
tests/pipeline/test_measure.py compares both with the definitions, and with each other.

A message is *local* if its destinations lie in one group, else *global*. Groups are those of the
workload `partitioned:GxC`, be they of processes or of groups of replicas; in other workloads every
process, or every group of replicas, is a group of its own. A local message
is *convoyed* at a destination if, when it is multicast, that destination has yet to deliver some
global message that was multicast before. The moment of the multicast decides, and not all the time
until the delivery, because a message that waits long for whatever reason would meet more messages
in that time, and seem convoyed for it.

Where latencies and steps to groups are counted, groups are those of replicas, as the row of a run
tells them. A process that is in none of them is a group of its own.

Nothing is expected of processes that are faulty by design, and what they deliver counts nowhere;
what they send is part of what a run costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flexgroup.core.message import ORIGIN_MASK
from flexgroup.core.replicas import Replicas
from flexgroup.metrics.durations import histogram
from flexgroup.metrics.period import Period
from flexgroup.metrics.sums import (
    ALONE,
    ANY,
    CLIENT,
    CONVOYED,
    FIRST,
    GAP_SUMS,
    GROUP,
    LAST,
    PROCESS,
    duration_sums,
)
from flexgroup.trace import schema
from flexgroup.trace.cost_models import BY_ALL, BY_LAST, CostModel
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, by_key, of_correct
from flexgroup.trace.reader import ints, messages

Flags = NDArray[np.bool_]

SLOW_DETAIL = '{"mode":"slow"}'
"""The detail of a send event that says that the message went in slow mode."""

BY_TYPE = "packets_by_type"
"""The key of the rows of `sums.PACKETS` among what is counted in a run."""

PACKET_COLUMNS = ("process", "peer", "origin", "seq", "header_bytes", "payload_bytes")
READ_COLUMNS = {
    schema.SEND: (*PACKET_COLUMNS, "packet", "detail"),
    schema.RECEIVE: (*PACKET_COLUMNS, "time", "queued"),
}
"""The columns of send and receive events that are needed."""

NEVER, LATEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min

PROCESSES = 1 << 31
"""Message number m at process p is the integer m * PROCESSES + p."""

PICOSECONDS = 1000
"""So many picoseconds, in which sums of work are exact, are a nanosecond."""

Work = tuple[Ints, Ints]
"""Processes, and the picoseconds that something took each of them."""


def count(
    history: History,
    packets: Callable[[str], pa.Table],
    period: Period,
    group_size: int = 1,
    costs: CostModel | None = None,
    replicas: Replicas = (),
) -> dict[str, Any]:
    """Return the sums of a run, and its rows of `sums.PACKETS` under BY_TYPE.

    `packets` reads the READ_COLUMNS of the send or of the receive events. These are most of a run,
    so they are read once, and forgotten before the next are read.
    """
    history = replace(history, deliveries=of_correct(history.deliveries, history.faulty))
    casts = Casts.of(history.multicasts)
    is_foreign = np.zeros(len(casts.identity), dtype=bool)
    sums: dict[str, Any] = {"run": history.run, "length": period[2], "rows": 0}
    work: list[Work] = []
    for kind in READ_COLUMNS:
        rows = packets(kind)
        is_foreign[casts.handled_by_outsiders(messages(rows), ints(rows, "process"))] = True
        sums["rows"] += rows.num_rows
        if kind == schema.SEND:
            sums |= _sent_sums(rows, history.processes)
            sums["slow"] = int(casts.concerns(_slow_messages(rows)).sum())
            sums[BY_TYPE] = _packets_by_type(rows, history.processes)
        else:
            sums |= _queue_sums(rows, history.processes, period)
        if costs:
            cost = costs.send if kind == schema.SEND else costs.receive
            work.append(_work_of_packets(rows, history.processes, cost * PICOSECONDS, costs.byte))
    if costs:
        work.append(_work_of_answers(history, costs, replicas))
        sums |= _work_sums(work)
    of_messages, durations = MessageFates.of(casts, history, replicas).sums(period)
    durations |= _delivery_durations(casts, history.deliveries, group_size, period)
    return {
        **sums,
        **of_messages,
        **duration_sums({kind: histogram(rows) for kind, rows in durations.items()}),
        **_gap_sums(history, period, replicas),
        "foreign": int(is_foreign.sum()),
        "crashed": len(np.unique(history.crashes.process)),
    }


@dataclass(frozen=True)
class Casts:
    """The messages that were multicast in a run, by identity: when, and to whom."""

    identity: Ints
    time: Ints
    lowest: Ints
    highest: Ints
    """The smallest and the largest number of a destination."""
    destinations: Ints
    """The pairs of a message and a destination, each as one number, sorted."""
    without: Flags
    """Whether each message names no destination."""

    @classmethod
    def of(cls, rows: Multicasts) -> Casts:
        """Gather the messages of these multicasts."""
        identity, message = np.unique(rows.message, return_inverse=True)
        count = len(identity)
        targeted = np.repeat(message, np.diff(rows.offsets))
        return cls(
            identity=identity,
            time=_least(message, rows.time, count),
            lowest=_least(targeted, rows.targets, count),
            highest=_most(targeted, rows.targets, count),
            destinations=np.unique(targeted * PROCESSES + rows.targets),
            without=np.bincount(targeted, minlength=count) == 0,
        )

    def among(self, messages: Ints) -> tuple[Flags, Ints]:
        """Tell which of these messages were multicast, and the numbers of those that were."""
        if len(self.identity) == 0:
            return np.zeros(len(messages), dtype=bool), messages[:0]
        number = np.searchsorted(self.identity, messages)
        number[number == len(self.identity)] = 0
        known = self.identity[number] == messages
        return known, number[known]

    def concerns(self, messages: Ints) -> Flags:
        """Tell which of the messages of this run are among these."""
        return np.isin(self.identity, messages)

    def handled_by_outsiders(self, messages: Ints, processes: Ints) -> Ints:
        """Return the numbers of those of these messages that were handled by a process that is
        neither their origin nor a destination of theirs; `processes` handled them, row by row."""
        known, number = self.among(messages)
        process = processes[known]
        elsewhere = process != (self.identity[number] & ORIGIN_MASK)
        pairs = np.unique(number[elsewhere] * PROCESSES + process[elsewhere])
        return pairs[~np.isin(pairs, self.destinations)] // PROCESSES

    def are_global(self, group_size: int) -> Flags:
        """Tell which messages have destinations in several groups."""
        group, other = self.lowest // group_size, self.highest // group_size
        flags: Flags = ~self.without & (group != other)
        return flags


def group_numbers(replicas: Replicas) -> list[int]:
    """Return a number for the group of each process, up to the highest that is in any.

    It is that of the lowest member, so that a process which is in no group can go by its own.
    """
    numbers = list(range(max([-1, *(p for group in replicas for p in group)]) + 1))
    for group in replicas:
        for process in group:
            numbers[process] = min(group)
    return numbers


@dataclass(frozen=True)
class MessageFates:
    """What became of each message of a run, by its number among `casts`.

    A message is answered when every destination that never fails has delivered it and, where
    there are groups of replicas, some member of every destination group. Without that, there is no
    last delivery to speak of. It has reached all groups when some member of each has delivered it,
    groups whose members all fail left out.
    """

    casts: Casts
    deliveries: int
    """How many pairs there are of a message and a process that delivered it."""
    first: Ints
    group: Ints
    """When it was first delivered in the slowest group."""
    last: Ints
    steps_first: Ints
    steps_group: Ints
    steps: Ints
    """The depths of its first delivery, of the first in the slowest group, and of the last."""
    is_delivered: Flags
    is_reached: Flags
    is_answered: Flags

    @classmethod
    def of(cls, casts: Casts, history: History, replicas: Replicas) -> MessageFates:
        """Look what became of the messages of this run."""
        count, deliveries = len(casts.identity), history.deliveries
        known, number = casts.among(deliveries.message)
        depth = deliveries.depth[known]
        pair = number * PROCESSES + deliveries.process[known]
        pairs, row = np.unique(pair, return_inverse=True)
        delivered = _least(row, deliveries.time[known], len(pairs))
        message = pairs // PROCESSES
        is_delivered = np.bincount(message, minlength=count) > 0
        numbers = np.array(group_numbers(replicas), dtype=np.int64)
        groups, row = np.unique(_in_groups(pair, numbers), return_inverse=True)
        group_first = _least(row, deliveries.time[known], len(groups))
        group_depth = _least(row, depth, len(groups))
        is_up = ~np.isin(casts.destinations % PROCESSES, _failing(history))
        expected = casts.destinations[is_up]
        is_answered, is_reached = is_delivered & ~casts.without, is_delivered & ~casts.without
        is_answered[np.setdiff1d(expected, pairs) // PROCESSES] = False
        is_reached[np.setdiff1d(_in_groups(expected, numbers), groups) // PROCESSES] = False
        if replicas:
            wanted = _in_groups(casts.destinations, numbers)
            is_answered[np.setdiff1d(wanted, groups) // PROCESSES] = False
        return cls(
            casts=casts,
            deliveries=len(pairs),
            first=_least(message, delivered, count),
            group=_most(groups // PROCESSES, group_first, count),
            last=_most(message, delivered, count),
            steps_first=_least(number, depth, count),
            steps_group=_most(groups // PROCESSES, group_depth, count),
            steps=_most(number, depth, count),
            is_delivered=is_delivered,
            is_reached=is_reached,
            is_answered=is_answered,
        )

    def sums(self, period: Period) -> tuple[dict[str, int], dict[str, Ints]]:
        """Count messages and those that were answered; and list the durations until first
        deliveries, anywhere and in the slowest group, and last ones."""
        since = self.casts.time
        is_measured = within(since, period)
        counts = {
            "messages": len(since),
            "deliveries": self.deliveries,
            "answered": int(self.is_answered.sum()),
            "answered_in_period": int(within(self.last[self.is_answered], period).sum()),
            "steps": int(np.maximum(self.steps, 0).sum()),
            "steps_group": int(np.maximum(self.steps_group, 0).sum()),
            "steps_first": int(self.steps_first[self.is_delivered].sum()),
        }
        durations = {
            FIRST: (self.first - since)[is_measured & self.is_delivered],
            GROUP: (self.group - since)[is_measured & self.is_reached],
            LAST: (self.last - since)[is_measured & self.is_answered],
        }
        return counts, durations


def _failing(history: History) -> Ints:
    """Return the processes that crash, and those that are faulty by design."""
    return np.union1d(history.crashes.process, np.array(history.faulty, dtype=np.int64))


def _gap_sums(history: History, period: Period, replicas: Replicas) -> dict[str, int | None]:
    """Find out for how long processes delivered nothing."""
    begin, end, _ = period
    numbers = np.array(group_numbers(replicas), dtype=np.int64)
    failing = _failing(history)
    struck = _in_groups(failing, numbers)
    rows = history.deliveries
    counted = within(rows.time, period) & ~np.isin(rows.process, failing)
    process, time = rows.process[counted], rows.time[counted]
    gaps: dict[str, int | None] = dict.fromkeys(GAP_SUMS)
    for number, chosen in by_key(process):
        moments = np.concatenate(([begin], np.sort(time[chosen]), [end]))
        is_struck = np.isin(_in_groups(np.array([number]), numbers), struck).any()
        name = GAP_SUMS[0] if is_struck else GAP_SUMS[1]
        gaps[name] = max(gaps[name] or 0, int(np.diff(moments).max()))
    return gaps


def _in_groups(pairs: Ints, numbers: Ints) -> Ints:
    """Return these pairs of a message and a process with the number of its group for the process,
    each as one number."""
    process = pairs % PROCESSES
    group = process.copy()
    inside = process < len(numbers)
    group[inside] = numbers[process[inside]]
    return pairs - process + group


def _delivery_durations(
    casts: Casts, deliveries: Deliveries, group_size: int, period: Period
) -> dict[str, Ints]:
    """List the durations until each delivery: of all messages, and of local ones alone and
    convoyed."""
    known, number = casts.among(deliveries.message)
    process, time, since = deliveries.process[known], deliveries.time[known], casts.time[number]
    is_global = casts.are_global(group_size)[number]
    # Times as ranks, so that a process and a time are one integer that sorts as they do.
    times, rank = np.unique(np.concatenate((since, time)), return_inverse=True)
    at_multicast, at_delivery = np.split(np.tile(process * len(times), 2) + rank, 2)
    under_way = np.searchsorted(np.sort(at_multicast[is_global]), at_multicast, "right")
    # What comes before the first message at a process is the same here and there.
    under_way -= np.searchsorted(np.sort(at_delivery[is_global]), at_multicast, "right")
    is_measured = within(since, period)
    is_local, waits = is_measured & ~is_global, under_way > 0
    durations = time - since
    return {
        ANY: durations[is_measured],
        ALONE: durations[is_local & ~waits],
        CONVOYED: durations[is_local & waits],
    }


def _sent_sums(sends: pa.Table, processes: int) -> dict[str, int | None]:
    """Sum over the packets about messages that processes sent."""
    about = (ints(sends, "process") < processes) & _present(sends, "origin")
    return {
        "packets": int(about.sum()),
        "header_bytes": _total(sends, "header_bytes", about),
        "payload_bytes": _total(sends, "payload_bytes", about),
    }


def _queue_sums(receives: pa.Table, processes: int, period: Period) -> dict[str, int | None]:
    """Sum over the waiting of the packets that processes handled in the measured period."""
    time = ints(receives, "time")
    counted = within(time, period) & (ints(receives, "process") < processes)
    waited = ints(receives, "queued")[counted & _present(receives, "queued")]
    return {
        "received": len(waited),
        "queue_sum": int(waited.sum()) if len(waited) else None,
        "queue_max": int(waited.max()) if len(waited) else None,
        "queued": int((waited > 0).sum()),
        "latest": int(time.max()) if len(time) else None,
    }


def _slow_messages(sends: pa.Table) -> Ints:
    """Return the messages that somebody sent in slow mode."""
    if "detail" not in sends.column_names:
        return messages(sends)[:0]
    return messages(sends.filter(pc.equal(sends["detail"].cast(pa.string()), SLOW_DETAIL)))


def _packets_by_type(sends: pa.Table, processes: int) -> list[dict[str, Any]]:
    """Count what was sent by the type of packet, and by whom: processes or clients."""
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


def _work_of_packets(packets: pa.Table, processes: int, cost: int, byte_cost: int) -> Work:
    """Return what sending or receiving these packets took the processes; a packet to oneself costs
    nothing."""
    process, peer = ints(packets, "process"), ints(packets, "peer", -1)
    size = ints(packets, "header_bytes") + ints(packets, "payload_bytes")
    spent = np.where(process != peer, cost + size * byte_cost, 0)
    inside = process < processes
    return process[inside], spent[inside]


def _work_of_answers(history: History, costs: CostModel, replicas: Replicas) -> Work:
    """Return what it took to answer clients: a packet for each answer, which no trace records."""
    asked, rows = history.multicasts, history.deliveries
    if costs.answers == BY_ALL:
        answers = rows.process[(rows.message & ORIGIN_MASK) >= history.processes]
    else:
        counts = np.diff(asked.offsets)
        named = np.repeat(np.arange(len(counts)), counts)
        last = _most(named, asked.targets, len(counts))[named]
        if costs.answers == BY_LAST:
            answering = asked.targets == last
        else:
            numbers = np.array(group_numbers(replicas), dtype=np.int64)
            answering = _in_groups(asked.targets, numbers) == _in_groups(last, numbers)
        answering &= ((asked.message & ORIGIN_MASK) >= history.processes)[named]
        answers = asked.targets[answering]
    inside = answers[answers < history.processes]
    return inside, np.full(len(inside), costs.send * PICOSECONDS)


def _work_sums(work: Iterable[Work]) -> dict[str, int | None]:
    processes, spent = (np.concatenate(column) for column in zip(*work, strict=True))
    if len(processes) == 0:
        return dict.fromkeys(("spent", "most_spent"))
    names, row = np.unique(processes, return_inverse=True)
    by_process = np.zeros(len(names), dtype=np.int64)
    np.add.at(by_process, row, spent)
    return {"spent": int(by_process.sum()), "most_spent": int(by_process.max())}


def within(time: Ints, period: Period) -> Flags:
    """Tell which of these times lie in the period."""
    return (time >= period[0]) & (time < period[1])


def _least(groups: Ints, values: Ints, count: int) -> Ints:
    """Return the least value of each group, by its number."""
    found = np.full(count, NEVER)
    np.minimum.at(found, groups, values)
    return found


def _most(groups: Ints, values: Ints, count: int) -> Ints:
    found = np.full(count, LATEST)
    np.maximum.at(found, groups, values)
    return found


def _column(table: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    """Return a column, or nulls where a file lacks it."""
    if name in table.column_names:
        return table[name].unify_dictionaries()
    return pa.nulls(table.num_rows, schema.EVENT_COLUMNS.field(name).type)


def _present(table: pa.Table, name: str) -> Flags:
    present: Flags = pc.is_valid(_column(table, name)).to_numpy(zero_copy_only=False)
    return present


def _total(table: pa.Table, name: str, counted: Flags) -> int | None:
    """Sum what is known; the sum is unknown if nothing is."""
    counted = counted & _present(table, name)
    return int(ints(table, name)[counted].sum()) if counted.any() else None
