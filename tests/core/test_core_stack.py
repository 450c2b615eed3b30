"""A stack passes messages between its layers, and effects to the world, in order."""

from __future__ import annotations

from typing import ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.guarantees import NOTHING, Guarantee, Guarantees, names
from flexgroup.core.layer import Context, Layer, Notice, Stored, Suspect, Trust, View
from flexgroup.core.message import Message, Packet, name_of, origin_of, seq_of
from flexgroup.core.stack import Stack, guarantees_above

from .small_layers import Mark, Note, Plain, asked, log_of, message, plain_stack, sent, told

# Effects happen after the handler, in order.


class Busy(Plain):
    """Asks for one of everything in each handler, and looks at what has happened meanwhile."""

    __slots__ = ()

    def on_cast(self, m: Message) -> None:
        self.save(Mark(1))
        self.send((1, 2), Note(m, 1))
        self.deliver(m)
        self.set_timer("again", 5)
        self.cancel_timer("other")
        self.offer("coin", 2)
        self.save(Mark(2))
        assert len(self.effects) == 7


@pytest.mark.parametrize("levels", [1, 2])
def test_effects_wait_until_the_handler_returns_and_keep_their_order(levels: int) -> None:
    """Below, a layer in between changes the levels and who sends, not the order."""
    stack = Stack([*(Plain(Context(0, 3)) for _ in range(levels - 1)), Busy(Context(0, 3))])
    stack.start()
    assert asked(stack) == []
    stack.cast(message(0, 0, 1, 2))
    top = levels - 1
    assert asked(stack) == [
        f"save Mark(number=1) of level {top}",
        *(["send Note to (1, 2)"] if levels == 1 else []),
        "deliver 0.0",
        f"set timer again of level {top} to 5",
        f"cancel timer other of level {top}",
        f"offer coin of level {top}: 2",
        f"save Mark(number=2) of level {top}",
        # What the layer below then asks for comes after what was asked before it.
        *(["send Note to (1, 2)"] if levels == 2 else []),
    ]


def test_effects_are_taken_once() -> None:
    stack = plain_stack(1)
    stack.cast(message(0, 0, 1))
    assert asked(stack) == ["send Note to (1,)"]
    assert asked(stack) == []


class Echo(Plain):
    """Answers each packet with a multicast of its own, so that handlers would nest."""

    __slots__ = ("deepest", "depth")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.depth = 0
        self.deepest = 0

    def on_packet(self, sender: int, packet: Packet) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        super().on_packet(sender, packet)
        if isinstance(packet, Note) and packet.number < 5:
            self.send((self.process,), Note(packet.m, packet.number + 1))
        self.depth -= 1


class Mirror(Plain):
    """Delivers at once what it is asked to send: everything is for this process."""

    __slots__ = ()

    def on_cast(self, m: Message) -> None:
        self.deliver(m)


def test_no_layer_is_entered_again_half_updated() -> None:
    echo = Echo(Context(0, 1))
    stack = Stack([Mirror(Context(0, 1)), echo])
    stack.cast(message(0, 0, 0))
    # The multicast is a Note with number 1; numbers 2 to 5 answer it, one after the other.
    assert len([line for line in echo.log if line.startswith("packet")]) == 5
    assert echo.deepest == 1
    assert asked(stack) == ["deliver 0.0"] * 5


# Messages go down and up.


def test_what_a_layer_sends_is_a_message_to_the_layer_below() -> None:
    stack = plain_stack(3)
    m = message(0, 7, 1, 2, payload=b"hello")
    stack.cast(m)
    packet: bytes | Packet = sent(stack)
    levels = []
    while isinstance(packet, Note):
        levels.append(packet.m)
        packet = packet.m.payload
    # Lowest first. Every level counts its own messages; the application's keeps its name.
    assert [name_of(level.id) for level in levels] == ["0.0", "0.0", "0.7"]
    assert [level.destinations for level in levels] == [(1, 2)] * 3
    assert levels[-1] == m


def test_each_level_numbers_what_it_is_asked_to_send() -> None:
    stack = plain_stack(2, process=2)
    for seq in (10, 11, 12):
        stack.cast(message(2, seq, 0))
    assert log_of(stack, 1) == ["cast 2.10", "cast 2.11", "cast 2.12"]
    assert log_of(stack, 0) == ["cast 2.0", "cast 2.1", "cast 2.2"]
    assert stack.sent_counts() == [0, 3]


def test_a_packet_goes_up_through_all_layers() -> None:
    sender, receiver = plain_stack(3, process=0), plain_stack(3, process=1)
    sender.cast(message(0, 7, 1, payload=b"hello"))
    receiver.receive(0, sent(sender))
    assert log_of(receiver, 0) == ["packet 0.0 from 0"]
    assert log_of(receiver, 1) == ["packet 0.0 from 0"]
    assert log_of(receiver, 2) == ["packet 0.7 from 0"]
    assert asked(receiver) == ["deliver 0.7"]


def test_a_client_multicasts_through_the_same_stack() -> None:
    """Clients have numbers from the size on."""
    client = plain_stack(2, process=3)
    client.cast(message(3, 0, 0, 1))
    assert asked(client) == ["send Note to (0, 1)"]


# What needs no order passes by.


class Call(Packet):
    number: int


class Telling(Plain):
    """Calls process 1 when its timer runs out, in no order with its messages."""

    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Note, Call)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Call,)

    def on_timer(self, name: str) -> None:
        self.send((1,), Call(7))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Call):
            self.log.append(f"call {packet.number} from {sender}")
        else:
            super().on_packet(sender, packet)


class GivesReliable(Plain):
    __slots__ = ()
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})


class NeedsReliable(Plain):
    __slots__ = ()
    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})


@pytest.mark.parametrize(
    ("layers", "passed"),
    [
        ([Plain, Plain, Plain, Telling], [1, 2]),
        ([Plain, GivesReliable, Plain, Telling], [2]),
        ([Plain, GivesReliable, Telling], []),
        ([Plain, NeedsReliable, Telling], [1]),
        ([Plain, Plain, NeedsReliable, Plain, Telling], [2, 3]),
        ([GivesReliable, Telling, Telling], []),  # the lower one would take it for its own
    ],
)
def test_what_only_has_to_arrive_passes_by_layers_above_the_first_that_is_reliable(
    layers: list[type[Layer]], passed: list[int]
) -> None:
    sender, receiver = (Stack([layer(Context(p, 3)) for layer in layers]) for p in (0, 1))
    top = len(layers) - 1
    sender.timer(top, "call")
    codec = Codec(layers)
    receiver.receive(0, codec.decode(codec.encode(sent(sender))))
    assert log_of(receiver, top) == ["call 7 from 0"]
    for stack in (sender, receiver):
        assert [level for level in range(top) if not log_of(stack, level)] == passed


# Timers, choices, notices, storage.


def test_timers_and_choices_go_to_the_layer_that_asked() -> None:
    stack = plain_stack(3)
    stack.timer(1, "retry")
    stack.choose(2, "coin", 1)
    assert [log_of(stack, level) for level in range(3)] == [[], ["timer retry"], ["choice coin 1"]]


@pytest.mark.parametrize("notice", [Suspect(2), Trust(2), View(1, (0, 1))], ids=told)
def test_notices_pass_upwards_and_out(notice: Notice) -> None:
    stack = plain_stack(2)
    stack.notice(notice)
    assert log_of(stack, 0) == log_of(stack, 1) == [f"notice {told(notice)}"]
    assert asked(stack) == [told(notice)]


class Deaf(Plain):
    """Holds notices back."""

    __slots__ = ()

    def on_notice(self, notice: Notice) -> None:
        self.log.append("held back")


def test_a_layer_may_hold_a_notice_back() -> None:
    stack = Stack([Deaf(Context(0, 3)), Plain(Context(0, 3))])
    stack.notice(Suspect(1))
    assert log_of(stack, 0) == ["held back"]
    assert log_of(stack, 1) == []
    assert asked(stack) == []


class Starting(Plain):
    """Sends something as soon as it starts, and counts its starts on stable storage."""

    __slots__ = ()

    def on_start(self) -> None:
        super().on_start()
        self.save(Mark(1))
        self.send((1,), Note(message(0, 0, 1), 0))

    def on_restart(self, stored: Stored) -> None:
        super().on_restart(stored)
        assert isinstance(stored.saved, Mark)
        self.save(Mark(stored.saved.number + 1))


def test_start_and_restart_reach_every_layer_from_below() -> None:
    stack = Stack([Starting(Context(0, 3)), Starting(Context(0, 3))])
    stack.start()
    assert asked(stack) == [
        "save Mark(number=1) of level 0",
        "send Note to (1,)",
        "save Mark(number=1) of level 1",
        "send Note to (1,)",
    ]
    again = Stack([Starting(Context(0, 3)), Starting(Context(0, 3))])
    again.restart([Stored(Mark(1)), Stored(Mark(5))], 0)
    assert log_of(again, 0) == ["restart with Mark(number=1)"]
    assert log_of(again, 1) == ["restart with Mark(number=5)"]
    assert asked(again) == ["save Mark(number=2) of level 0", "save Mark(number=6) of level 1"]


# Errors say whose fault it was.


class Foreign(Packet):
    """A packet that no layer here sends."""


def test_an_unknown_packet_is_the_fault_of_the_peer() -> None:
    with pytest.raises(PeerError, match="process 2 sent Foreign, which Plain at process 0 cannot"):
        plain_stack(1).receive(2, Foreign())


def test_an_empty_stack_is_the_fault_of_the_caller() -> None:
    with pytest.raises(UsageError, match="a stack needs at least one layer"):
        Stack([])


# Needs and gives.


class NeedsFifo(Plain):
    __slots__ = ()
    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.TOTAL})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})


class GivesFifo(Plain):
    __slots__ = ()
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.FIFO})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})


RELIABLE: Guarantees = frozenset({Guarantee.RELIABLE})


def test_a_stack_gives_what_its_layers_give_and_keep() -> None:
    everything = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    assert guarantees_above([NeedsFifo], everything) == {Guarantee.RELIABLE, Guarantee.TOTAL}
    # FIFO order does not survive a layer that only promises total order.
    assert Guarantee.FIFO not in guarantees_above([GivesFifo, NeedsFifo], RELIABLE)
    assert guarantees_above([GivesFifo], NOTHING) == {Guarantee.FIFO}
    assert guarantees_above([Plain, Plain], everything) == everything


def test_an_impossible_stack_is_refused_by_the_name_of_what_is_missing() -> None:
    with pytest.raises(UsageError) as caught:
        guarantees_above([NeedsFifo], RELIABLE)
    assert str(caught.value) == (
        "NeedsFifo needs fifo, reliable, but the network gives only reliable: missing fifo "
        "(what one process sends to another arrives in the order it was sent); "
        "put a layer that gives it below NeedsFifo, or change the network"
    )


def test_the_layer_below_is_named_where_there_is_one() -> None:
    layers: list[type[Layer]] = [GivesFifo, NeedsFifo]
    with pytest.raises(
        UsageError, match="NeedsFifo needs fifo, reliable, but GivesFifo gives only"
    ):
        guarantees_above(layers, NOTHING)


def test_every_guarantee_has_a_name_and_a_meaning() -> None:
    assert names(NOTHING) == "nothing"
    assert names(frozenset(Guarantee)) == (
        "causal, fifo, leader, protected-memory, reliable, total, uniform, virtual-synchrony"
    )
    assert len({guarantee.meaning for guarantee in Guarantee}) == len(Guarantee)


def test_the_origin_of_a_packet_is_its_sender_at_every_level() -> None:
    stack = plain_stack(2, process=1)
    peer = plain_stack(2, process=2)
    peer.cast(message(2, 4, 1))
    packet = sent(peer)
    assert isinstance(packet, Note)
    assert (origin_of(packet.m.id), seq_of(packet.m.id)) == (2, 0)
    stack.receive(2, packet)
    assert log_of(stack, 1) == ["packet 2.4 from 2"]
