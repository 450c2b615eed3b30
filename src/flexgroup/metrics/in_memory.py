"""All metrics of a run that is in memory, by the one formula of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS, ORIGIN_MASK
from flexgroup.metrics.catalogue import Number, evaluate
from flexgroup.metrics.counting import count
from flexgroup.metrics.period import Span, group_size, kinds_of_span, measured_period
from flexgroup.trace import schema
from flexgroup.trace.cost_models import parse_cost_model
from flexgroup.trace.history import History, SmallInts
from flexgroup.trace.run import Run


def metrics_of(run: Run, history: History) -> dict[str, Number]:
    """Return the metrics of a run whose history has its packets."""
    return evaluate(run, sums_of(run, history, partial(packets_of, history)))


def sums_of(run: Run, history: History, packets: Callable[[str], pa.Table]) -> dict[str, Any]:
    """Return the sums of a run; `packets` reads its send or its receive events."""
    return count(
        history,
        packets,
        measured_period(run, span_of(run, history)),
        group_size(run),
        parse_cost_model(run.cost_model),
        run.replicas,
    )


def span_of(run: Run, history: History) -> Span | None:
    """Return the span of the events that tell the measured period of a run, if there are any."""
    times = {schema.MULTICAST: history.multicasts.time, schema.DELIVER: history.deliveries.time}
    found = [times[kind] for kind in kinds_of_span(run) if len(times[kind])]
    if not found:
        return None
    return min(int(time.min()) for time in found), max(int(time.max()) for time in found)


def packets_of(history: History, kind: str) -> pa.Table:
    """Return the packets that were sent or received in a history as a table of events."""
    rows = history.sends if kind == schema.SEND else history.receives
    none = rows.message == NO_MESSAGE
    columns = {
        "process": rows.process,
        "peer": rows.peer,
        "origin": pa.array(rows.message & ORIGIN_MASK, mask=none),
        "seq": pa.array(rows.message >> ORIGIN_BITS, mask=none),
        "header_bytes": rows.header_bytes,
        "payload_bytes": rows.payload_bytes,
        "time": rows.time,
    }
    for name, texts, codes in (
        ("packet", rows.packet, rows.packet_code),
        ("detail", rows.detail, rows.detail_code),
    ):
        if texts:
            columns[name] = _texts(texts, codes)
    return pa.table(columns)


def _texts(texts: tuple[str | None, ...], codes: SmallInts) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))
