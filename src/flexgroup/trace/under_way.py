"""Whether messages were under way when a run was ended, of which each process recorded a part."""

from __future__ import annotations

import glob
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexgroup.trace import schema


def is_under_way(directory: Path, run: str, processes: Collection[int]) -> bool:
    """Tell whether some of these processes lack a message while packets are on their way among
    them. Where no packet is on its way, a message that is missing is lost, not under way."""
    return _is_any_lacking(directory, run, processes) and _is_any_on_its_way(
        directory, run, processes
    )


def _is_any_lacking(directory: Path, run: str, processes: Collection[int]) -> bool:
    multicasts = _read(directory, run, schema.MULTICAST, "origin", "seq", "destinations")
    deliveries = _read(directory, run, schema.DELIVER, "process", "origin", "seq")
    destinations = multicasts["destinations"].combine_chunks()
    expected = multicasts.select(["origin", "seq"]).take(pc.list_parent_indices(destinations))
    expected = expected.append_column("process", pc.list_flatten(destinations))
    expected = expected.filter(_is_among(expected["process"], processes))
    lacking = expected.join(deliveries, ["process", "origin", "seq"], join_type="left anti")
    return bool(lacking.num_rows)


def _is_any_on_its_way(directory: Path, run: str, processes: Collection[int]) -> bool:
    """Channels keep the order of packets: what was sent before something that has arrived is not on
    its way any more, even if it was lost because somebody crashed."""
    sends = _read(directory, run, schema.SEND, "process", "peer", "step")
    receives = _read(directory, run, schema.RECEIVE, "process", "peer", "sent")
    sent = sends.group_by(["process", "peer"]).aggregate([("step", "max")])
    received = receives.group_by(["process", "peer"]).aggregate([("sent", "max")])
    ends = sent.join(received, ["process", "peer"], ["peer", "process"], join_type="left outer")
    is_behind = pc.less(pc.fill_null(ends["sent_max"], -1), ends["step_max"])
    is_among = pc.and_(_is_among(ends["process"], processes), _is_among(ends["peer"], processes))
    return bool(ends.filter(pc.and_(is_behind, is_among)).num_rows)


def _is_among(column: pa.ChunkedArray, processes: Collection[int]) -> pa.ChunkedArray:
    return pc.is_in(column, pa.array(processes, pa.int32()))


def _read(directory: Path, run: str, kind: str, *columns: str) -> pa.Table:
    """What all processes have recorded of such events."""
    parts = (directory / "events" / f"event={kind}").glob(f"{glob.escape(run)}@*.parquet")
    nothing = pa.schema([schema.EVENT_COLUMNS.field(name) for name in columns]).empty_table()
    read = [pq.read_table(part, columns=list(columns), partitioning=None) for part in parts]
    return pa.concat_tables([nothing, *read])
