"""Simulations of small layers, or of best-effort multicast, with everything in the test's hands."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, NamedTuple

from flexgroup.core.codec import Codec
from flexgroup.core.layer import Context, Layer, Notice, Stored, Suspect, Trust
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.protocols.best_effort import BestEffort
from flexgroup.trace.collector import Collector
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.simulator.engine import Application, Simulation
from flexgroup.worlds.simulator.fault_plans import Faults, parse_faults
from flexgroup.worlds.simulator.networks import parse_network

MS = 1_000_000
"""A millisecond, in nanoseconds: the delay of the network `unit`."""

END_OF_TIME = 1 << 60


class Heard(NamedTuple):
    """A delivery: when, where, and what the payload says."""

    time: int
    process: int
    text: str


class Ear(Application):
    """Listens to the deliveries."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        assert isinstance(m.payload, bytes)
        self.heard.append(Heard(time, process, m.payload.decode()))


class World:
    """A simulation under construction: multicasts are planned, then everything runs."""

    def __init__(
        self,
        size: int,
        network: str = "unit",
        layer: type[Layer] = BestEffort,
        faults: Faults | None = None,
        clients: int = 0,
        seed: int = 1,
    ) -> None:
        self.ear = Ear()
        self.collector = Collector()
        self.recorder = Recorder(self.collector)
        self.size = size
        self._sent: dict[int, int] = {}
        self.simulation = Simulation(
            size=size,
            clients=clients,
            build=lambda process: Stack([layer(Context(process, size))]),
            codec=Codec([layer]),
            network=parse_network(network),
            faults=parse_faults(faults or Faults(), size, size + clients),
            application=self.ear,
            recorder=self.recorder,
            random=Random(seed),
        )
        self.simulation.start()

    def cast(self, time: int, origin: int, to: Sequence[int], text: str = "") -> None:
        seq = self._sent.get(origin, 0)
        self._sent[origin] = seq + 1
        m = Message(message_id(origin, seq), tuple(to), text.encode())
        self.simulation.cast_at(time, m)

    def run(self, until: int = END_OF_TIME) -> list[Heard]:
        """Run to the end, or until a time; return all deliveries in order of time."""
        self.simulation.run(until, 10_000_000)
        self.recorder.flush()
        return sorted(self.ear.heard)


class Word(Packet):
    m: Message


class Telling(Layer):
    """Says on the spot what it is told, by delivering it to the application.

    `say` may be used in a subclass as well: every line becomes a message to itself.
    """

    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Word,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.said = 0

    def say(self, text: str) -> None:
        m = Message(message_id(self.process, 1_000_000 + self.said), (self.process,), text.encode())
        self.said += 1
        self.deliver(m)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Word(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Word)
        self.deliver(packet.m)

    def on_restart(self, stored: Stored) -> None:
        self.say(f"restarted with {stored.saved!r}")

    def on_timer(self, name: str) -> None:
        self.say(f"timer {name}")

    def on_choice(self, name: str, chosen: int) -> None:
        self.say(f"{name} {chosen}")

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.say(f"suspects {notice.process}")
        elif isinstance(notice, Trust):
            self.say(f"trusts {notice.process}")
