"""Random schedules of a group of replicas, some of which crash and some of which lie.

A liar is two replicas under one identity, each of which gets a part of what is sent to it; of what
they send, some is lost, comes twice, is altered or is told to others than it was meant for. What is
altered is sealed again, by the liar. Timers run out at any moment. In the end messages come sooner
than timers run out, though liars go on: then every correct replica has delivered what correct
processes multicast.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.fields import ALL_BYTES, BYTES, INT, PACKETS
from flexgroup.core.host import Host
from flexgroup.core.journal import Transmission
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.message import Message, Packet, message_id, origin_of
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Prepare,
    PrePrepare,
    Request,
    ViewChange,
    digest_of,
)
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.testing.replica_schedules import agree
from flexgroup.worlds.bench import Bench, InFlight

CONDUCT = "conduct"
FORGED = "forged"
INTEGRITY = "integrity"
ORDER = "order"
VALIDITY = "validity"

MOST_ROUNDS = 60
"""How often, in the end, all timers run out before what is missing is taken for lost."""


@dataclass(frozen=True)
class Load:
    """What happens in a schedule."""

    multicasts: int
    liars: int = 0
    crashes: int = 0
    timers: int = 0
    """How many run out while messages are in flight."""
    fifo: bool = True


class LiarSchedule:
    """One schedule while it is performed."""

    def __init__(self, plan: StackPlan, size: int, load: Load, seed: int) -> None:
        self.random = random = Random(seed)
        self.load = load
        self.size = size
        self.everyone = tuple(range(size))
        self.bench = Bench(plan, size, replicas=replicas_of_sizes([size]))
        faulty = random.sample(self.everyone, load.liars + load.crashes)
        if load.liars and random.random() < 0.5:
            faulty = [0, *[p for p in faulty if p != 0]][: len(faulty)]
        self.liars = faulty[: load.liars]
        self.to_crash = faulty[load.liars :]
        self.correct = [p for p in self.everyone if p not in faulty]
        codec = Codec(plan.layers)
        self.notaries = {liar: KeyedNotary(liar, codec) for liar in self.liars}
        self.twins: dict[int, list[Host]] = {}
        build = plan.builder(size, replicas=replicas_of_sizes([size]))
        for liar in self.liars:
            twin = Host(build(liar), self.bench, codec)
            twin.start(0)
            self.twins[liar] = [self.bench.hosts[liar], twin]
        self.honesty = random.choice((0.5, 0.8, 0.95, 1.0))
        """How much of what liars send stays as it is."""
        self.loyalty = random.choice((0.5, 0.9))
        """How much of what one process sends goes to the same twin."""
        self.left = [random.randrange(size + 2) for _ in range(load.multicasts)]
        self.timers_left = load.timers
        self.cast: dict[int, Message] = {}
        self.seen: dict[tuple[int, int], InFlight | None] = {}

    def perform(self) -> str:
        """What went wrong, if anything."""
        try:
            while self.step():
                pass
            self.come_to_rest()
        except PeerError as error:
            return f"{CONDUCT}: {error!r}"
        return self.broken()

    def step(self) -> bool:
        """Let one thing happen; whether there is anything left to happen."""
        random, bench = self.random, self.bench
        chance = random.random()
        if self.left and (chance < 0.08 or not bench.channels):
            self.multicast(self.left.pop())
        elif self.to_crash and bench.messages and chance > 0.97:
            bench.crash(self.to_crash.pop())
        elif self.timers_left and chance > 0.9:
            self.timers_left -= 1
            self.end_a_timer()
        elif bench.channels:
            self.arrive()
        else:
            return False
        return True

    def come_to_rest(self) -> None:
        """Let timers run out only when nothing is in flight, until nothing is missing."""
        for _ in range(MOST_ROUNDS):
            while self.bench.channels:
                self.arrive()
            if not self.missing():
                return
            for process in self.correct:
                self.end_timers_of(process)

    def multicast(self, origin: int) -> None:
        if origin in self.bench.crashed:
            return
        if origin in self.liars:
            self.choose_twin(origin)
        before = self.counts()
        m = self.bench.cast(origin, self.everyone, bytes([len(self.cast)]))
        self.cast[m.id] = m
        self.lie(origin, before)

    def arrive(self) -> None:
        bench, random = self.bench, self.random
        source, target = random.choice(list(bench.channels))
        place = 0 if self.load.fifo else random.randrange(len(bench.channels[source, target]))
        if target in self.liars:
            self.choose_twin(target, source)
        before = self.counts(leaving=(source, target))
        try:
            bench.deliver(source, target, place)
        except PeerError:
            if source not in self.liars and target not in self.liars:
                raise
        self.lie(target, before)

    def end_a_timer(self) -> None:
        running = [p for p in self.correct if p in self.bench.timers]
        if running:
            self.end_timers_of(self.random.choice(running))

    def end_timers_of(self, process: int) -> None:
        for level, name in self.bench.timers.get(process, []):
            self.bench.end_timer(process, level, name)

    # What liars do.

    def choose_twin(self, liar: int, source: int = 0) -> None:
        """Let one of the two copies go on."""
        usual = self.random.random() < self.loyalty
        number = source % 2 if usual else self.random.randrange(2)
        self.bench.hosts[liar] = self.twins[liar][number]

    def counts(self, leaving: tuple[int, int] | None = None) -> dict[tuple[int, int], int]:
        counts = {channel: len(packets) for channel, packets in self.bench.channels.items()}
        if leaving is not None:
            counts[leaving] -= 1
        return counts

    def lie(self, process: int, before: dict[tuple[int, int], int]) -> None:
        """Alter some of what a liar has just sent."""
        if process not in self.liars:
            return
        channels = self.bench.channels
        for channel in [channel for channel in channels if channel[0] == process]:
            start = before.get(channel, 0)
            fresh = channels[channel][start:]
            del channels[channel][start:]
            for sent in fresh:
                channels[channel].extend(self.altered(process, sent))
            if not channels[channel]:
                del channels[channel]

    def altered(self, liar: int, sent: InFlight) -> list[InFlight]:
        random = self.random
        if random.random() < self.honesty:
            return [sent]
        chance = random.random()
        if chance < 0.3:
            return []
        if chance < 0.4:
            return [sent, sent]
        packet = self.forged(liar, sent.packet)
        return [InFlight(Transmission(packet), sent.step)]

    def forged(self, liar: int, packet: Packet) -> Packet:
        """A packet like this one with something else in one field, sealed as the liar can."""
        random = self.random
        values = [getattr(packet, name) for name, _ in packet.FIELDS]
        place = random.randrange(len(values))
        kind = packet.FIELDS[place][1]
        if kind == INT:
            values[place] = max(0, values[place] + random.choice((-1, 1, 2, 300)))
        elif kind in (BYTES, ALL_BYTES):
            values[place] = bytes(random.randbytes(len(values[place])))
        elif kind == PACKETS:
            values[place] = values[place][random.randrange(2) :][: random.randrange(3)]
        elif isinstance(values[place], Message):
            values[place] = Message(values[place].id, self.everyone, b"forged")
        return self.sealed(liar, type(packet)(*values))

    def sealed(self, liar: int, packet: Packet) -> Packet:
        seal = self.notaries[liar].seal
        if isinstance(packet, Request):
            return Request(packet.m, seal(0, packet.said()))
        if isinstance(packet, PrePrepare):
            requests = tuple([one for one in packet.requests if isinstance(one, Request)])
            digest = digest_of(tuple([one.m for one in requests]))
            said = Prepare(packet.view, packet.number, digest, liar, b"")
            return PrePrepare(packet.view, packet.number, packet.requests, seal(0, said))
        if isinstance(packet, Prepare):
            return Prepare(
                packet.view, packet.number, packet.digest, packet.process, seal(0, packet.said())
            )
        if isinstance(packet, Checkpoint):
            said_so = seal(0, packet.said())
            return Checkpoint(packet.number, packet.digest, packet.process, said_so)
        if isinstance(packet, ViewChange):
            return packet.with_seal(seal(0, packet.said()))
        return packet

    # What is promised.

    def missing(self) -> bool:
        orders = [{m.id for m in self.bench.delivered[p]} for p in self.correct]
        honest = {m for m in self.cast if self.is_correct(origin_of(m))}
        return any(not honest <= order for order in orders) or len(set(map(len, orders))) > 1

    def is_correct(self, process: int) -> bool:
        return process >= self.size or process in self.correct

    def broken(self) -> str:
        delivered = [self.bench.delivered[p] for p in self.correct]
        if wrongly_delivered(delivered):
            return INTEGRITY
        for order in delivered:
            for m in order:
                if self.is_correct(origin_of(m.id)) and self.cast.get(m.id) != m:
                    return FORGED
        if not all(agree(self.bench, p, q) for p, q in combinations(self.correct, 2)):
            return ORDER
        return VALIDITY if self.missing() else ""


def liar_schedule(plan: StackPlan, size: int, load: Load, seed: int) -> str:
    """Perform a schedule, and judge it when nothing happens any more."""
    return LiarSchedule(plan, size, load, seed).perform()


def forged_request(liar: int, origin: int, group: tuple[int, ...]) -> Request:
    """A request in the name of a process that has not asked for it."""
    m = Message(message_id(origin, 0), group, b"forged")
    return Request(m, liar.to_bytes(16, "big"))
