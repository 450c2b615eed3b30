"""The events behind violations: all that happened to the messages of each witness, every crash and
recovery, and what else happened to the processes involved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flexgroup.core.message import message_id
from flexgroup.pipeline.in_memory.small_run import SmallRun, each_run
from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.pipeline.result_tables import in_order
from flexgroup.trace import schema
from flexgroup.trace.reader import ints, messages
from flexgroup.trace.run import Run

SHOWN = 50
"""Violated properties of a trace set that get their events: first one of each property for each
stack, then others, those of the first runs by name."""

COLUMNS = (
    "process", "step", "time", "origin", "seq", "destinations", "peer", "packet", "depth",
    "sent", "detail", "name",
)  # fmt: skip

EVIDENCE = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("run", "property", "event")),
        *(schema.EVENT_COLUMNS.field(name).with_nullable(True) for name in COLUMNS),
    ]
)

ABOUT_MESSAGES = (schema.MULTICAST, schema.SEND, schema.RECEIVE, schema.DELIVER)
FAULTS = (schema.CRASH, schema.RECOVER)
MEANWHILE = (schema.TIMER, schema.CHOICE)
"""Kinds that matter only between the first and the last event about a message at a process."""
AROUND = (*FAULTS, schema.SUSPECT, schema.VIEW, *MEANWHILE)
"""Kinds that concern no message: faults of all processes, and what happens to those involved."""

Span = tuple[int, int]
"""The first and the last step at which a process had to do with the messages."""


class Violated(NamedTuple):
    """The parts of a violated verdict that matter here."""

    run: str
    property: str
    witness: str


class Concerned(NamedTuple):
    """A message in a witness."""

    run: str
    property: str
    origin: int
    seq: int


def evidence_here(files: LocalFiles, verdicts: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the table of EVIDENCE for these rows of verdicts."""
    concerned = concerned_by(violated_among(verdicts), files.described)
    return in_evidence_order(each_run(files, requests_by_run(concerned), find, EVIDENCE))


def violated_among(verdicts: Iterable[Mapping[str, Any]]) -> list[Violated]:
    """Return those of these rows of verdicts that are violated."""
    return [
        Violated(row["run"], row["property"], row["witness"])
        for row in verdicts
        if row["outcome"] == "violated"
    ]


def in_evidence_order(found: pa.Table) -> pa.Table:
    return in_order(found, "run", "property", "process", "step")


def concerned_by(violated: Iterable[Violated], described: Iterable[Run]) -> list[Concerned]:
    """Return the messages in the witnesses of the violations that are shown."""
    shown = chosen(violated, {run.run: run.stack for run in described})
    return sorted({message for verdict in shown for message in _concerned(verdict)})


def requests_by_run(
    concerned: Iterable[Concerned],
) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Return what to ask `find` for: the messages of each run and property."""
    by_run: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for run, name, *message in concerned:
        by_run.setdefault(run, {}).setdefault(name, []).append((message[0], message[1]))
    return by_run


def find(files: SmallRun) -> pa.Table:
    """Return the evidence of one run, for the messages of each property that are asked for."""
    tables = [EVIDENCE.empty_table()]
    run = files.run.run
    for kind in [kind for kind in ABOUT_MESSAGES if kind in files.kinds]:
        events = files.events(kind)
        identities = messages(events)
        for name, wanted in files.request.items():
            rows = np.flatnonzero(np.isin(identities, [message_id(*pair) for pair in wanted]))
            tables.append(_evidence(events.take(pa.array(rows)), run, name, kind))
    spans = spans_of(pa.concat_tables(tables))
    for kind in [kind for kind in AROUND if kind in files.kinds]:
        events = files.events(kind)
        for name in files.request:
            rows = np.flatnonzero(_is_relevant(events, kind, spans.get((run, name), {})))
            tables.append(_evidence(events.take(pa.array(rows)), run, name, kind))
    return pa.concat_tables(tables)


def chosen(violated: Iterable[Violated], stacks: Mapping[str, str]) -> list[Violated]:
    """Choose those that are shown."""
    ordered = sorted(violated)
    firsts: dict[tuple[str, str], Violated] = {}
    for verdict in ordered:
        firsts.setdefault((stacks[verdict.run], verdict.property), verdict)
    leading = set(firsts.values())
    others = [verdict for verdict in ordered if verdict not in leading]
    return [*firsts.values(), *others][:SHOWN]


def _concerned(verdict: Violated) -> Iterable[Concerned]:
    for step in json.loads(verdict.witness):
        origin, _, seq = step["message"].partition(".")
        yield Concerned(verdict.run, verdict.property, int(origin), int(seq))


def spans_of(found: pa.Table) -> dict[tuple[str, str], dict[int, Span]]:
    """Return who is involved in each violation, and when, by the events about its messages."""
    spans: dict[tuple[str, str], dict[int, Span]] = {}
    steps = [("step", "min"), ("step", "max")]
    for row in found.group_by(["run", "property", "process"]).aggregate(steps).to_pylist():
        of_run = spans.setdefault((row["run"], row["property"]), {})
        of_run[row["process"]] = (row["step_min"], row["step_max"])
    return spans


def _is_relevant(events: pa.Table, kind: str, spans: Mapping[int, Span]) -> NDArray[np.bool_]:
    """Tell which events of a kind that concerns no message belong to a violation."""
    process, step = ints(events, "process"), ints(events, "step")
    relevant = np.full(len(process), bool(spans) and kind in FAULTS)
    for involved, (first, last) in spans.items():
        here = process == involved
        relevant |= here & (step >= first) & (step <= last) if kind in MEANWHILE else here
    return relevant


def _evidence(events: pa.Table, run: str, name: str, kind: str) -> pa.Table:
    """Return the columns of EVIDENCE; files may lack some that are empty anyway."""
    count = events.num_rows
    same = {"run": run, "property": name, "event": kind}
    columns = [
        pa.array([same[field.name]] * count, field.type)
        if field.name in same
        else events.column(field.name).cast(field.type)
        if field.name in events.column_names
        else pa.nulls(count, field.type)
        for field in EVIDENCE
    ]
    return pa.Table.from_arrays(columns, schema=EVIDENCE)
