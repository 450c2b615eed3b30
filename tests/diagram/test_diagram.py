"""Space-time diagrams: lines, arrows, marks, and what is left out and said to be."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.diagram.drawing import Diagram, diagram
from flexgroup.diagram.events import TraceEvent, events_in_memory, events_of_run
from flexgroup.diagram.layout import arrange
from flexgroup.diagram.selection import (
    MOST_LANES,
    MOST_OTHERS,
    MOST_PACKETS,
    Moment,
    SentPacket,
    moments_of,
    packets_of,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.explorer.schedule import ScheduleStep, stage, write_trace
from flexgroup.worlds.explorer.scope import from_clients

from .elements import Element, parsed

CLIENT = 5


def multicast(message: str, *to: int, at: int = 0, step: int = 0, by: int = CLIENT) -> TraceEvent:
    return TraceEvent("multicast", by, step, at, message, to)


def send(message: str, by: int, to: int, at: int, step: int) -> TraceEvent:
    return TraceEvent("send", by, step, at, message, peer=to, packet="Start")


def receive(message: str, by: int, sender: int, sent: int, at: int, step: int) -> TraceEvent:
    return TraceEvent("receive", by, step, at, message, peer=sender, packet="Start", sent=sent)


def deliver(message: str, by: int, at: int, step: int) -> TraceEvent:
    return TraceEvent("deliver", by, step, at, message)


ONE_MESSAGE = [
    multicast("5.0", 0, 2),
    send("5.0", CLIENT, 0, 1, step=1),
    send("5.0", CLIENT, 2, 2, step=2),
    receive("5.0", 0, CLIENT, 1, 10, step=0),
    deliver("5.0", 0, 10, step=1),
    receive("5.0", 2, CLIENT, 2, 30, step=0),
    deliver("5.0", 2, 30, step=1),
]


def other(kind: str, by: int, at: int, step: int, detail: str = "", peer: int = 0) -> TraceEvent:
    return TraceEvent(kind, by, step, at, peer=peer, detail=detail or None)


EVERYTHING_ELSE = [
    other("timer", 0, 12, 2, '{"level":0,"name":"silence"}'),
    other("choice", 0, 13, 3, '{"level":0,"name":"order","chosen":1}'),
    other("suspect", 0, 14, 4, '{"suspected":true}', peer=3),
    other("suspect", 0, 15, 5, '{"suspected":false}', peer=3),
    other("view", 0, 16, 6, '{"members":[0,2],"number":4}'),
    other("crash", 3, 12, 0),
    other("recover", 3, 15, 1),
]


def drawn(events: list[TraceEvent], **options: object) -> Element:
    letters = {"5.0": "a", "6.0": "b"}
    found = diagram(events, letters, processes=CLIENT, **options)  # type: ignore[arg-type]
    return parsed(found.across).children[0]


def shown(found: Diagram) -> Element:
    """What is drawn of the events, without the legend."""
    return parsed(found.across).find("g", "events")[0]


def legend(found: Diagram) -> list[str]:
    return [words.text for words in parsed(found.across).find("text", "key")]


def titles(picture: Element, *classes: str) -> list[str]:
    events = picture.find("g", "events")[0]
    return [group.find("title")[0].text for group in events.find("g", *classes)]


def room(moment: Moment) -> float:
    return 15.0


def lanes(picture: Element) -> list[str]:
    return [label.text for label in picture.find("text", "lane")]


def test_there_is_a_line_for_each_process_that_takes_part_and_clients_come_first() -> None:
    assert lanes(drawn(ONE_MESSAGE)) == ["client 5", "process 0", "process 2"]


def test_there_is_an_arrow_for_each_packet_from_its_send_to_its_receive() -> None:
    assert titles(drawn(ONE_MESSAGE), "packet") == [
        "Start about a from client 5 (step 1) to process 0 (step 0)",
        "Start about a from client 5 (step 2) to process 2 (step 0)",
    ]


def test_multicasts_and_deliveries_carry_the_letter_of_the_message() -> None:
    picture = drawn(ONE_MESSAGE)
    events = picture.find("g", "events")[0]
    assert [letter.text for letter in events.find("text", "letter")] == ["a", "a", "a"]
    assert titles(picture, "multicast") == [
        "client 5 multicast a (message 5.0), step 0, time 0.000000000 s"
    ]


def test_the_witness_is_emphasised_with_its_steps() -> None:
    picture = drawn(ONE_MESSAGE, witness={(2, 1)})
    (emphasised,) = picture.find("g", "events")[0].find("g", "witness")
    assert emphasised.find("title")[0].text.startswith("process 2 delivered a")
    assert [step.text for step in picture.find("text", "step")] == ["step 1"]


def test_a_packet_can_be_the_witness_as_where_an_outsider_takes_part() -> None:
    picture = drawn(ONE_MESSAGE[:2] + ONE_MESSAGE[3:4], witness={(0, 0)})
    assert titles(picture, "witness") == [
        "process 0 received a packet about a (message 5.0), step 0, time 0.000000010 s"
    ]


def test_a_packet_that_nobody_received_ends_in_a_cross() -> None:
    picture = drawn(ONE_MESSAGE[:3])
    assert titles(picture, "lost") == [
        "Start about a from client 5 to process 0, not received",
        "Start about a from client 5 to process 2, not received",
    ]


def test_copies_of_a_packet_are_arrows_from_the_same_send() -> None:
    again = receive("5.0", 0, CLIENT, 1, 50, step=7)
    assert len(titles(drawn([*ONE_MESSAGE, again]), "packet")) == 3


def test_a_destination_that_did_not_deliver_is_marked_so() -> None:
    picture = drawn(ONE_MESSAGE[:5])
    assert titles(picture, "missing") == ["process 2 did not deliver a (message 5.0)"]


def test_a_packet_to_oneself_is_drawn_too() -> None:
    events = [
        multicast("0.0", 0, by=0),
        send("0.0", 0, 0, 1, step=1),
        receive("0.0", 0, 0, 1, 5, step=2),
        deliver("0.0", 0, 5, step=3),
    ]
    (path, _) = drawn(events).find("g", "packet")[0].find("path")
    assert "Q" in (path.attributes["d"] or "")


def test_without_packets_lines_join_multicasts_and_deliveries() -> None:
    events = [event for event in ONE_MESSAGE if event.kind in ("multicast", "deliver")]
    found = diagram(events, {"5.0": "a"}, processes=CLIENT)
    assert len(shown(found).find("line", "link")) == 2
    assert any("no packets recorded" in words for words in legend(found))


def test_messages_without_a_letter_get_the_next_one() -> None:
    picture = drawn([multicast("9.9", 0, by=9), multicast("6.0", 0, by=6, at=1)])
    events = picture.find("g", "events")[0]
    assert {letter.text for letter in events.find("text", "letter")} == {"b", "c"}


def test_both_ways_of_drawing_show_the_same() -> None:
    found = diagram(ONE_MESSAGE, {"5.0": "a"}, {(2, 1)}, CLIENT)
    across, down = (parsed(each).find("g", "events")[0] for each in (found.across, found.down))
    for kind in ("packet", "mark", "witness"):
        assert len(across.find("g", kind)) == len(down.find("g", kind))


def test_a_picture_says_what_it_is_to_those_who_cannot_see_it() -> None:
    picture = drawn(ONE_MESSAGE, title="The violation")
    assert picture.attributes["role"] == "img"
    assert picture.attributes["aria-label"] == (
        "The violation: messages a, b; client 5, process 0, process 2; 2 packets"
    )


def test_nothing_in_a_trace_gets_out_of_the_picture() -> None:
    hostile = TraceEvent("send", 0, 0, 0, "<script>", packet='"><script>alert(1)</script>', peer=1)
    found = diagram([hostile], {})
    assert not parsed(found.across).find("script")


def crowd(packets: int) -> list[TraceEvent]:
    events = [multicast("5.0", 0)]
    for number in range(packets):
        events.append(send("5.0", CLIENT, 0, 2 * number, step=2 * number + 1))
        events.append(receive("5.0", 0, CLIENT, 2 * number + 1, 2 * number + 1, step=2 * number))
    return [*events, deliver("5.0", 0, 2 * packets, step=2 * packets)]


def test_many_packets_are_thinned_and_the_picture_says_so() -> None:
    found = diagram(crowd(400), {"5.0": "a"}, {(0, 800)}, CLIENT)
    assert len(shown(found).find("g", "packet")) == found.packets == MOST_PACKETS
    assert f"{MOST_PACKETS} of 400 packets are drawn" in " ".join(found.notes)


def test_the_packets_next_to_the_witness_stay() -> None:
    found = parsed(diagram(crowd(400), {"5.0": "a"}, {(0, 800)}, CLIENT).across)
    assert any("to process 0 (step 798)" in title for title in titles(found, "packet"))
    assert not any("to process 0 (step 0)" in title for title in titles(found, "packet"))


def test_of_very_many_processes_some_are_drawn_and_the_picture_says_so() -> None:
    everywhere = [multicast("9999.0", *range(1000), by=9999)]
    everywhere += [deliver("9999.0", process, 1, 0) for process in range(1000)]
    found = diagram(everywhere, {}, {(999, 0)})
    names = lanes(parsed(found.across))
    assert len(names) == MOST_LANES
    assert {"process 999", "process 9999"} <= set(names)
    assert f"{MOST_LANES} of 1001 processes are drawn." in found.notes


def test_nothing_can_be_drawn_too() -> None:
    assert diagram([], {}).packets == 0


@pytest.mark.parametrize(
    ("classes", "title", "inside"),
    [
        (("timer",), "process 0 saw its timer 'silence' run out, step 2", ""),
        (("choice",), "process 0 chose option 1 of 'order', step 3", "1"),
        (("suspect",), "process 0 suspected process 3, step 4", "3"),
        (("trust",), "process 0 trusted process 3 again, step 5", "3"),
        (("view",), "process 0 installed view 4 of {0,2}, step 6", "4"),
        (("crash",), "process 3 crashed, step 0", ""),
        (("recover",), "process 3 recovered, step 1", ""),
    ],
)
def test_every_kind_of_event_has_a_mark_of_its_own(
    classes: tuple[str, ...], title: str, inside: str
) -> None:
    found = diagram([*ONE_MESSAGE, *EVERYTHING_ELSE], {"5.0": "a"}, processes=CLIENT, timed=False)
    mark = shown(found).find("g", "mark", *classes)[0]
    assert mark.find("title")[0].text == title
    assert "".join(letter.text for letter in mark.find("text", "letter")) == inside


def test_a_view_that_a_process_was_told_of_is_not_said_to_be_installed() -> None:
    told = other("view", 0, 16, 6, '{"members":[0,2],"number":4,"told":true}')
    found = diagram([*ONE_MESSAGE, told], {"5.0": "a"}, timed=False)
    mark = shown(found).find("g", "mark", "view")[0]
    assert mark.find("title")[0].text == "process 0 was told of view 4 of {0,2}, step 6"


def test_the_legend_says_what_occurs_and_nothing_else() -> None:
    everything = diagram([*ONE_MESSAGE, *EVERYTHING_ELSE], {"5.0": "a"}, processes=CLIENT)
    assert legend(everything) == [
        "message 5.0 to {0,2}",
        "multicast",
        "delivery",
        "crash, and not running",
        "recovery",
        "view installed, with its number",
        "timer ran out",
        "choice, with the option taken",
        "suspicion, with the suspect's number",
        "trusted again",
        "packet",
    ]
    assert legend(diagram([deliver("5.0", 0, 1, step=0)])) == ["message 5.0", "delivery"]


def test_a_line_shows_where_a_process_was_down() -> None:
    picture = drawn([*ONE_MESSAGE, *EVERYTHING_ELSE])
    assert [line.attributes["class"] for line in picture.find("line", "down")] == ["lane down"]
    assert len(drawn([*ONE_MESSAGE, EVERYTHING_ELSE[-2]]).find("line", "down")) == 1


def test_what_happened_between_and_is_not_drawn_is_said_to_be_missing() -> None:
    """Steps have no gaps, so a gap is a number of events that somebody left out."""
    found = diagram([multicast("5.0", 0), deliver("5.0", 0, 5, step=3), deliver("5.0", 0, 9, 9)])
    segments = [group for group in shown(found).find("g") if group.find("line", "elided")]
    assert [group.find("title")[0].text for group in segments] == [
        "3 events are not shown",
        "5 events are not shown",
    ]
    assert "other events, not shown" in legend(found)


def test_in_a_run_that_was_cut_what_is_missing_may_have_been_under_way() -> None:
    found = diagram(ONE_MESSAGE[:5], {"5.0": "a"}, processes=CLIENT, complete=False)
    assert not shown(found).find("g", "missing")
    assert not shown(found).find("g", "lost")
    assert len(shown(found).find("g", "unfinished")) == 1


def test_who_crashed_for_good_misses_no_delivery() -> None:
    crashed = [*ONE_MESSAGE[:5], other("crash", 2, 40, 0)]
    assert titles(drawn(crashed), "missing") == []
    assert len(titles(drawn([*crashed, other("recover", 2, 50, 1)]), "missing")) == 1


def test_a_copy_has_two_tips_and_says_what_it_is() -> None:
    found = diagram([*ONE_MESSAGE, receive("5.0", 0, CLIENT, 1, 50, step=2)], {"5.0": "a"})
    (copy,) = shown(found).find("g", "copy")
    assert copy.find("title")[0].text.endswith(", a copy")
    assert (copy.find("path")[1].attributes["d"] or "").count("M") == 2
    assert "its copy" in legend(found)


def test_other_messages_than_those_of_the_witness_are_left_out() -> None:
    both = [*ONE_MESSAGE, multicast("6.0", 1, by=6), deliver("6.0", 1, 40, step=0)]
    assert lanes(parsed(diagram(both, witness={(2, 1)}).across)) == [
        "process 0",
        "process 2",
        "process 5",
    ]
    assert len(lanes(parsed(diagram(both).across))) == 5


def flush(by: int, to: int, at: int, step: int) -> TraceEvent:
    return TraceEvent("send", by, step, at, peer=to, packet="Flush")


def flushed(by: int, sender: int, sent: int, at: int, step: int) -> TraceEvent:
    return TraceEvent("receive", by, step, at, peer=sender, packet="Flush", sent=sent)


def test_a_suspicion_before_the_only_multicast_is_drawn_with_what_it_caused() -> None:
    """Nothing about a message happens at the process that suspects another."""
    events = [
        other("suspect", 0, 0, 0, '{"suspected":true}', peer=1),
        flush(0, 1, 0, step=1),
        flushed(1, 0, 1, 1, step=0),
        multicast("1.0", 1, at=2, step=1, by=1),
    ]
    picture = parsed(diagram(events, {"1.0": "a"}, {(1, 1)}, 2).across)
    assert lanes(picture) == ["process 0", "process 1"]
    assert len(titles(picture, "suspect")) == 1
    assert titles(picture, "packet") == [
        "Flush about no message from process 0 (step 1) to process 1 (step 0)"
    ]


def test_a_packet_that_answers_what_a_fault_caused_is_drawn_and_an_earlier_one_is_not() -> None:
    events = [
        flush(1, 0, 0, step=0),
        flushed(0, 1, 0, 1, step=0),
        other("suspect", 0, 2, 1, '{"suspected":true}', peer=2),
        flush(0, 1, 2, step=2),
        flushed(1, 0, 2, 3, step=1),
        flush(1, 0, 3, step=2),
        flushed(0, 1, 2, 4, step=3),
        multicast("1.0", 1, at=5, step=3, by=1),
    ]
    assert titles(parsed(diagram(events, processes=3).across), "packet") == [
        "Flush about no message from process 0 (step 2) to process 1 (step 1)",
        "Flush about no message from process 1 (step 2) to process 0 (step 3)",
    ]


def test_packets_between_processes_that_have_no_part_are_left_out_and_the_picture_says_so() -> None:
    aside = [flush(3, 4, 5, step=0), flushed(4, 3, 0, 6, step=0)]
    found = diagram([*ONE_MESSAGE, *aside], {"5.0": "a"}, processes=CLIENT)
    assert lanes(parsed(found.across)) == ["client 5", "process 0", "process 2"]
    assert "1 packet from or to processes without a line is left out." in found.notes


def test_timers_meanwhile_are_drawn_and_others_are_not() -> None:
    long_ago = [other("timer", 0, -5, 0, '{"name":"early"}')]
    picture = drawn([*long_ago, deliver("5.0", 0, 3, step=1), deliver("5.0", 2, 9, step=0)])
    assert titles(picture, "timer") == []
    alone = diagram([*long_ago, deliver("5.0", 0, 3, step=1)])
    assert (
        "1 timer or choice before the first or after the last event about a message is left out."
    ) in alone.notes
    many = [other("timer", 0, 3, 2 + i) for i in range(MOST_OTHERS + 1)]
    found = diagram([deliver("5.0", 0, 3, step=1), *many, other("view", 0, 900, 900)])
    assert len(shown(found).find("g", "timer")) == MOST_OTHERS - 1
    assert len(shown(found).find("g", "view")) == 1
    assert f"{MOST_OTHERS} of {MOST_OTHERS + 2} suspicions" in " ".join(found.notes)


def test_an_arrow_makes_way_for_the_marks_between_its_ends() -> None:
    through = [
        multicast("5.0", 2, by=0),
        send("5.0", 0, 2, 0, step=1),
        deliver("6.0", 1, 1, step=0),
        receive("5.0", 2, 0, 1, 2, step=0),
    ]
    (shaft, _) = shown(diagram(through)).find("g", "packet")[0].find("path")
    assert "Q" in (shaft.attributes["d"] or "")


def test_a_picture_of_its_own_carries_both_themes_and_leaves_the_page_around_it_alone() -> None:
    document = diagram(ONE_MESSAGE, {"5.0": "a"}, title="Fig. <1>").standalone
    root = ElementTree.fromstring(document)
    inside = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{inside}title") == "Fig. <1>"
    style = root.findtext(f"{inside}style") or ""
    assert "prefers-color-scheme: dark" in style
    assert "--paper" in style
    assert ":root" not in style
    rules = re.sub(r"@media[^{]*\{|/\*.*?\*/", "", style)
    for selectors in re.findall(r"([^{}]+)\{", rules):
        for selector in selectors.split(","):
            assert "space-time" in selector


def test_a_run_in_memory_and_the_same_in_files_give_the_same_events(tmp_path: Path) -> None:
    scope = from_clients(2, (0, 1), (0, 1), fifo=False)
    plan = parse_stack("skeen")
    run = tuple(ScheduleStep("cast", 2 + number, number=number) for number in range(2))
    collector = Collector()
    recorder = Recorder(collector)
    stage(plan, scope, run, recorder)
    recorder.flush()
    write_trace(plan, scope, run, tmp_path, "same")
    events = events_in_memory(collector)
    assert {event.kind for event in events} == {"multicast", "send"}
    assert set(events) == set(events_of_run(tmp_path, "same"))


PLACES = st.tuples(st.integers(0, 3), st.integers(0, 6))


@settings(max_examples=50, deadline=None)
@given(
    journeys=st.lists(st.tuples(PLACES, PLACES), max_size=8, unique_by=lambda pair: pair[1]),
    times=st.lists(st.integers(0, 20), min_size=28, max_size=28),
    upright=st.booleans(),
)
def test_steps_never_run_backwards_whatever_the_clocks_say(
    journeys: list[tuple[tuple[int, int], tuple[int, int]]], times: list[int], upright: bool
) -> None:
    """Also in traces that contradict themselves, where packets arrive before they are sent."""

    def time(place: tuple[int, int]) -> int:
        return times[place[0] * 7 + place[1]]

    events = []
    for start, end in journeys:
        if start != end:
            events.append(send("0.0", *start[:1], end[0], time(start), start[1]))
            events.append(receive("0.0", end[0], start[0], start[1], time(end), end[1]))
    unique = list({event.place: event for event in events}.values())
    packets = packets_of(unique)
    moments = moments_of(unique)
    places = arrange(moments, packets, room)
    for (one, at), (other, later) in pairwise(zip(moments, places, strict=True)):
        if one.process == other.process:
            assert at < later
    diagram(unique, {}, {(0, 0)} if upright else set())


def test_a_send_is_left_of_its_receive_although_a_clock_is_wrong() -> None:
    early = [send("5.0", 0, 1, at=1000, step=0), receive("5.0", 1, 0, 0, at=10, step=0)]
    moments = moments_of(early)
    sent, received = arrange(moments, packets_of(early), room)
    assert sent < received


def test_what_one_handler_did_is_one_moment() -> None:
    events = [
        receive("5.0", 0, CLIENT, 1, 10, step=4),
        send("5.0", 0, 1, 10, step=5),
        deliver("5.0", 0, 10, step=6),
        deliver("6.0", 0, 10, step=7),
    ]
    assert [len(moment.events) for moment in moments_of(events)] == [3, 1]


def test_a_receive_finds_its_send_by_peer_and_step() -> None:
    events = [
        send("5.0", 0, 1, 0, step=0),
        send("5.0", 0, 1, 0, step=1),
        receive("5.0", 1, 0, 1, 5, step=0),
        receive("5.0", 1, 0, 0, 6, step=1),
    ]
    steps = {(p.send.step, p.receive.step) for p in packets_of(events) if p.send and p.receive}
    assert steps == {(1, 0), (0, 1)}
    assert SentPacket(None, events[2]).ends == [events[2]]


@pytest.mark.parametrize(
    ("first", "last", "label"),
    [
        (8_520_000, 15_530_000, "8.52 ms"),
        (193_250, 308_120, "193.25 µs"),
        (1_700_000_000_000_000_000, 1_700_000_000_000_250_000, "+0.00 µs"),
    ],
)
def test_times_are_those_of_the_run_or_from_the_first_event_if_that_is_long_ago(
    first: int, last: int, label: str
) -> None:
    picture = drawn([multicast("5.0", 0, at=first), deliver("5.0", 0, last, 0)])
    assert picture.find("text", "time")[0].text == label


def test_no_arrow_leaves_the_picture() -> None:
    picture = drawn([*ONE_MESSAGE, *EVERYTHING_ELSE])
    width, height = (float(picture.attributes[name] or 0) for name in ("width", "height"))
    events = picture.find("g", "events")[0]
    for path in [path for packet in events.find("g", "packet") for path in packet.find("path")]:
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.attributes["d"] or ""):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
