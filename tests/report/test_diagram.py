"""Space-time diagrams: lines, arrows, marks, and what is left out and said to be."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.report.diagram import diagram
from flexgroup.report.moments import Event, Packet, Spacing, arrange, moments_of, packets_of
from flexgroup.report.scene import MOST_LANES, MOST_PACKETS

from .elements import Element, parsed

CLIENT = 5


def multicast(message: str, *to: int, at: int = 0, step: int = 0, by: int = CLIENT) -> Event:
    return Event("multicast", by, step, at, message, to)


def send(message: str, by: int, to: int, at: int, step: int) -> Event:
    return Event("send", by, step, at, message, peer=to, packet="Start")


def receive(message: str, by: int, sender: int, sent: int, at: int, step: int) -> Event:
    return Event("receive", by, step, at, message, peer=sender, packet="Start", sent=sent)


def deliver(message: str, by: int, at: int, step: int) -> Event:
    return Event("deliver", by, step, at, message)


ONE_MESSAGE = [
    multicast("5.0", 0, 2),
    send("5.0", CLIENT, 0, 1, step=1),
    send("5.0", CLIENT, 2, 2, step=2),
    receive("5.0", 0, CLIENT, 1, 10, step=0),
    deliver("5.0", 0, 10, step=1),
    receive("5.0", 2, CLIENT, 2, 30, step=0),
    deliver("5.0", 2, 30, step=1),
]


def drawn(events: list[Event], **options: object) -> Element:
    letters = {"5.0": "a", "6.0": "b"}
    found = diagram(events, letters, processes=CLIENT, **options)  # type: ignore[arg-type]
    return parsed(found.across).children[0]


def titles(picture: Element, *classes: str) -> list[str]:
    return [group.find("title")[0].text for group in picture.find("g", *classes)]


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
    assert [letter.text for letter in picture.find("text", "letter")] == ["a", "a", "a"]
    assert titles(picture, "multicast") == [
        "client 5 multicast a (message 5.0), step 0, time 0.000000000 s"
    ]


def test_the_witness_is_emphasised_with_its_steps() -> None:
    picture = drawn(ONE_MESSAGE, witness={(2, 1)})
    (emphasised,) = picture.find("g", "witness")
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
        "Start about a from client 5, not received",
        "Start about a from client 5, not received",
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
    assert len(parsed(found.across).find("line", "link")) == 2
    assert any("No packets" in note for note in found.notes)


def test_messages_without_a_letter_get_the_next_one() -> None:
    picture = drawn([multicast("9.9", 0, by=9), multicast("6.0", 0, by=6, at=1)])
    assert {letter.text for letter in picture.find("text", "letter")} == {"b", "c"}


def test_both_ways_of_drawing_show_the_same() -> None:
    found = diagram(ONE_MESSAGE, {"5.0": "a"}, {(2, 1)}, CLIENT)
    across, down = parsed(found.across), parsed(found.down)
    for kind in ("packet", "mark", "witness"):
        assert len(across.find("g", kind)) == len(down.find("g", kind))


def test_a_picture_says_what_it_is_to_those_who_cannot_see_it() -> None:
    picture = drawn(ONE_MESSAGE, subject="The violation")
    assert picture.attributes["role"] == "img"
    assert picture.attributes["aria-label"] == (
        "The violation: messages a, b; client 5, process 0, process 2; 2 packets"
    )


def test_nothing_in_a_trace_gets_out_of_the_picture() -> None:
    hostile = Event("send", 0, 0, 0, "<script>", packet='"><script>alert(1)</script>', peer=1)
    found = diagram([hostile], {})
    assert not parsed(found.across).find("script")


def crowd(packets: int) -> list[Event]:
    events = [multicast("5.0", 0)]
    for number in range(packets):
        events.append(send("5.0", CLIENT, 0, 2 * number, step=2 * number + 1))
        events.append(receive("5.0", 0, CLIENT, 2 * number + 1, 2 * number + 1, step=2 * number))
    return [*events, deliver("5.0", 0, 2 * packets, step=2 * packets)]


def test_many_packets_are_thinned_and_the_picture_says_so() -> None:
    found = diagram(crowd(400), {"5.0": "a"}, {(0, 800)}, CLIENT)
    assert len(parsed(found.across).find("g", "packet")) == found.packets == MOST_PACKETS
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
    places = arrange(moments, packets, set(), Spacing())
    for (one, at), (other, later) in pairwise(zip(moments, places, strict=True)):
        if one.process == other.process:
            assert at < later
    diagram(unique, {}, {(0, 0)} if upright else set())


def test_a_send_is_left_of_its_receive_although_a_clock_is_wrong() -> None:
    early = [send("5.0", 0, 1, at=1000, step=0), receive("5.0", 1, 0, 0, at=10, step=0)]
    moments = moments_of(early)
    sent, received = arrange(moments, packets_of(early), set(), Spacing())
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
    assert Packet(None, events[2]).ends == [events[2]]


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
    picture = drawn(ONE_MESSAGE)
    width, height = (float(picture.attributes[name] or 0) for name in ("width", "height"))
    for path in picture.find("path"):
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.attributes["d"] or ""):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
