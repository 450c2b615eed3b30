"""Following a run finds what checking it afterwards finds, and keeps only what is in flight."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.message import message_id
from flexgroup.pipeline.watch.follower import Follower
from flexgroup.pipeline.watch.reassembly import ARRIVING, RefusedError
from flexgroup.pipeline.watch.snapshot import from_bytes, to_bytes
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.history import lost_since
from flexgroup.trace.schema import CRASH, DELIVER, MULTICAST, RECOVER, VIEW

from ..properties.histories import Event, correct_events, events_of, history_of, swapped, where
from .watching import displaced, followed, parts_of, rows_of

FEW = 6
"""Deliveries to hold that make followers of small runs give up waiting."""


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """A correct run, with any number of events moved, lost, copied, ..."""
    processes = draw(st.integers(2, 4))
    in_flight = draw(st.integers(0, 4))
    sent: Counter[int] = Counter()
    events: list[Event] = []
    waiting: list[Event] = []
    for number in range(draw(st.integers(0, 12)) + in_flight):
        origin = draw(st.integers(0, processes))
        to = tuple(draw(st.sets(st.integers(0, processes - 1), min_size=1)))
        waiting.append(Event(origin, MULTICAST, message_id(origin, sent[origin]), to))
        sent[origin] += 1
        events.append(waiting[-1])
        if number >= in_flight:
            oldest = waiting.pop(0)
            events += [Event(process, DELIVER, oldest.message) for process in oldest.others]
    for _ in range(draw(st.integers(0, 8))):
        if not events:
            break
        place = draw(st.integers(0, len(events) - 1))
        target = draw(st.integers(0, len(events) - 1))
        process = draw(st.integers(0, processes - 1))
        change = draw(st.sampled_from(("move", "move", "lose", "copy", "elsewhere", "crash")))
        if change == "move":
            events.insert(target, events.pop(place))
        elif change == "lose":
            events.pop(place)
        elif change == "copy":
            events.insert(target, events[place])
        elif change == "crash":
            events[place:place] = [Event(process, CRASH), Event(process, RECOVER)]
        elif events[place].kind == DELIVER:
            events[place] = replace(events[place], process=process)
    everybody = tuple(range(processes))
    for number in range(draw(st.sampled_from((0, 0, 2, 3)))):
        for process in everybody:
            place = len(events) * number // 3 + draw(st.integers(0, 3))
            events.insert(place, Event(process, VIEW, number, everybody))
    return events


@settings(max_examples=100, deadline=None)
@given(
    events=runs(),
    complete=st.booleans(),
    size=st.sampled_from((1, 3, 20)),
    seed=st.integers(0, 1 << 16),
    hold=st.sampled_from((1000, 1000, FEW)),
    lost=st.sets(st.integers(0, 3), max_size=2),
    processes=st.sampled_from((None, 4)),
)
def test_the_same_is_found_as_by_checking_afterwards(
    events: list[Event],
    complete: bool,
    size: int,
    seed: int,
    hold: int,
    lost: set[int],
    processes: int | None,
) -> None:
    """In whatever order parts arrive, and however they are batched."""
    chance = random.Random(seed)
    parts = displaced(parts_of(rows_of(events), size), chance)
    batches = []
    while parts:
        count = chance.randint(1, 4)
        batches.append(pa.concat_tables(parts[:count]))
        del parts[:count]
    follower, told, final = followed(batches, complete, hold, sorted(lost), processes)
    counted = {verdict.property: verdict.violations for verdict in told}
    history = history_of(events, 4, complete)
    since = lost_since(sorted(lost), history.multicasts.message)
    for verdict in check(replace(history, lost=since), WATCHED):
        name = verdict.property
        if name not in follower.in_doubt:
            assert final[name].outcome is verdict.outcome, name
            assert counted.get(name, 0) == final[name].violations == verdict.violations, name
    assert all(verdict.outcome is Outcome.VIOLATED and verdict.witness for verdict in told)


def kept_at_most(messages: int) -> tuple[int, int]:
    """The most rows that were kept of a correct run of so many messages, and the most bytes."""
    parts = parts_of(rows_of(correct_events(messages, 8, seed=3)), 200)
    follower = Follower("long")
    kept = []
    for part in parts:
        assert follower.take(part) == []
        kept.append((follower.kept, len(to_bytes(follower))))
    rows, size = zip(*kept, strict=True)
    return max(rows), max(size)


def test_the_state_does_not_grow_with_the_length_of_the_run() -> None:
    rows, size = kept_at_most(1_000)
    rows_of_longer, size_of_longer = kept_at_most(10_000)
    assert rows_of_longer <= 1.2 * rows
    assert size_of_longer <= 1.2 * size


def without_process(events: list[Event], process: int) -> list[Event]:
    """The same run, in which a process crashed at the beginning."""
    rest = [event for event in events if event.process != process or event.kind == MULTICAST]
    return [Event(process, CRASH), *rest]


def test_what_waits_for_a_crashed_process_is_kept_within_bounds() -> None:
    """Of the messages to it only their own rows are kept, not all that was delivered since."""
    events = without_process(correct_events(5_000, 8, seed=4), process=2)
    hold, follower = 500, Follower("crash", 500)
    for part in parts_of(rows_of(events), 200):
        assert follower.take(part) == []
    to_crashed = [event for event in events if event.kind == MULTICAST and 2 in event.others]
    rows_of_those = sum(len(event.others) for event in to_crashed)
    assert follower.kept <= hold + rows_of_those + 200
    assert follower.in_doubt == {"causal order", "real-time order", "virtual synchrony"}
    assert follower.finish(complete=True)[0] == []


def test_a_circle_is_told_with_the_batch_that_closes_it() -> None:
    events = correct_events(300, 8, seed=5)
    sets = {event.message: set(event.others) for event in events if event.kind == MULTICAST}
    places = where(events, DELIVER, process=3)
    one, other = next(
        (one, other)
        for one, other in pairwise(places[30:])
        if len(sets[events[one].message] & sets[events[other].message]) > 1
    )
    events = swapped(events, one, other)
    rows = rows_of(events)
    follower = Follower("circle")
    told = []
    for first in range(0, rows.num_rows, 50):
        told.append({verdict.property for verdict in follower.take(rows.slice(first, 50))})
    times = rows.column("time").to_pylist()
    last = max(
        times.index(place)
        for place in where(events, DELIVER)
        if events[place].message in (events[one].message, events[other].message)
    )
    first_told = next(number for number, names in enumerate(told) if "acyclic order" in names)
    assert first_told <= last // 50
    assert sum("acyclic order" in names for names in told) == 1


def batches(*stories: str) -> list[pa.Table]:
    """Rows that arrive in batches; each line of the stories is an event, told in order."""
    events = [events_of(story) for story in stories]
    rows = rows_of([event for batch in events for event in batch])
    ends = [sum(map(len, events[: number + 1])) for number in range(len(events))]
    return [
        rows.slice(end - len(batch), len(batch)) for end, batch in zip(ends, events, strict=True)
    ]


def told_by_batch(*stories: str) -> list[set[str]]:
    """What each batch, told as a story, brings to light of orders that reach far back."""
    follower = Follower("told")
    follower.processes = 3
    far = {"causal order", "real-time order", "virtual synchrony"}
    return [
        {verdict.property for verdict in follower.take(batch)} & far for batch in batches(*stories)
    ]


def test_an_answer_that_overtakes_the_question_is_told_as_it_happens() -> None:
    """Also through a message that all its destinations have delivered long ago."""
    told = told_by_batch(
        "3 multicast 3.0 to 0,2\n0 deliver 3.0\n0 multicast 0.0 to 1\n1 deliver 0.0",
        "0 multicast 0.1 to 0\n0 deliver 0.1\n1 multicast 1.0 to 1,2\n1 deliver 1.0",
        "2 deliver 1.0",
        "2 deliver 3.0",
    )
    assert told == [set(), set(), {"causal order"}, {"real-time order"}]


def test_an_order_against_real_time_is_told_as_it_happens() -> None:
    """Though one of the messages is forgotten, and so is what stands between them."""
    told = told_by_batch(
        "3 multicast 3.0 to 1\n1 deliver 3.0\n4 multicast 4.0 to 0,2\n0 deliver 4.0",
        "5 multicast 5.0 to 2\n2 deliver 5.0",
        "3 multicast 3.1 to 1\n1 deliver 3.1",
        "2 deliver 4.0",
    )
    assert told == [set(), set(), set(), {"real-time order"}]


def test_a_message_that_is_missing_in_a_view_is_told_as_it_happens() -> None:
    """When it is known that the process has left the view without it."""
    first, second = (
        "\n".join(f"{process} view {number} of 0,1,2" for process in range(3)) for number in (1, 2)
    )
    told = told_by_batch(
        f"{first}\n3 multicast 3.0 to 0,1\n0 deliver 3.0\n3 multicast 3.1 to 0,1,2",
        f"{second}\n0 deliver 3.1\n1 deliver 3.1\n2 deliver 3.1",
        "3 multicast 3.2 to 2",
        "2 deliver 3.2\n1 deliver 3.0",
    )
    assert ["virtual synchrony" in names for names in told] == [False, False, True, False]


def test_views_that_everybody_has_left_are_forgotten() -> None:
    follower = Follower("told")
    follower.processes = 3
    kept = []
    for number in range(40):
        views = "\n".join(f"{process} view {number} of 0,1,2" for process in range(3))
        deliveries = "\n".join(f"{process} deliver 3.{number}" for process in range(3))
        story = f"{views}\n3 multicast 3.{number} to 0,1,2\n{deliveries}"
        events = events_of(story)
        rows = rows_of(events).to_pylist()
        for row in rows:
            row["step"] += 10 * number
            row["time"] += 100 * number
        assert follower.take(pa.Table.from_pylist(rows, ARRIVING)) == []
        kept.append((follower.kept, len(to_bytes(follower))))
    assert kept[-1][0] <= kept[9][0]
    assert kept[-1][1] <= 1.2 * kept[9][1]
    assert follower.finish(complete=True)[1][-1].outcome is Outcome.HOLDS


def test_the_causes_of_a_message_are_waited_for() -> None:
    """Its sender may have delivered something before it multicast it, which is still to come."""
    events = events_of(
        "3 multicast 3.0 to 0,1\n0 deliver 3.0\n0 multicast 0.0 to 1\n1 deliver 0.0\n1 deliver 3.0"
    )
    rows = rows_of(events)
    late = pa.array([place == 1 for place in range(rows.num_rows)])
    follower = Follower("told")
    assert follower.take(rows.filter(pa.compute.invert(late))) == []
    told = {verdict.property: verdict.violations for verdict in follower.take(rows.filter(late))}
    assert told["causal order"] == 1


def test_a_delivery_may_arrive_before_its_multicast() -> None:
    _, told, final = followed(batches("1 deliver 0.0", "0 multicast 0.0 to 1"))
    assert [verdict.property for verdict in told] == ["real-time order"]
    assert final["integrity"].outcome is Outcome.HOLDS


def test_that_nobody_multicast_a_message_is_told_at_the_end() -> None:
    follower = Follower("told")
    [rows] = batches("1 deliver 0.0")
    assert follower.take(rows) == []
    [new], _ = follower.finish(complete=False)
    assert "which nobody multicast" in new.explanation


def test_a_message_long_forgotten_is_not_delivered_again() -> None:
    """Whether it was its destination is forgotten, so nothing is said about the orders."""
    story = "0 multicast 0.0 to 0,1\n0 deliver 0.0\n1 deliver 0.0"
    between = "3 multicast 3.0 to 3\n3 deliver 3.0"
    _, told, final = followed(batches(story, between, "1 deliver 0.0\n2 deliver 0.0"))
    assert [(verdict.property, verdict.violations) for verdict in told] == [("integrity", 2)]
    assert "delivered a (step 1) again, or is no destination of it" in told[0].explanation
    assert final["acyclic order"].outcome is Outcome.UNKNOWN
    assert final["fifo order"].outcome is Outcome.HOLDS


def test_missing_deliveries_of_a_run_cut_short_are_unknown() -> None:
    _, told, final = followed(batches("0 multicast 0.0 to 1"), complete=False)
    assert told == []
    assert final["validity"].outcome is Outcome.UNKNOWN


def test_a_later_part_waits_for_the_earlier_ones() -> None:
    rows = rows_of(events_of("0 multicast 0.0 to 1\n0 multicast 0.1 to 1\n1 deliver 0.0"))
    first, second, delivery = parts_of(rows, 1)
    follower = Follower("told")
    follower.take(pa.concat_tables([second, delivery]))
    assert follower.multicasts == 0
    follower.take(first)
    assert follower.multicasts == 2


def by(writer: str, part: pa.Table) -> pa.Table:
    """A part as one of several writers has written it."""
    place = ARRIVING.get_field_index("writer")
    return part.set_column(place, "writer", pa.array([writer] * part.num_rows, pa.string()))


def test_parts_of_several_writers_wait_only_for_their_own() -> None:
    zero = parts_of(rows_of(events_of("0 multicast 0.0 to 1\n0 multicast 0.1 to 1")), 1)
    one = parts_of(rows_of(events_of("1 multicast 1.0 to 0\n1 multicast 1.1 to 0")), 1)
    follower = Follower("told")
    follower.take(pa.concat_tables([by("s0", zero[1]), by("s1", one[0]), by("s1", one[1])]))
    assert follower.multicasts == 2
    follower = Follower.restored(from_bytes(to_bytes(follower)))
    with pytest.raises(RefusedError, match="part 0 of the multicast events of s0 is missing"):
        follower.finish(complete=True)
    follower.take(by("s0", zero[0]))
    assert follower.multicasts == 4


def test_a_part_that_never_came_is_noticed_at_the_end() -> None:
    rows = rows_of(events_of("0 multicast 0.0 to 1\n0 multicast 0.1 to 1"))
    follower = Follower("told")
    follower.take(parts_of(rows, 1)[1])
    with pytest.raises(RefusedError, match="part 0 of its multicast events is missing"):
        follower.finish(complete=True)


def test_files_without_numbers_have_to_come_in_order() -> None:
    earlier, later = batches("1 deliver 0.0", "1 deliver 0.1")
    follower = Follower("told")
    follower.take(later)
    with pytest.raises(RefusedError, match=r"step 0 of process 1 \(deliver\) came after step 1"):
        follower.take(earlier)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"message": -1}, "without origin and seq"),
        ({"process": 3}, "process 3 multicast message 0.0, whose origin is another process"),
    ],
)
def test_rows_that_no_trace_has_are_refused(change: dict[str, int], complaint: str) -> None:
    [row] = rows_of(events_of("0 multicast 0.0 to 1")).to_pylist()
    with pytest.raises(RefusedError, match=complaint):
        Follower("told").take(pa.Table.from_pylist([row | change], ARRIVING))
