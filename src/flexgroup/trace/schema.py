"""The trace schema, version 2: the only place that names its columns.

A trace set is a directory. `runs/<run>.parquet` holds one row per run;
`events/event=<kind>/<run>.parquet` holds the events of one kind. The order of events
at a process is `step`, never `time`.
"""

from __future__ import annotations

import pyarrow as pa

VERSION = 2

MULTICAST = "multicast"
SEND = "send"
RECEIVE = "receive"
DELIVER = "deliver"
VIEW = "view"
SUSPECT = "suspect"
CRASH = "crash"
RECOVER = "recover"
TIMER = "timer"
CHOICE = "choice"

KINDS = (MULTICAST, SEND, RECEIVE, DELIVER, VIEW, SUSPECT, CRASH, RECOVER, TIMER, CHOICE)

EVENT_COLUMNS = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("origin", pa.int32()),
        pa.field("seq", pa.int64()),
        pa.field("destinations", pa.list_(pa.int32())),
        pa.field("peer", pa.int32()),
        pa.field("packet", pa.string()),
        pa.field("depth", pa.int32()),
        pa.field("header_bytes", pa.int32()),
        pa.field("payload_bytes", pa.int32()),
        pa.field("sent", pa.int64()),
        pa.field("queued", pa.int64()),
        pa.field("detail", pa.string()),
        pa.field("name", pa.string()),
    ]
)

RECORDED = pa.schema([field for field in EVENT_COLUMNS if field.name != "name"])
"""The columns that our own worlds write: their messages have no names besides their numbers."""

TEXTS = ["run", "packet", "detail"]
"""The columns that are written and read as dictionaries: they hold a handful of texts, each
repeated millions of times."""

NAMED = (DELIVER, MULTICAST)
"""The kinds of events that may tell what their message is called where the run comes from; if they
differ, the multicast is right."""

REQUIRED_IN = {
    MULTICAST: ("origin", "seq", "destinations"),
    DELIVER: ("origin", "seq"),
    VIEW: ("detail",),
}
"""The columns that rows of these kinds must have besides: nothing can be checked without them."""

COMPLETE = "complete"
CUT = "cut"
OUTCOMES = (COMPLETE, CUT)
"""How a run that is over may have ended."""

RUNNING = "running"
"""The outcome of a run that has begun and not ended."""

RUN_COLUMNS = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("world", pa.string(), nullable=False),
        pa.field("stack", pa.string(), nullable=False),
        pa.field("options", pa.string(), nullable=False),
        pa.field("processes", pa.int32(), nullable=False),
        pa.field("clients", pa.int32(), nullable=False),
        pa.field("groups", pa.string()),
        pa.field("workload", pa.string()),
        pa.field("network", pa.string()),
        pa.field("faults", pa.string()),
        pa.field("seed", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("software", pa.string(), nullable=False),
        pa.field("started", pa.int64()),
        pa.field("lost", pa.string()),
        pa.field("channels", pa.list_(pa.string())),
        pa.field("promises", pa.list_(pa.string())),
        pa.field("cost_model", pa.string()),
        pa.field("faulty", pa.list_(pa.int32())),
        pa.field("events", pa.string()),
        pa.field("nodes", pa.list_(pa.string())),
    ]
)

RUN_DEFAULTS: dict[str, str | int] = {
    "world": "unknown",
    "options": "{}",
    "clients": 0,
    "outcome": CUT,
    "software": "unknown",
}
"""The values that readers take where `runs` of an older version or another system has none."""

REQUIRED_OF_RUNS = tuple(
    field.name for field in RUN_COLUMNS if not field.nullable and field.name not in RUN_DEFAULTS
)


def required_columns(kind: str) -> tuple[str, ...]:
    """Return the columns that events of this kind must have, without empty rows."""
    always = tuple(field.name for field in EVENT_COLUMNS if not field.nullable)
    return always + REQUIRED_IN.get(kind, ())
