"""Correct runs, small and large, before and after one thing in them is tampered with."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from flexgroup.core.message import message_id, name_of, origin_of
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.schema import DELIVER, MULTICAST, SEND

from .histories import Event, correct_events, history_of, inserted, swapped, where

PROCESSES = 8
NEW = 1 << 30
"""A message number that correct runs do not reach."""

sizes = pytest.mark.parametrize("deliveries", [1_000, 100_000])


@cache
def correct(deliveries: int) -> tuple[Event, ...]:
    return tuple(correct_events(deliveries // 3, PROCESSES, seed=deliveries))


def violations(events: list[Event]) -> dict[str, Verdict]:
    verdicts = check(history_of(events, PROCESSES))
    return {
        verdict.property: verdict for verdict in verdicts if verdict.outcome is Outcome.VIOLATED
    }


@sizes
def test_nothing_is_reported_before_tampering(deliveries: int) -> None:
    events = list(correct(deliveries))
    assert abs(len(where(events, DELIVER)) - deliveries) < deliveries / 10
    assert violations(events) == {}


@sizes
def test_two_deliveries_swapped(deliveries: int) -> None:
    """Somewhere in the run, where the two messages have another destination in common."""
    events = list(correct(deliveries))
    sets = {event.message: set(event.others) for event in events if event.kind == MULTICAST}
    places = where(events, DELIVER, process=3)
    one, other = next(
        (one, other)
        for one, other in zip(
            places[len(places) // 2 :], places[len(places) // 2 + 1 :], strict=False
        )
        if len(sets[events[one].message] & sets[events[other].message]) > 1
    )
    found = violations(swapped(events, one, other))
    assert {"pairwise order", "prefix order", "acyclic order"} <= set(found)
    assert found["acyclic order"].violations == 1
    witness = found["acyclic order"].witness
    assert witness is not None
    assert {step.message for step in witness} == {events[one].message, events[other].message}
    assert len(witness) == 4
    assert 3 in {step.process for step in witness}


@sizes
def test_a_cycle_in_which_no_two_processes_share_two_messages(deliveries: int) -> None:
    events = list(correct(deliveries))
    tampered = inserted(
        events,
        len(events) // 3,
        """
        90 multicast 90.0 to 0,2
        91 multicast 91.0 to 0,1
        92 multicast 92.0 to 1,2
        0 deliver 90.0
        0 deliver 91.0
        1 deliver 91.0
        1 deliver 92.0
        2 deliver 92.0
        2 deliver 90.0
        """,
    )
    found = violations(tampered)
    assert set(found) == {"acyclic order"}
    verdict = found["acyclic order"]
    assert verdict.violations == 1
    assert verdict.witness is not None
    assert [name_of(step.message) for step in verdict.witness[::2]] == ["90.0", "91.0", "92.0"]


@sizes
def test_a_duplicate_delivery(deliveries: int) -> None:
    events = list(correct(deliveries))
    place = where(events, DELIVER)[deliveries // 2]
    found = violations([*events, events[place]])
    assert set(found) == {"integrity"}
    assert found["integrity"].violations == 1
    assert "1 duplicate\n" in found["integrity"].explanation


@sizes
def test_a_lost_delivery(deliveries: int) -> None:
    """Missing where it was due; and its destination skipped it on the way."""
    events = list(correct(deliveries))
    place = where(events, DELIVER)[deliveries // 2]
    lost = events.pop(place)
    found = violations(events)
    missing = {"validity", "agreement", "uniform agreement"}
    assert missing | {"prefix order"} <= set(found)
    assert "acyclic order" not in found
    for name in missing:
        assert found[name].violations == 1
        assert f"process {lost.process}, which never crashed, did not" in found[name].explanation


@sizes
def test_a_delivery_of_a_message_never_sent(deliveries: int) -> None:
    events = list(correct(deliveries))
    found = violations(inserted(events, len(events) // 2, f"5 deliver 6.{NEW}"))
    assert set(found) == {"integrity"}
    assert "1 never multicast\n" in found["integrity"].explanation


@sizes
def test_a_delivery_at_a_process_that_is_no_destination(deliveries: int) -> None:
    events = list(correct(deliveries))
    last = next(event for event in reversed(events) if event.kind == MULTICAST)
    outsider = min(set(range(PROCESSES)) - set(last.others))
    found = violations([*events, Event(outsider, DELIVER, last.message)])
    assert set(found) == {"integrity"}
    assert "1 at no destination\n" in found["integrity"].explanation


@sizes
def test_an_answer_delivered_before_its_question(deliveries: int) -> None:
    """No two processes share both, so the total orders hold; but the question was over."""
    events = list(correct(deliveries))
    tampered = inserted(
        events,
        len(events),
        f"""
        0 multicast 0.{NEW} to 1,2
        1 deliver 0.{NEW}
        1 multicast 1.{NEW} to 2,3
        3 deliver 1.{NEW}
        2 deliver 1.{NEW}
        2 deliver 0.{NEW}
        """,
    )
    found = violations(tampered)
    assert set(found) == {"causal order", "real-time order"}
    assert found["causal order"].violations == 1
    assert (
        found["causal order"]
        .explanation.splitlines()[1]
        .startswith("a -> b, because process 1 delivered a")
    )


@sizes
def test_a_packet_that_passes_an_outsider(deliveries: int) -> None:
    events = list(correct(deliveries))
    place = where(events, SEND)[deliveries // 2]
    [multicast] = [
        event
        for event in events
        if event.kind == MULTICAST and event.message == events[place].message
    ]
    insiders = {origin_of(multicast.message), *multicast.others}
    outsider = min(set(range(PROCESSES)) - insiders)
    events[place] = replace(events[place], process=outsider)
    found = violations(events)
    assert set(found) == {"minimality"}
    assert found["minimality"].violations == 1


def test_many_swaps_are_found_and_counted_as_components() -> None:
    """Swaps of neighbours far apart from each other: as many components, each of two messages."""
    events = [
        event
        for number in range(2_000)
        for event in (
            Event(0, MULTICAST, message_id(0, number), (0, 1)),
            Event(0, DELIVER, message_id(0, number)),
            Event(1, DELIVER, message_id(0, number)),
        )
    ]
    places = where(events, DELIVER, process=1)
    for first in random.Random(5).sample(range(0, len(places), 2), 100):
        events = swapped(events, places[first], places[first + 1])
    found = violations(events)
    assert found["acyclic order"].violations == 100
    assert found["pairwise order"].violations == 1
    assert found["fifo order"].violations == 100
