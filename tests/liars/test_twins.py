"""Twins are two unmodified copies of a process, and the world chooses which of them is reached."""

from __future__ import annotations

from typing import ClassVar

import pytest

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet
from flexgroup.core.state import fingerprint, fork
from flexgroup.liars.named import check_liars, in_words, liars_of, parse_liars
from flexgroup.liars.twins import Twins
from flexgroup.protocols.catalogue import Protocol, StackPlan
from flexgroup.worlds.bench import Bench


class Count(Packet):
    """What a copy has counted so far."""

    m: Message
    count: int


class Counting(Layer):
    """Tells everybody how many messages it was told of, and takes no more than three of them."""

    __slots__ = ("count",)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Count,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.count = 0

    def on_cast(self, m: Message) -> None:
        self.set_timer("again", 3)
        self.send(m.destinations, Count(m, self.count))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Count)
        if self.count == 3:
            raise PeerError("enough")
        self.count += 1
        if sender != self.process:
            self.send((0, self.process), Count(packet.m, self.count))

    def on_timer(self, name: str) -> None:
        self.count += 10


PLAN = StackPlan.of(Protocol("counting", Counting, "", ""))


def bench() -> Bench:
    return Bench(PLAN, 2, liars=((1, "twin"),))


def twins(of: Bench) -> Twins:
    (liar,) = of.hosts[1].stack.layers
    assert isinstance(liar, Twins)
    return liar


def counts(of: Bench) -> list[int]:
    found = []
    for stack in twins(of).stacks:
        (layer,) = stack.layers
        assert isinstance(layer, Counting)
        found.append(layer.count)
    return found


def told(of: Bench) -> list[int]:
    """What process 1 is on the way to tell process 0."""
    sent = [in_flight.packet for in_flight in of.channels.get((1, 0), [])]
    return [packet.count for packet in sent if isinstance(packet, Count)]


def test_the_world_chooses_which_copy_a_packet_reaches_once_they_have_parted() -> None:
    world = bench()
    for _ in range(3):
        world.cast(2, (1,))
    world.deliver(2, 1)
    assert counts(world) == [2, 0], "they are alike: the first is as good as the second"
    world.deliver(2, 1)
    assert counts(world) == [2, 0], "nobody has chosen yet"
    world.choose(1, 1)
    assert counts(world) == [2, 2]
    assert told(world) == [1, 1], "both speak as process 1, which counts twice from one"


def test_a_copy_reaches_itself_at_once_and_nobody_else() -> None:
    world = bench()
    world.cast(2, (1,))
    world.deliver(2, 1)
    assert (1, 1) not in world.channels
    assert counts(world) == [2, 0], "its own packet counts as well"


def test_casts_reach_either_copy() -> None:
    world = bench()
    world.cast(1, (0,))
    world.cast(1, (0,))
    world.choose(1, 1)
    assert told(world) == [0, 0]
    assert world.timers == {1: [(0, "again@0"), (0, "again@0/1")]}


def test_each_copy_has_timers_of_its_own() -> None:
    world = bench()
    world.cast(1, (0,))
    world.cast(1, (0,))
    world.choose(1, 1)
    world.end_timer(1, 0, "again@0/1")
    assert counts(world) == [0, 10]


def test_what_a_copy_cannot_take_it_ignores() -> None:
    world = bench()
    for _ in range(3):
        world.cast(2, (1,))
    world.deliver(2, 1)
    for _ in range(2):
        world.deliver(2, 1)
        world.choose(1, 0)
    assert counts(world) == [3, 0]
    assert told(world) == [1, 3], "of the last one, nothing came"


def test_what_a_liar_says_and_a_correct_process_refuses_has_no_effect() -> None:
    world = bench()
    for _ in range(4):
        world.cast(1, (0,))
    for _ in range(3):
        world.choose(1, 0)
    for _ in range(3):
        world.deliver(1, 0)
    sent = {channel: list(packets) for channel, packets in world.channels.items()}
    world.deliver(1, 0)
    del sent[1, 0]
    assert world.channels == sent
    for _ in range(4):
        world.cast(2, (0,))
        with pytest.raises(PeerError, match="enough"):
            world.deliver(2, 0)


def test_twins_are_copied_with_all_that_they_are() -> None:
    world = bench()
    for _ in range(2):
        world.cast(2, (1,))
        world.deliver(2, 1)
    stack = world.hosts[1].stack
    twin = fork(stack)
    before = fingerprint(stack)
    assert fingerprint(twin) == before
    world.choose(1, 1)
    assert fingerprint(twin) == before != fingerprint(stack)
    twin.choose(0, "copy", 1)
    assert fingerprint(twin) == fingerprint(stack)


def test_liars_are_named() -> None:
    liars = parse_liars(["3"], ["2:skip"])
    assert liars == ((2, "skip"), (3, "twin"))
    assert liars_of(in_words(liars)) == liars


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["2"], "--liar 2: write PROCESS:KIND"),
        (["2:kind"], "the kinds are twin, silent, slow, skip, reorder, forge, equivocate"),
        (["x:skip"], "--liar x:skip: write"),
        (["2:skip", "2:forge"], "process 2 is made to lie twice"),
    ],
)
def test_a_liar_that_cannot_be_is_refused(texts: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        liars_of(texts)


def test_a_liar_must_exist() -> None:
    with pytest.raises(UsageError, match="--twin x: write the number of a process"):
        parse_liars(["x"], [])
    with pytest.raises(UsageError, match=r"process 4, .* a liar \(skip\), does not exist"):
        check_liars(((4, "skip"),), 4)
