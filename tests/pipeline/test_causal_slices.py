"""Causal order of runs that come in slices is that of the plain-Python property, however they are
cut."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import UsageError
from flexgroup.core.message import message_id, name_of
from flexgroup.pipeline.in_memory.packed_rows import packed_batch
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.verify import (
    SizeLimits,
    causal_checks,
    large_runs,
    message_checks,
    verify,
)
from flexgroup.pipeline.verify.causal_rows import CausalEvents, causal_events
from flexgroup.pipeline.verify.causal_windows import (
    IN_WINDOW,
    TOO_EARLY,
    CausalRun,
    check_window,
    is_unclear,
    never_multicast,
)
from flexgroup.pipeline.verify.check_plans import CheckPlan
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_checks import check_messages
from flexgroup.pipeline.verify.timeline import EARLIER, LATER, Timeline
from flexgroup.properties import causal_order
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.causal_slices import (
    CausalFindings,
    CausalScan,
)
from flexgroup.properties.kernels.grouping import runs
from flexgroup.properties.verdict import Outcome, Step
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts
from flexgroup.trace.schema import DELIVER, MULTICAST

from ..properties.histories import Event, history_of
from .made_up_runs import write_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(400)

ON_SPARK = (*SEEDS[::20], 28, 71)
"""Some of them, and two in which causes are indirect."""


def made_up(seed: int) -> History:
    """Messages to some of a few processes, delivered soon or late, rarely never, and in some
    runs before they were multicast."""
    chance = random.Random(seed)
    processes = chance.randint(2, 5)
    late = chance.choice([0.1, 2, 40])
    hasty = chance.choice([0, 0, 0.02, 0.05])
    lossy = chance.choice([0, 0, 0.02])
    sent = [0] * (processes + 1)
    events: list[tuple[float, Event]] = []
    for time in range(chance.randint(5, 60)):
        origin = chance.randrange(processes + chance.choice([0, 1]))
        message = message_id(origin, sent[origin])
        sent[origin] += 1
        to = tuple(sorted(chance.sample(range(processes), chance.randint(1, processes))))
        events.append((time, Event(origin, MULTICAST, message, to)))
        for process in to:
            delay = 1 + late * chance.random() ** 3
            if chance.random() < hasty:
                delay = -chance.choice([2, 10, 40])
            if chance.random() >= lossy:
                events.append((time + delay, Event(process, DELIVER, message)))
    told = [event for _, event in sorted(events, key=lambda timed: timed[0])]
    history = history_of(told, processes)
    return replace(history, faulty=(chance.randrange(processes),) if seed % 5 == 4 else ())


def cut(history: History, parts: int, chance: random.Random) -> Timeline:
    """Cut a run by its times, or without any regard to them."""
    sent, heard = history.multicasts, history.deliveries
    processes = np.unique(np.concatenate([sent.process, heard.process]))
    begins = np.full((len(processes), parts - 1), LATER, dtype=np.int64)
    bounds = np.linspace(0, max(sent.time.max(), heard.time.max(initial=0)), parts + 1)[1:-1]
    blind = chance.random() < 0.3
    last_sent, first_heard, last_heard = [], [], []
    for row, process in enumerate(processes.tolist()):
        own, other = sent.process == process, heard.process == process
        steps = np.concatenate([sent.step[own], heard.step[other]])
        times = np.concatenate([sent.time[own], heard.time[other]])
        for place, bound in enumerate(bounds.tolist()):
            begins[row, place] = steps[times >= bound].min(initial=LATER)
        if blind:
            begins[row] = sorted(chance.randint(0, int(steps.max())) for _ in bounds)
        counts = process not in history.faulty
        last_sent.append(sent.step[own].max(initial=EARLIER))
        first_heard.append(heard.step[other & counts].min(initial=LATER))
        last_heard.append(heard.step[other & counts].max(initial=EARLIER))
    ends = (np.array(steps, dtype=np.int64) for steps in (last_sent, first_heard, last_heard))
    return Timeline(processes, begins, *ends)


def scanned(events: CausalEvents, faulty: tuple[int, ...], **limits: int) -> CausalFindings:
    known: dict[int, Ints] = {}
    while True:
        scan = CausalScan(faulty, known, **limits)
        for number, rows in events.by_slice():
            scan.advance(number, rows)
        scan.finish()
        if not scan.found:
            return scan.findings
        known.update(scan.found)


def agrees(history: History, found: CausalFindings) -> bool:
    verdict = causal_order.check(IndexedHistory(history))
    if verdict.outcome is Outcome.VIOLATED:
        _, message, process, position = found.earliest or (0, 0, 0, 0)
        early = Step(process, position + 1, DELIVER, message)
        return found.wrong == verdict.violations and early in (verdict.witness or ())
    if verdict.outcome is Outcome.UNKNOWN:
        told = causal_order.contradiction(found.unordered, name_of(found.least))
        return found.wrong == 0 and told == verdict
    return found.wrong == found.unordered == 0


@settings(deadline=None, max_examples=120)
@given(
    seed=st.sampled_from(SEEDS),
    parts=st.sampled_from([2, 9, 17, 40]),
    most_waiting=st.sampled_from([0, 3, 10, 1000]),
    clock_bytes=st.sampled_from([8, 100, 10_000]),
)
def test_going_through_the_slices_finds_what_the_property_finds(
    seed: int, parts: int, most_waiting: int, clock_bytes: int
) -> None:
    history = made_up(seed)
    timeline = cut(history, parts, random.Random(seed + parts))
    events = causal_events(IndexedHistory(history), timeline)
    limits = {"most_waiting": most_waiting, "clock_bytes": clock_bytes}
    assert agrees(history, scanned(events, history.faulty, **limits))


def cut_run(history: History, parts: int) -> CausalRun:
    plan = CheckPlan(**history.facts(), number=0, properties=())
    layout = Layout(plan=plan, deliveries=0, crashed=(), bounds=np.arange(parts - 1))
    return CausalRun(layout, cut(history, parts, random.Random(parts)), 0)


def alone(history: History, parts: int) -> CausalFindings | None:
    """What the checkers of windows find who see nothing else, if they can tell."""
    run = cut_run(history, parts)
    sent, heard = history.multicasts, history.deliveries
    sent_in, heard_in = (run.windows(rows.process, rows.step) for rows in (sent, heard))
    notes = list(never_multicast(0, IndexedHistory(history)))
    for number in range(run.slices):
        rows, copies = (np.sort(at[window == number]) for at, window in (sent_in, heard_in))
        chosen, _ = runs(sent.offsets[rows], sent.offsets[rows + 1])
        window = replace(
            history,
            multicasts=Multicasts(
                sent.process[rows],
                sent.step[rows],
                sent.time[rows],
                sent.message[rows],
                np.cumsum(np.append(0, np.diff(sent.offsets)[rows])),
                sent.targets[chosen],
            ),
            deliveries=Deliveries(
                heard.process[copies], heard.step[copies], heard.time[copies], heard.message[copies]
            ),
        )
        notes += check_window(run, number, IndexedHistory(window))
    totals = {about: {"": 0} for about in {note.about for note in notes}}
    for note in notes:
        totals[note.about][""] += note.total
    if is_unclear(totals):
        return None
    early = [note for note in notes if note.about == TOO_EARLY]
    if not early:
        return CausalFindings()
    time, message, process, step = min(tuple(note.rank) for note in early)
    return CausalFindings(totals[TOO_EARLY][""], (time, message, process, step - 1))


def test_slices_decide_alone_where_they_see_enough() -> None:
    """And often enough they do, so that this says something."""
    decided = {Outcome.HOLDS: 0, Outcome.VIOLATED: 0}
    for seed, parts in product(SEEDS, (9, 17, 40)):
        history = made_up(seed)
        found = alone(history, parts)
        if found is not None:
            assert agrees(history, found), (seed, parts)
            decided[Outcome.VIOLATED if found.wrong else Outcome.HOLDS] += 1
    assert min(decided.values()) >= 5, decided


def test_what_was_never_multicast_keeps_no_window_from_judging() -> None:
    history = made_up(3)
    heard = history.deliveries
    of_nobody = np.append(heard.message[:-3], [message_id(77, seq) for seq in range(3)])
    rows = Deliveries(heard.process, heard.step, heard.time, of_nobody)
    history = replace(history, deliveries=rows)
    found = alone(history, 2)
    assert found is not None
    assert agrees(history, found)


class TestRefusals:
    """What does not fit into a task is refused before the task takes it on."""

    def test_a_window_is_too_large_where_times_tell_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = cut_run(made_up(0), 9)
        monkeypatch.setattr(message_checks, "MOST_BYTES", 3 << 20)
        payload = bytes((4 << 20) + 1)
        rows = [(run.place, 0, IN_WINDOW[MULTICAST], payload)]
        with pytest.raises(UsageError, match="4 MiB of them would have to be in one piece, and 3"):
            list(check_messages({0: run.layout}, {0: run})(iter([packed_batch(rows)])))

    @pytest.mark.parametrize(
        ("limit", "told"),
        [
            ("MOST_BYTES", "cannot be told apart by their times"),
            ("MOST_STATE", "what is under way there at a time takes"),
        ],
    )
    def test_so_are_a_slice_and_the_clocks_that_leave_it(
        self, monkeypatch: pytest.MonkeyPatch, limit: str, told: str
    ) -> None:
        history = made_up(0)
        run = cut_run(history, 9)
        rows = causal_checks._packed(0, causal_events(IndexedHistory(history), run.timeline))
        monkeypatch.setattr(causal_checks, limit, 0)
        with pytest.raises(UsageError, match=told):
            list(causal_checks._scan({0: run}, {0: {}})(iter([packed_batch(rows)])))

    def test_so_is_a_run_in_which_order_in_real_time_is_violated_across_slices(self) -> None:
        plan = CheckPlan(
            run="one", processes=2, complete=True, number=0, properties=("real-time order",)
        )
        bounds = np.arange(3)
        layout = Layout(plan=plan, deliveries=20_000_000, crashed=(), bounds=bounds)
        assert large_runs._only_as_a_whole(layout, late_multicasts=True) == {"real-time order"}
        with pytest.raises(UsageError, match="20,000,001 deliveries to tell which, and 20,"):
            large_runs._only_as_a_whole(replace(layout, deliveries=20_000_001), True)


def test_the_runs_keep_and_break_causal_order_and_contradict_themselves() -> None:
    outcomes = [causal_order.check(IndexedHistory(made_up(seed))).outcome for seed in SEEDS]
    assert min(outcomes.count(outcome) for outcome in Outcome) >= 3, outcomes


def test_spark_says_the_same_in_the_same_words(spark: SparkSession, tmp_path: Path) -> None:
    histories = [replace(made_up(seed), run=f"made-up-{seed:03}") for seed in ON_SPARK]
    expected = {
        history.run: causal_order.check(IndexedHistory(history)).to_json() for history in histories
    }
    traces = open_trace_set(spark, str(write_all(tmp_path, histories)))
    limits = SizeLimits(events_from_files=0, whole_deliveries=0, cell_deliveries=2)
    with patch.object(large_runs, "MOST_TASKS", 8):
        found = {row.run: row for row in verify(traces, [causal_order.NAME], limits).collect()}
    assert found.keys() == expected.keys()
    for run, told in expected.items():
        assert (found[run].outcome, found[run].violations) == (told["outcome"], told["violations"])
        assert found[run].explanation == told["explanation"], run
        assert json.loads(found[run].witness or "null") == told["witness"], run
    # Some of the causes are indirect.
    lengths = [str(told["explanation"]).count(" -> ") for told in expected.values()]
    assert max(lengths) >= 2
