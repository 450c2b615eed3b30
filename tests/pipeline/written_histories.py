"""Histories in memory become runs of a trace set, for runs that were made up or taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS, ORIGIN_MASK
from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints, Packets, Views
from flexgroup.trace.run import Run
from flexgroup.trace.writer import as_json, prepare_trace_set, run_file, write_part, write_run


def write_history(
    directory: Path,
    history: History,
    stack: str,
    clients: int = 0,
    force: bool = False,
    promises: tuple[str, ...] | None = None,
) -> None:
    """Write what a history holds as a run of its own; without promises, everything is checked."""
    prepare_trace_set(directory, history.run, force)
    multicasts, deliveries = history.multicasts, history.deliveries
    lists = pa.ListArray.from_arrays(
        multicasts.offsets.astype(np.int32), multicasts.targets.astype(np.int32)
    )
    columns: dict[str, dict[str, Any]] = {
        schema.MULTICAST: {**_events(multicasts), **_message(multicasts.message)}
        | {"destinations": lists, "name": _names(history, multicasts.message)},
        schema.DELIVER: {**_events(deliveries), **_message(deliveries.message)}
        | {"name": _names(history, deliveries.message)},
        schema.SEND: _packets(history.sends),
        schema.RECEIVE: _packets(history.receives),
        schema.CRASH: _events(history.crashes),
        schema.RECOVER: _events(history.recoveries),
        schema.VIEW: {**_events(history.views), "detail": _views(history.views)},
    }
    for kind, present in columns.items():
        _write(directory, history.run, kind, present)
    write_run(
        directory,
        Run(
            run=history.run,
            world="made up",
            stack=stack,
            processes=history.processes,
            clients=max(clients, len(history.nodes) - history.processes),
            outcome=schema.COMPLETE if history.complete else schema.CUT,
            lost=as_json([process for process, _ in history.lost]) if history.lost else None,
            promises=promises,
            faulty=history.faulty,
            nodes=history.nodes,
        ),
    )


def _events(rows: object) -> dict[str, Any]:
    return {name: getattr(rows, name) for name in ("process", "step", "time")}


def _message(message: Ints) -> dict[str, Any]:
    none = message == NO_MESSAGE
    return {
        "origin": pa.array((message & ORIGIN_MASK).astype(np.int32), mask=none),
        "seq": pa.array(message >> ORIGIN_BITS, mask=none),
    }


def _names(history: History, messages: Ints) -> pa.Array:
    return pa.array(map(history.message_name, messages.tolist()), pa.string())


def _packets(packets: Packets) -> dict[str, Any]:
    names = [packets.packet[code] for code in packets.packet_code.tolist()]
    columns = {**_events(packets), **_message(packets.message)}
    return {**columns, "peer": packets.peer, "packet": pa.array(names, pa.string())}


def _views(views: Views) -> pa.Array:
    installed = [views.distinct[code] for code in views.view.tolist()]
    details = [
        as_json({"number": view.number, "members": list(view.members)}) for view in installed
    ]
    return pa.array(details, pa.string())


def _write(directory: Path, run: str, kind: str, columns: dict[str, Any]) -> None:
    count = len(columns["process"])
    if count == 0:
        return
    arrays = []
    for field in schema.EVENT_COLUMNS:
        if field.name == "run":
            arrays.append(pa.array([run] * count))
        elif field.name in columns:
            arrays.append(pa.array(columns[field.name]).cast(field.type))
        else:
            arrays.append(pa.nulls(count, field.type))
    table = pa.Table.from_arrays(arrays, schema=schema.EVENT_COLUMNS)
    write_part(directory, kind, run_file(run), table)
