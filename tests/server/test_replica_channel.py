"""Channels between replicas: in order and without loss between two incarnations, whatever links
and servers do."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints
from flexgroup.server.peers.replica_channel import DATA, GOT, HELLO, ReplicaChannel

NAME = "a replica"


def channel() -> ReplicaChannel:
    return ReplicaChannel(NAME, NAME)


class End:
    """One end, and the link to the other."""

    def __init__(self) -> None:
        self.incarnation = 1
        self.channel = channel()
        self.out: deque[bytes] = deque()
        self.sent: list[tuple[int, bytes]] = []
        """What was sent, with the incarnation that sent it."""
        self.came: list[tuple[int, bytes]] = []
        """What came, with the incarnation that it came to."""

    def send(self, data: bytes) -> None:
        self.sent.append((self.incarnation, data))
        self.out += self.channel.send(self.incarnation, data)

    def link(self) -> None:
        self.channel.is_open = False
        self.out.clear()
        self.out.append(self.channel.hello(self.incarnation))

    def restart(self, given_up: int = 0) -> None:
        self.incarnation = max(self.incarnation, given_up) + 1
        self.channel = channel()

    def take(self, frame: bytes) -> None:
        reader = Reader(frame, 0, len(frame))
        what = reader.varint()
        if what == HELLO:
            given_up, out = self.channel.said_hello(self.incarnation, reader)
            if given_up:
                self.restart(given_up)
                self.out.append(self.channel.hello(self.incarnation))
            self.out += out
        elif what == DATA:
            if self.channel.came(self.incarnation, reader):
                self.came.append((self.incarnation, frame[reader.position :]))
        elif what == GOT:
            self.channel.told(self.incarnation, reader)


def move(source: End, target: End) -> None:
    if source.out:
        target.take(source.out.popleft())


def settle(one: End, other: End) -> None:
    while one.out or other.out:
        move(one, other)
        move(other, one)


def linked() -> tuple[End, End]:
    one, other = End(), End()
    one.link()
    other.link()
    settle(one, other)
    return one, other


def test_what_is_sent_before_there_is_a_link_comes_when_there_is() -> None:
    one, other = End(), End()
    one.send(b"1")
    one.link()
    other.link()
    one.send(b"2")
    settle(one, other)
    assert other.came == [(1, b"1"), (1, b"2")]


@pytest.mark.parametrize("seed", range(200))
def test_links_that_break_lose_and_double_nothing(seed: int) -> None:
    chance = Random(seed)
    one, other = linked()
    for number in range(100):
        what = chance.random()
        if what < 0.5:
            chance.choice((one, other)).send(b"%d" % number)
        elif what < 0.9:
            move(one, other)
            move(other, one)
        elif what < 0.95:
            for end, peer in ((one, other), (other, one)):
                end.out += end.channel.got(end.incarnation)
                move(end, peer)
        else:
            one.link()
            other.link()
    one.link()
    other.link()
    settle(one, other)
    assert [data for _, data in other.came] == [data for _, data in one.sent]
    assert [data for _, data in one.came] == [data for _, data in other.sent]
    for end in (one, other):
        end.out += end.channel.got(end.incarnation)
    settle(one, other)
    assert (one.channel.kept, other.channel.kept) == (0, 0)


@pytest.mark.parametrize("seed", range(200))
def test_each_incarnation_gets_a_part_of_what_each_sends_without_gaps(seed: int) -> None:
    """What follows a restart is not mixed with what was sent before, and all of it comes after the
    last one."""
    chance = Random(seed)
    one, other = linked()
    for number in range(100):
        what = chance.random()
        if what < 0.5:
            chance.choice((one, other)).send(b"%d" % number)
        elif what < 0.9:
            move(one, other)
            move(other, one)
        elif what < 0.94:
            chance.choice((one, other)).restart()
            one.link()
            other.link()
        elif what < 0.96:
            chance.choice((one, other)).channel.give_up()
        else:
            one.link()
            other.link()
    one.link()
    other.link()
    settle(one, other)
    for end in (one, other):
        end.send(b"last")
    settle(one, other)
    for end, peer in ((one, other), (other, one)):
        assert peer.came[-1] == (peer.incarnation, b"last")
        mine = [data for _, data in end.sent]
        for incarnation in range(1, peer.incarnation + 1):
            places = [mine.index(data) for to, data in peer.came if to == incarnation]
            assert places == sorted(set(places))
            for of in range(1, end.incarnation + 1):
                part = [place for place in places if end.sent[place][0] == of]
                assert part == list(range(part[0], part[0] + len(part))) if part else True


def test_what_no_replica_would_say_is_refused() -> None:
    one, _ = linked()
    for frame in (
        varints([DATA, 1, 1, 5, 0]),
        varints([DATA, 1, 1, 0, 5]),
        varints([GOT, 1, 1, 3]),
        varints([HELLO, 1, 1, 7, 0, 0, len(NAME)]) + NAME.encode(),
    ):
        with pytest.raises(PeerError):
            one.take(frame)


def test_who_is_another_replica_than_it_answers_for_is_named() -> None:
    one, other = End(), End()
    other.channel = ReplicaChannel("the replica of b", NAME)
    other.link()
    with pytest.raises(PeerError, match=f"the replica of b answers for {NAME}"):
        move(other, one)
    one.send(b"1")
    assert not one.out
