"""Symmetry: clients that multicast to the same destinations are interchangeable.

That is so if the protocol never looks at *who* the client is, which is not declared but
tried: for every step that the search computes, the step with the clients' names exchanged is
computed as well, and must be the same step with the names exchanged. By induction over the
steps of a run, exchanging the clients in a run then gives a run. A protocol that breaks ties
by the name of a client fails the test, and is explored without this reduction.

Two states are taken for one if exchanging clients makes them equal: the fingerprint that counts
is the lowest over all exchanges.
"""

from __future__ import annotations

from itertools import permutations
from math import factorial
from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i32

from flexgroup.core.fields import ID, MESSAGE, MESSAGES, PACKET, PACKETS
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of, seq_of
from flexgroup.worlds.explorer.in_flight import EMPTY, InFlightPackets
from flexgroup.worlds.explorer.machine import (
    Event,
    Machine,
    delivery_entry,
    is_delivery,
    message_in,
)

MOST: Final = 24
"""How many exchanges are looked at, at most, in every state."""

Exchange = dict[int, int]


class AsymmetricError(Exception):
    """The protocol treats two clients differently."""


def exchanges(alike: list[list[int]]) -> list[Exchange]:
    """All ways to exchange clients within these sets, but for leaving all as they are."""
    found: list[Exchange] = [{}]
    for clients in alike:
        # Of many that are alike, some are exchanged and the others left as they are.
        some = clients
        while len(found) * factorial(len(some)) > MOST:
            some = some[:-1]
        found = [
            {**exchange, **dict(zip(some, order, strict=True))}
            for exchange in found
            for order in permutations(some)
        ]
    return [exchange for exchange in found if any(a != b for a, b in exchange.items())]


def composed(found: list[Exchange]) -> list[list[int]]:
    """The place of the exchange that does first the one and then the other; -1 if all is as was."""
    places = {tuple(sorted(exchange.items())): place for place, exchange in enumerate(found)}
    return [
        [
            places.get(tuple([(a, after.get(b, b)) for a, b in sorted(before.items())]), -1)
            for before in found
        ]
        for after in found
    ]


def renamed_id(identity: MessageId, exchange: Exchange) -> MessageId:
    origin = origin_of(identity)
    return message_id(exchange.get(origin, origin), seq_of(identity))


def renamed_message(m: Message, exchange: Exchange) -> Message:
    payload = m.payload
    if isinstance(payload, Packet):
        payload = renamed(payload, exchange)
    return Message(renamed_id(m.id, exchange), m.destinations, payload)


def renamed(packet: Packet, exchange: Exchange) -> Packet:
    values: list[object] = []
    for name, kind in packet.FIELDS:
        value: object = getattr(packet, name)
        if kind == ID:
            assert isinstance(value, int)
            values.append(renamed_id(value, exchange))
        elif kind == MESSAGE:
            assert isinstance(value, Message)
            values.append(renamed_message(value, exchange))
        elif kind == MESSAGES:
            assert isinstance(value, tuple)
            values.append(tuple([renamed_message(m, exchange) for m in value]))
        elif kind == PACKET:
            assert isinstance(value, Packet)
            values.append(renamed(value, exchange))
        elif kind == PACKETS:
            assert isinstance(value, tuple)
            values.append(tuple([renamed(other, exchange) for other in value]))
        else:
            values.append(value)
    return type(packet)(*values)


@final
class Mirror:
    """What one exchange makes of events, states of processes and in_flight."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.events: dict[int, int] = {}
        self.locals: dict[int, int] = {}
        self.in_flight: dict[int, int] = {EMPTY: EMPTY}


@final
class Symmetry:
    """The mirrors of everything that was met, and the fingerprint that counts."""

    def __init__(
        self, machine: Machine, in_flight: InFlightPackets, alike: list[list[int]]
    ) -> None:
        self.mirrors = [Mirror(exchange) for exchange in exchanges(alike)]
        self._machine = machine
        self._in_flight = in_flight
        self._looked_at = 0
        self._verified: set[int] = set()
        self._composed = composed([mirror.exchange for mirror in self.mirrors])

    def begin(self, local: int) -> None:
        """The first state of a process is its own mirror."""
        for mirror in self.mirrors:
            mirror.locals[local] = local

    def lowest(self, now: vec[i32], actors: int, fingerprint: int, rest: int) -> int:
        """Return the lowest fingerprint under all exchanges; that of the state is `fingerprint`."""
        lowest = fingerprint
        machine = self._machine
        in_flight = self._in_flight
        for mirror in self.mirrors:
            other = rest
            for actor in range(actors):
                local = self.local(mirror, int(now[2 * actor]))
                other ^= machine.locals[local].fingerprint
                pending = int(now[2 * actor + 1])
                if pending:
                    other ^= in_flight.fingerprints[self.pending(mirror, pending)]
            if other < lowest:
                lowest = other
        return lowest

    def verify(self) -> None:
        """Compute the mirrors of all steps that are new; raise AsymmetricError if one differs."""
        machine = self._machine
        while self._looked_at < len(machine.recipes):
            before, event = machine.recipes[self._looked_at]
            self._looked_at += 1
            self._verify(machine.local_of(before), machine.event_of(event))

    def _verify(self, before: int, event: int) -> None:
        machine = self._machine
        if (before << 30) | event in self._verified:
            return
        self._verified.add((before << 30) | event)
        step = machine.step(before, event)
        reached: list[int] = []
        for mirror in self.mirrors:
            other, happens = self.local(mirror, before), self.event(mirror, event)
            # The mirrors of this step are mirrors of each other: they need no look of their own.
            self._verified.add((other << 30) | happens)
            twin = machine.step(other, happens)
            expected = [self.event(mirror, output) for output in step.outputs]
            if expected != twin.outputs or not self._is_mirror(mirror, step.after, twin.after):
                raise AsymmetricError
            reached.append(twin.after)
        for one, mirror in enumerate(self.mirrors):
            self._set(mirror, step.after, reached[one])
            for other, after in enumerate(reached):
                both = self._composed[one][other]
                self._set(mirror, after, reached[both] if both >= 0 else step.after)

    def _set(self, mirror: Mirror, local: int, twin: int) -> None:
        if mirror.locals.get(local, twin) != twin:
            raise AsymmetricError
        mirror.locals[local] = twin

    def _is_mirror(self, mirror: Mirror, one: int, other: int) -> bool:
        """What the world sees of the two states is the same but for the names of clients."""
        local = self._machine.locals[one]
        twin = self._machine.locals[other]
        history = [
            delivery_entry(renamed_id(message_in(entry), mirror.exchange))
            if is_delivery(entry)
            else entry
            for entry in local.history
        ]
        return (
            tuple(history) == twin.history
            and local.timers == twin.timers
            and local.offers == twin.offers
            and bool(local.problem) == bool(twin.problem)
        )

    def event(self, mirror: Mirror, number: int) -> int:
        found = mirror.events.get(number, -1)
        if found < 0:
            event = self._machine.events[number]
            packet = event.packet
            if packet is not None:
                source = mirror.exchange.get(event.source, event.source)
                event = Event(
                    event.kind, event.process, source, renamed(packet, mirror.exchange),
                    event.level, event.name, event.number,
                )  # fmt: skip
            found = mirror.events[number] = self._machine.event(event)
        return found

    def local(self, mirror: Mirror, number: int) -> int:
        found = mirror.locals.get(number, -1)
        if found < 0:
            self.verify()
            found = mirror.locals[number]
        return found

    def pending(self, mirror: Mirror, number: int) -> int:
        found = mirror.in_flight.get(number, -1)
        if found < 0:
            found = EMPTY
            for event in self._in_flight.contents[number]:
                found = self._in_flight.append(found, self.event(mirror, event))
            mirror.in_flight[number] = found
        return found
