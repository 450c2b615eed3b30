"""A watched run: what is asked of it, when it is over, and the set of what was forgotten."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.message import message_id
from flexgroup.pipeline.watch.message_intervals import MessageIntervals
from flexgroup.pipeline.watch.reassembly import ARRIVING
from flexgroup.pipeline.watch.watched_run import BatchReport, WatchedRun

from ..properties.histories import events_of
from .watching import rows_of

NOTHING = ARRIVING.empty_table()
OPPOSITE = rows_of(
    events_of(
        """
        4 multicast 4.0 to 0,1
        5 multicast 5.0 to 0,1
        0 deliver 4.0
        0 deliver 5.0
        1 deliver 5.0
        1 deliver 4.0
        """
    )
)


def told(stack: str, outcome: str) -> dict[str, object]:
    return {
        "run": stack,
        "stack": stack,
        "processes": 4,
        "network": "lan",
        "faults": None,
        "outcome": outcome,
        "schema_version": 1,
    }


def names(notes: BatchReport) -> list[object]:
    return [row["property"] for row in notes.violations]


def test_only_what_the_stack_promises_is_told() -> None:
    watched = WatchedRun("skeen", None)
    notes = watched.advance(0, OPPOSITE, told("skeen", "running"), None)
    assert {"acyclic order", "pairwise order"} < set(names(notes))
    watched = WatchedRun("best-effort", None)
    notes = watched.advance(0, OPPOSITE, told("best-effort", "running"), None)
    assert names(notes) == []


def test_what_is_found_is_told_when_it_is_known_what_was_promised() -> None:
    watched = WatchedRun("late", None)
    assert watched.advance(0, OPPOSITE, None, None) == BatchReport()
    notes = watched.advance(1, NOTHING, None, told("skeen", "complete"))
    assert "acyclic order" in names(notes)
    assert watched.advance(2, NOTHING, None, None).violations == []


def test_a_run_goes_through_bytes_between_batches() -> None:
    watched, again = WatchedRun("late", None), WatchedRun("late", None)
    for batch, events, ended in ((0, OPPOSITE, None), (1, NOTHING, told("skeen", "complete"))):
        again = WatchedRun.from_bytes(again.to_bytes())
        assert again.advance(batch, events, None, ended) == watched.advance(
            batch, events, None, ended
        )
    finished = WatchedRun.from_bytes(again.to_bytes()).advance(2, NOTHING, None, None)
    assert finished == watched.advance(2, NOTHING, None, None)
    assert finished.final


def test_chosen_properties_need_no_promise() -> None:
    watched = WatchedRun("chosen", ["acyclic order"])
    assert names(watched.advance(0, OPPOSITE, None, None)) == ["acyclic order"]


def test_a_run_is_over_one_batch_after_it_was_listed() -> None:
    """Its last events may be seen after its row in `runs`, in the same batch or the next."""
    watched = WatchedRun("run", ["validity", "minimality"])
    multicast, delivery = OPPOSITE.slice(0, 1), OPPOSITE.slice(2, 1)
    assert watched.advance(0, multicast, None, told("skeen", "complete")) == BatchReport()
    notes = watched.advance(1, delivery, None, None)
    assert names(notes) == ["validity"]
    assert [row["violations"] for row in notes.final] == [1]
    assert notes.unwatched == ["minimality"]
    assert watched.over


def test_a_run_that_is_refused_says_why() -> None:
    watched = WatchedRun("run", None)
    watched.advance(0, OPPOSITE, None, None)
    notes = watched.advance(1, OPPOSITE, None, None)
    assert "came after step" in notes.refused


def test_a_run_of_a_newer_version_is_refused() -> None:
    watched = WatchedRun("run", None)
    newer = told("skeen", "running") | {"schema_version": 99}
    assert "upgrade flexgroup" in watched.advance(0, NOTHING, newer, None).refused


def test_what_a_process_does_that_is_faulty_by_design_is_not_told() -> None:
    described = told("skeen", "running") | {"schema_version": 2}
    watched = WatchedRun("faulty", ["acyclic order"])
    assert names(watched.advance(0, OPPOSITE, described, None)) == ["acyclic order"]
    watched = WatchedRun("faulty", ["acyclic order"])
    assert names(watched.advance(0, OPPOSITE, described | {"faulty": [1]}, None)) == []


def test_who_is_faulty_must_be_told_first() -> None:
    described = told("skeen", "running") | {"schema_version": 2, "faulty": [1]}
    watched = WatchedRun("faulty", ["acyclic order"])
    watched.advance(0, OPPOSITE, None, None)
    assert "check it with flexgroup verify" in watched.advance(1, NOTHING, described, None).refused


identities = st.builds(message_id, st.integers(0, 3), st.integers(0, 12))


@given(added=st.lists(st.sets(identities), max_size=6), asked=st.lists(identities))
def test_spans_are_sets(added: list[set[int]], asked: list[int]) -> None:
    spans, expected = MessageIntervals(), set[int]()
    for messages in added:
        spans.add(np.array(sorted(messages - expected), dtype=np.int64))
        expected |= messages
    found = spans.holds(np.array(asked, dtype=np.int64))
    assert found.tolist() == [message in expected for message in asked]


def test_numbers_without_gaps_are_one_span_for_each_origin() -> None:
    spans = MessageIntervals()
    for seq in np.random.default_rng(1).permutation(1000):
        spans.add(np.array([message_id(origin, int(seq)) for origin in (0, 7)], dtype=np.int64))
    assert len(spans.starts) == 2
