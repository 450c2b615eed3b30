"""A domain: the packets and the timers of one stack at one server."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults


class Carried(Packet):
    m: Message


class Obedient(Layer):
    """Does what its messages say: `set NAME TICKS`, `cancel NAME`, or else travel."""

    __slots__ = ("ended",)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Carried,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.ended: list[str] = []

    def on_cast(self, m: Message) -> None:
        assert isinstance(m.payload, bytes)
        match m.payload.decode().split():
            case ["set", name, ticks]:
                self.set_timer(name, int(ticks))
            case ["cancel", name]:
                self.cancel_timer(name)
            case _:
                self.send(m.destinations, Carried(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Carried)
        self.deliver(packet.m)

    def on_timer(self, name: str) -> None:
        self.ended.append(name)
        if name == "again":
            self.set_timer(name, 5)
        elif name == "jealous":
            self.cancel_timer("other")


class Hosted:
    def __init__(self, faults: Faults | None = None) -> None:
        self.layer = Obedient(Context(0, 3))
        codec = Codec([Obedient])
        self.domain = Domain(Stack([self.layer]), codec, 3, faults or Faults(), None)
        self.domain.start(0)

    def cast(self, now: int, payload: bytes) -> None:
        self.domain.cast(now, Message(message_id(0, 0), (0, 1, 2), payload))

    def end_timers(self, now: int) -> list[str]:
        before = len(self.layer.ended)
        some = self.domain.end_timers(now)
        ended = self.layer.ended[before:]
        assert some is bool(ended)
        return ended


# Packets.


def test_the_bytes_of_packets_that_travel_together() -> None:
    """Each: 9 bytes, depth 0, step 0; tag 0; 0.0 to {0,1,2} with one byte."""
    hosted = Hosted()
    hosted.cast(0, b"x")
    hosted.cast(0, b"y")
    assert hosted.domain.outgoing[1] == hosted.domain.outgoing[2]
    assert hosted.domain.outgoing[1].hex(" ") == (
        "09 00 00 00 00 00 03 00 01 02 01 78 09 00 00 00 00 00 03 00 01 02 01 79"
    )
    assert not hosted.domain.outgoing[0], "what goes to itself is not sent"
    assert [m.payload for m in hosted.domain.delivered] == [b"x", b"y"]


def test_packets_are_taken_from_where_they_begin() -> None:
    hosted, other = Hosted(), Hosted()
    hosted.cast(0, b"x")
    hosted.cast(0, b"y")
    other.domain.receive(0, 0, b"head" + bytes(hosted.domain.outgoing[1]), len(b"head"))
    assert [m.payload for m in other.domain.delivered] == [b"x", b"y"]
    assert other.domain.packets_received == 2


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("09 00 00 00 00 00 03 00 01 02 01", "a packet of 9 bytes is announced, with 8 left"),
        (
            "ff ff ff ff ff ff ff ff ff 7f 00 00 00",
            f"{(1 << 70) - 1} bytes is announced, with 1 left",
        ),
        ("08 00 00 00 00 00 03 00 01 02 01 78", "1 bytes are announced, with 0 left"),
        ("0a 00 00 00 00 00 03 00 01 02 01 78 00", "1 bytes are left over"),
    ],
)
def test_packets_that_do_not_end_where_they_should_are_refused(data: str, complaint: str) -> None:
    with pytest.raises(PeerError, match=complaint):
        Hosted().domain.receive(0, 1, bytes.fromhex(data), 0)


# Timers.


def test_a_timer_ends_once_and_not_too_early() -> None:
    hosted = Hosted()
    assert hosted.domain.earliest_timer() is None
    hosted.cast(100, b"set a 10")
    assert hosted.domain.earliest_timer() == 110
    assert hosted.end_timers(109) == []
    assert hosted.end_timers(110) == ["a"]
    assert hosted.end_timers(111) == []
    assert hosted.domain.earliest_timer() is None


def test_a_timer_may_be_put_off() -> None:
    hosted = Hosted()
    hosted.cast(0, b"set a 10")
    hosted.cast(5, b"set a 10")
    assert hosted.domain.earliest_timer() == 15
    assert hosted.end_timers(10) == []
    assert hosted.end_timers(15) == ["a"]


def test_a_timer_may_be_set_again_as_it_ends() -> None:
    hosted = Hosted()
    hosted.cast(0, b"set again 5")
    assert hosted.end_timers(7) == ["again"]
    assert hosted.domain.earliest_timer() == 12


def test_a_timer_that_ends_may_cancel_another_that_is_due() -> None:
    hosted = Hosted()
    hosted.cast(0, b"set jealous 5")
    hosted.cast(0, b"set other 5")
    assert hosted.end_timers(5) == ["jealous"]
    assert hosted.domain.earliest_timer() is None


def test_what_a_faulty_channel_holds_back_goes_when_a_timer_ends() -> None:
    hosted = Hosted(Faults(reordering=0.999999))
    hosted.cast(0, b"x")
    assert not hosted.domain.outgoing[1]
    hosted.cast(0, b"set a 10")
    hosted.end_timers(9)
    assert not hosted.domain.outgoing[1]
    hosted.end_timers(10)
    assert hosted.domain.outgoing[1].endswith(b"x")


names = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), names, st.integers(0, 6)),
        st.tuples(st.just("cancel"), names, st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(0, 4)),
        st.tuples(st.just("ask"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@given(steps=steps)
def test_the_earliest_timer_is_known_whatever_is_set_and_cancelled(
    steps: list[tuple[str, str, int]],
) -> None:
    hosted = Hosted()
    running: dict[str, int] = {}
    now = 0
    for step, name, ticks in steps:
        if step == "set":
            hosted.cast(now, f"set {name} {ticks}".encode())
            running[name] = now + ticks
        elif step == "cancel":
            hosted.cast(now, f"cancel {name}".encode())
            running.pop(name, None)
        elif step == "wait":
            now += ticks
            due = [name for name, end in running.items() if end <= now]
            assert sorted(hosted.end_timers(now)) == sorted(due)
            running = {name: end for name, end in running.items() if end > now}
        else:
            assert hosted.domain.earliest_timer() == min(running.values(), default=None)
    assert hosted.domain.earliest_timer() == min(running.values(), default=None)
