"""What a run in memory cost: steps, packets, bytes, and how many messages stayed among their own.

These are metrics of section 6.1.4 of the DCC dissertation (Louzada 2024). Their definitions stand
in `flexgroup.metrics.catalogue`, under the names in COST_METRICS.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS, ORIGIN_MASK
from flexgroup.core.replicas import Replicas
from flexgroup.metrics.catalogue import METRICS
from flexgroup.metrics.counting import count
from flexgroup.metrics.period import NO_PERIOD
from flexgroup.trace import schema
from flexgroup.trace.history import History, Packets, SmallInts

COST_METRICS = {
    "genuine_rate": "genuine",
    "fast_rate": "fast",
    "steps": "steps",
    "steps_group": "steps_group",
    "steps_first": "steps_first",
    "volume": "volume",
    "header_bytes": "header_bytes",
}


@dataclass(frozen=True)
class Costs:
    """Means over the messages of a run, and of header bytes over the packets among the processes;
    rates are between 0 and 1."""

    genuine_rate: float
    fast_rate: float
    steps: float
    """Steps to the last delivery; then to the first in the slowest group, and to the first."""
    steps_group: float
    steps_first: float
    volume: float
    header_bytes: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        fields = ["steps", "volume", "header_bytes", "genuine_rate", "fast_rate"]
        if self.steps_group != self.steps:
            fields[1:1] = ["steps_group", "steps_first"]
        return ", ".join(METRICS[COST_METRICS[name]].phrase(getattr(self, name)) for name in fields)


def costs(history: History, replicas: Replicas = ()) -> Costs:
    """Measure a history that has its packets; without, it looks as if none had been sent."""
    packets = {schema.SEND: history.sends, schema.RECEIVE: history.receives}
    sums = count(history, lambda kind: _table(packets[kind]), NO_PERIOD, replicas=replicas)
    values = {field: METRICS[name].formula(sums) for field, name in COST_METRICS.items()}
    return Costs(**{field: float(value or 0.0) for field, value in values.items()})


def _table(rows: Packets) -> pa.Table:
    """Return the packets of a history as a table of events."""
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
