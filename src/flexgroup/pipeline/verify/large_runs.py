"""Runs too large for one task: checked in two stages, and then judged from what was found.

The first stage has all about a message together, the second all about a slice of the run or about
a destination. What they find are notes, few if the run is right. The driver sees a row for each
large run and property; everything else stays in DataFrames.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.core.message import name_of
from flexgroup.pipeline.in_memory.packed_rows import PACKED_ROWS
from flexgroup.pipeline.in_memory.verdict_table import verdict_row, verdict_table
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import rows_of, spark_schema, union
from flexgroup.pipeline.verify.causal_checks import answering_runs, causal_findings
from flexgroup.pipeline.verify.causal_windows import (
    SEEN_IN_WINDOWS,
    TOO_EARLY,
    CausalRun,
    is_unclear,
)
from flexgroup.pipeline.verify.causal_witness import Early, chains_of_causes
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS, ORDERS, event_rows
from flexgroup.pipeline.verify.far_messages import PASSAGE, joined_by_far
from flexgroup.pipeline.verify.layout import Layout, placed
from flexgroup.pipeline.verify.message_checks import COUNTED, FAR, UNDELIVERED, check_messages
from flexgroup.pipeline.verify.message_parts import MOST_TASKS
from flexgroup.pipeline.verify.notes import NOTES
from flexgroup.pipeline.verify.order_checks import COMPONENT, CROSSING, EDGE, check_orders
from flexgroup.pipeline.verify.parted_frames import parted_events
from flexgroup.pipeline.verify.prefix_checks import skipped_messages
from flexgroup.pipeline.verify.slice_edges import EDGE_WIDTH, reach
from flexgroup.pipeline.verify.small_histories import (
    TASK_COLUMNS,
    WHOLE,
    Task,
    judge_groups,
    task_of,
    task_rows,
)
from flexgroup.pipeline.verify.told_events import MOST_BROADCAST, told_events
from flexgroup.pipeline.verify.view_checks import view_findings
from flexgroup.properties import (
    causal_order,
    fifo_order,
    prefix_order,
    real_time_order,
    virtual_synchrony,
)
from flexgroup.properties.explanations import checked
from flexgroup.properties.kernels.causal_slices import CausalFindings
from flexgroup.properties.kernels.crossings import Crossing, is_too_late
from flexgroup.properties.kernels.passages import Joined
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, MULTICAST, NAMED

PART_DELIVERIES = 1_000_000
"""How many deliveries go to a task of the first stage, roughly."""

TASK_DELIVERIES = 250_000
"""How many deliveries a task of the second stage has, at least: a task costs as much as these."""

ATTEMPTS = 3
"""How often a run is cut into slices, at most; the last time, it is one slice."""

MOST_WHOLE = 20_000_000
"""How many deliveries one task may be given; each takes about 150 bytes."""

FOUND_IN_COMPONENTS = ("acyclic order", "pairwise order", "local order")
"""Whatever violates one of these lies in a cyclic component."""

NO_VIEWS = "no views"


@dataclass
class RunFindings:
    """What is known of one large run."""

    totals: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    messages: dict[str, list[int]] = field(default_factory=dict)
    ranks: dict[str, list[int]] = field(default_factory=dict)
    answers: bool = False
    """Whether a process multicasts after it delivered something."""
    decided: dict[str, Verdict] = field(default_factory=dict)
    """Verdicts that need no explanation from events."""
    skipped: prefix_order.SkippedFirst | None = None
    """What processes skipped, if some message was not delivered everywhere."""

    def add(self, about: str, kind: str, total: int, rank: list[int], messages: list[int]) -> None:
        self.totals[about][kind] = total
        if about not in self.ranks or rank < self.ranks[about]:
            self.ranks[about], self.messages[about] = rank, messages


def large_runs(
    traces: TraceSet, layouts: Sequence[Layout], kinds: Collection[str] = ORDERS
) -> DataFrame:
    """Return the verdicts on these runs, except those on minimality.

    A step that a process took twice in events of these kinds is refused.
    """
    answering = answering_runs(traces, layouts)
    cut = [_without_causes(layout, answering) for layout in layouts]
    notes, told = _exact_notes(traces, cut, {*ORDERS, *kinds}, answering)
    found = _findings(told)
    late = _runs_with_late_multicasts(told)
    _add_causes(traces, answering, found)
    _add_views(traces, layouts, found)
    _add_skipped(traces, layouts, found)
    judged = _Judged()
    for layout in layouts:
        number = layout.plan.number
        whole = _only_as_a_whole(layout, number in late)
        judged.add(layout, found[number], whole)
    verdicts = traces.spark.createDataFrame(verdict_table(judged.verdicts))
    if not judged.tasks:
        return verdicts
    are_few = sum(note.shown for note in told) <= MOST_BROADCAST
    events = told_events(traces, notes, judged.tasks, judged.messages, are_few)
    tasks = task_rows(rows_of(traces.spark, judged.tasks, TASK_COLUMNS))
    return verdicts.unionAll(judge_groups(tasks.unionAll(events)))


class _Judged:
    """Rows for DataFrames: verdicts that are decided, and tasks for small histories."""

    def __init__(self) -> None:
        self.verdicts: list[dict[str, object]] = []
        self.tasks: list[Task] = []
        self.messages: list[tuple[int, str, int]] = []
        """The number of the run, the topic and the message; not those in cyclic components."""

    def add(self, layout: Layout, findings: RunFindings, whole: set[str]) -> None:
        seen = findings.totals[COUNTED]
        told = checked(seen.get(DELIVER, 0), seen.get(MULTICAST, 0))
        topics: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
        for name in layout.plan.properties:
            about = _found_by(name, findings)
            if name in findings.decided:
                self.verdicts.append(verdict_row(layout.plan.run, findings.decided[name]))
            elif name in whole:
                topics[WHOLE][name] = {}
            elif name == prefix_order.NAME and findings.skipped and findings.skipped.pairs:
                topic = COMPONENT if COMPONENT in findings.totals else name
                topics[topic][name] = {}
                first = (findings.skipped.skipped, findings.skipped.overtaking)
                self.messages += ((layout.plan.number, topic, message) for message in first)
            elif name == virtual_synchrony.NAME and name not in findings.totals:
                topics[NO_VIEWS][name] = {}
            elif not findings.totals.get(about):
                verdict = Verdict(name, Outcome.HOLDS, 0, None, told)
                self.verdicts.append(verdict_row(layout.plan.run, verdict))
            elif about == COMPONENT:
                # Of large components, only some messages will be there, so that they are counted
                # here; other violations, which are pairs of processes, those messages have all.
                counted = findings.totals[about] if name == "acyclic order" else {}
                topics[COMPONENT][name] = counted
            else:
                topics[name][name] = findings.totals[about]
                self.messages += (
                    (layout.plan.number, name, message) for message in findings.messages[about]
                )
        for topic, checks in topics.items():
            in_all = None if topic == WHOLE else told
            self.tasks.append(task_of(layout.plan, topic, checks, in_all, findings.skipped))


def _found_by(name: str, findings: RunFindings) -> str:
    if name in FOUND_IN_COMPONENTS or name == prefix_order.NAME:
        return COMPONENT
    # If nobody multicast after a delivery, as when all senders are clients, FIFO is all.
    return fifo_order.NAME if name == causal_order.NAME and not findings.answers else name


def _without_causes(layout: Layout, answering: Collection[int]) -> Layout:
    """Return the layout of what notes are to tell: nothing about causal order where it is checked
    apart from them."""
    if layout.plan.number not in answering:
        return layout
    return replace(layout, plan=layout.plan.without(causal_order.NAME))


def _add_causes(
    traces: TraceSet, answering: Mapping[int, CausalRun], found: Mapping[int, RunFindings]
) -> None:
    """Add what causal order shows in runs in which a process multicasts after it delivered."""
    unclear = {number: run for number, run in answering.items() if is_unclear(found[number].totals)}
    causes = {number: _seen_in_windows(found[number]) for number in answering}
    causes.update(causal_findings(traces, unclear))
    early = [
        Early(number, message, process, position + 1)
        for number, each in causes.items()
        if each.earliest
        for _, message, process, position in [each.earliest]
    ]
    faulty = {number: run.layout.plan.faulty for number, run in answering.items()}
    chains = chains_of_causes(traces, early, faulty)
    for number, each in causes.items():
        found[number].answers = True
        if each.wrong:
            found[number].add(causal_order.NAME, "", each.wrong, [], chains[number])
        elif each.unordered:
            name = _name_of(traces, number, each.least)
            verdict = causal_order.contradiction(each.unordered, name)
            found[number].decided[causal_order.NAME] = verdict


def _name_of(traces: TraceSet, number: int, message: int) -> str:
    """Return what a message is called where the run of this number comes from, or its number."""
    is_it = (f.col("number") == number) & (f.col("message") == message)
    events = event_rows(traces, NAMED, EXPLAINED_COLUMNS).where(is_it & f.col("name").isNotNull())
    rows = events.orderBy("event").limit(1).collect()  # a multicast comes first
    return str(rows[0]["name"]) if rows else name_of(message)


def _seen_in_windows(findings: RunFindings) -> CausalFindings:
    if TOO_EARLY not in findings.totals:
        return CausalFindings()
    time, message, process, step = findings.ranks[TOO_EARLY]
    wrong = sum(findings.totals[TOO_EARLY].values())
    return CausalFindings(wrong, (time, message, process, step - 1))


def _add_views(
    traces: TraceSet, layouts: Sequence[Layout], found: Mapping[int, RunFindings]
) -> None:
    """Add what virtual synchrony shows in runs that have views."""
    for number, seen in view_findings(traces, layouts).items():
        name = virtual_synchrony.NAME
        if seen.missing:
            *rank, message = seen.first
            found[number].add(name, "", seen.missing, rank, [message])
        else:
            found[number].decided[name] = virtual_synchrony.kept(seen.deliveries, seen.changes)


def _add_skipped(
    traces: TraceSet, layouts: Sequence[Layout], found: Mapping[int, RunFindings]
) -> None:
    """Add what processes skipped in runs in which some message was not delivered everywhere."""
    numbers = [
        layout.plan.number
        for layout in layouts
        if prefix_order.NAME in layout.plan.properties
        and UNDELIVERED in found[layout.plan.number].totals
    ]
    for number, skipped in skipped_messages(traces, layouts, numbers).items():
        found[number].skipped = skipped


def _only_as_a_whole(layout: Layout, late_multicasts: bool) -> set[str]:
    """Return the properties that only the whole of this run decides."""
    name = real_time_order.NAME
    if not late_multicasts or name not in layout.plan.properties:
        return set()
    if layout.deliveries > MOST_WHOLE:
        raise UsageError(
            f"{name} of run '{layout.plan.run}' is violated: a message was multicast long after the"
            f" delivery of one that is ordered behind it; but one task would need all"
            f" {layout.deliveries:,} deliveries to tell which, and {MOST_WHOLE:,} fit; name the"
            f" other properties with --property"
        )
    return {name}


@dataclass(frozen=True)
class _Told:
    """A note as the driver has it: without the messages of cyclic components, which may be as many
    as the run has."""

    number: int
    about: str
    kind: str
    total: int
    rank: list[int]
    messages: list[int]
    shown: int
    """How many messages it has, the others among them."""


def _exact_notes(
    traces: TraceSet,
    layouts: Sequence[Layout],
    kinds: Collection[str],
    causal: Mapping[int, CausalRun],
) -> tuple[DataFrame, list[_Told]]:
    """Return the notes on all runs, those whose margins were too narrow cut into larger slices."""
    parts = []
    told: list[_Told] = []
    waiting = list(layouts)
    for attempt in range(1, ATTEMPTS + 1):
        notes = _notes(traces, placed(waiting), kinds, causal).persist()
        messages = f.when(f.col("about") != COMPONENT, f.col("messages")).alias("messages")
        shown = f.size("messages").alias("shown")
        rows = notes.select(*NOTES.names[:-1], messages, shown).toArrow().to_pylist()
        seen = [_Told(**{**row, "messages": row["messages"] or []}) for row in rows]
        narrow, joined = _cut(seen)
        told += (
            note for note in seen if note.number not in narrow or note.about in SEEN_IN_WINDOWS
        )
        told += (
            _Told(number, COMPONENT, "", far.components - far.parts, [], [], 0)
            for number, far in joined.items()
        )
        parts.append(notes.where(~f.col("number").isin(list(narrow))) if narrow else notes)
        waiting = [
            layout.widened(narrow[layout.plan.number], attempt == ATTEMPTS - 1)
            for layout in waiting
            if layout.plan.number in narrow
        ]
        if not waiting:
            break
        kinds, causal = ORDERS, {}  # steps and windows were looked at once
    return union(parts), told


def _notes(
    traces: TraceSet,
    layouts: dict[int, Layout],
    kinds: Collection[str],
    causal: Mapping[int, CausalRun],
) -> DataFrame:
    deliveries = sum(layout.deliveries for layout in layouts.values())
    parts = min(MOST_TASKS, max(2, deliveries // PART_DELIVERIES))
    tasks = min(MOST_TASKS, parts + sum(run.slices for run in causal.values()))
    causal = {number: replace(run, place=parts + run.place) for number, run in causal.items()}
    enough = max(2, deliveries // TASK_DELIVERIES)
    places = min(MOST_TASKS, enough, sum(layout.places for layout in layouts.values()))
    packed = spark_schema(PACKED_ROWS)
    parted = parted_events(traces, layouts, [*kinds], parts, causal)
    checked = parted.repartitionById(tasks, f.col("place") % tasks).mapInArrow(
        check_messages(layouts, causal), packed
    )
    return checked.repartitionById(places, f.col("place") % places).mapInArrow(
        check_orders(layouts), spark_schema(NOTES)
    )


def _cut(notes: Sequence[_Told]) -> tuple[dict[int, int], dict[int, Joined]]:
    """Return the numbers of runs in which some slice may not have seen all that it had to, and how
    far what it had to see reaches; and of the others what messages that were taken out join."""
    edges: dict[int, list[Ints]] = defaultdict(list)
    far: dict[int, list[list[int]]] = defaultdict(list)
    passages: dict[int, dict[str, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    for note in notes:
        if note.about == EDGE:
            edges[note.number].append(np.array(note.rank, dtype=np.int64).reshape(-1, EDGE_WIDTH))
        elif note.about == FAR:
            far[note.number].append(note.rank)
        elif note.about == PASSAGE:
            passages[note.number][note.kind].append(note.rank)
    reached = {number: reach(np.concatenate(tables)) for number, tables in edges.items()}
    narrow = {number: slices for number, slices in reached.items() if slices}
    joined = {}
    for number in far.keys() - narrow.keys():
        slices, through = len(edges[number]), passages[number]
        found = None
        if sum(map(len, through.values())) == slices:
            found = joined_by_far(far[number], through)
        if found is None:
            narrow[number] = slices
        else:
            joined[number] = found
    return narrow, joined


def _findings(notes: Sequence[_Told]) -> dict[int, RunFindings]:
    found: dict[int, RunFindings] = defaultdict(RunFindings)
    groups: dict[tuple[int, str, str], list[_Told]] = defaultdict(list)
    for note in notes:
        if note.about not in (EDGE, CROSSING, FAR, PASSAGE):
            groups[note.number, note.about, note.kind].append(note)
    for (number, about, kind), group in groups.items():
        first = min(group, key=lambda note: note.rank)
        total = sum(note.total for note in group)
        if total:  # a slice may show messages without a component of its own
            found[number].add(about, kind, total, first.rank, first.messages)
    return found


def _runs_with_late_multicasts(notes: Sequence[_Told]) -> set[int]:
    """Return runs in which a message was multicast after the first delivery of one that is ordered
    behind it, and in a later slice."""
    crossings: dict[int, list[list[int]]] = defaultdict(list)
    for note in notes:
        if note.about == CROSSING:
            crossings[note.number].append(note.rank)
    return {
        number
        for number, of_run in crossings.items()
        if is_too_late(Crossing.of_ints(told, count) for _, count, *told in sorted(of_run))
    }


def crashed(traces: TraceSet, numbers: list[int]) -> dict[int, tuple[int, ...]]:
    rows = traces.events("crash", "process").where(f.col("number").isin(numbers)).distinct()
    processes: dict[int, list[int]] = defaultdict(list)
    for row in rows.collect():
        processes[row.number].append(row.process)
    return {number: tuple(sorted(found)) for number, found in processes.items()}
