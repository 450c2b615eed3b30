"""VCube's diagnosis: a failure detector whose tests form a hypercube.

Source: Duarte, Bona and Ruoso 2014, "VCube: a provably scalable distributed diagnosis
algorithm"; the test interval and the time-out are those of Ruchel and others 2021, section 5. In
each round, every INTERVAL, process i tests every process j for which it is the first
that is up in the cluster of j that i is in. A fault-free process answers, and tells what it
knows: for each process how often it changed its state, an even number if it is up. News is taken
from whoever answers, so a crash is known to all after at most log2(n) rounds. Each process has
at most log2(n) testers, so there are at most n log2(n) tests in a round.

Assumes that answers come within the time-out; where they do not always, suspicions may be
wrong for a while: who answers after all is trusted again, and the time-out grows. Tells the layers
above `Suspect` and `Trust`, and carries their messages as best-effort multicast does.

Differs from the paper: there a round tests one cluster, so that log2(n) of its rounds are one of
ours; and ticks are whole, so the time-out of 4(ts + tt + tr) is 4 ticks.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Stored, Suspect, Trust
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.detection import INTERVAL, PATIENT, TIMEOUT, Data, first_timeout
from flexgroup.protocols.parts.hypercube import dimension, ff_neighbor, members
from flexgroup.protocols.parts.timestamps import are_timestamps


@final
class Test(Packet):
    """Are you there?"""


@final
class Answer(Packet):
    """Yes, and this I know: a process, how often it changed its state, another process, ..."""

    news: tuple[int, ...]


class VCubeDetector(Layer):
    __slots__ = ("patience", "silent", "suspected", "tested", "timestamp")

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Test, Answer)
    OPTIONS: ClassVar[tuple[str, ...]] = (PATIENT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.timestamp: dict[int, int] = {}
        """How often each process changed its state, if ever; odd: it is taken for crashed."""
        self.suspected: set[int] = set()
        self.tested: tuple[int, ...] = ()
        """The processes that this one tests."""
        self.silent: set[int] = set()
        """Who has not answered in this round."""
        self.patience = first_timeout(context.options)
        """Ticks that an answer may take."""
        self.choose_tests()

    def choose_tests(self) -> None:
        if self.process >= self.size:
            return
        found: list[int] = []
        for s in range(1, dimension(self.size) + 1):
            for j in members(self.process, s, self.size):
                if ff_neighbor(j, s, self.size, self.suspected) == self.process:
                    found.append(j)
        self.tested = tuple(sorted(found))

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_start(self) -> None:
        if self.process < self.size:
            self.set_timer("round", INTERVAL)

    def on_restart(self, stored: Stored) -> None:
        self.on_start()

    def on_timer(self, name: str) -> None:
        if name == "round":
            self.silent = set(self.tested)
            if self.tested:
                self.send(self.tested, Test())
            self.set_timer("time-out", self.patience)
            self.set_timer("round", max(INTERVAL, self.patience + 1))
        else:
            for j in sorted(self.silent - self.suspected):
                self.change(j, self.timestamp.get(j, 0) + 1)
            self.silent.clear()

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data) and self.is_for_me(packet.m):
            self.deliver(packet.m)
        elif isinstance(packet, Test) and sender < self.size:
            self.send((sender,), Answer(self.news()))
        elif isinstance(packet, Answer) and self.is_answer(sender, packet.news):
            self.on_answer(sender, packet.news)
        else:
            raise self.refuse(sender, packet)

    def news(self) -> tuple[int, ...]:
        return tuple([number for pair in sorted(self.timestamp.items()) for number in pair])

    def is_answer(self, j: int, news: tuple[int, ...]) -> bool:
        return j < self.size and (not news or are_timestamps(news, self.size))

    def on_answer(self, j: int, news: tuple[int, ...]) -> None:
        self.silent.discard(j)
        for at in range(0, len(news), 2):
            k, t = news[at], news[at + 1]
            if k == self.process:
                # Others have taken this process for crashed: it is not.
                t += t % 2
            if t > self.timestamp.get(k, 0):
                self.change(k, t)
        if j in self.suspected:
            self.patience += TIMEOUT
            self.change(j, self.timestamp[j] + 1)

    def change(self, k: int, t: int) -> None:
        """Process k is known to have changed its state for the t-th time."""
        self.timestamp[k] = t
        if t % 2 and k not in self.suspected:
            self.suspected.add(k)
            self.choose_tests()
            self.pass_on(Suspect(k))
        elif t % 2 == 0 and k in self.suspected:
            self.suspected.remove(k)
            self.choose_tests()
            self.pass_on(Trust(k))
