"""Simulations of a few multicasts at chosen times, for tests that count steps and packets.

The network is `unit` unless a test brings its own: every packet takes one delay of 1 ms and
handling costs nothing, so times are whole numbers of delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from flexgroup.core.codec import Codec
from flexgroup.core.message import Message, MessageId, message_id, origin_of
from flexgroup.core.replicas import Replicas
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.simulator.engine import Application, Simulation
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.network import Network
from flexgroup.worlds.simulator.networks import parse_network

DELAY = 1_000_000
"""The delay of the network `unit`, in nanoseconds."""

PAYLOAD = bytes(64)

END_OF_TIME = 1 << 60


class Planned(NamedTuple):
    """A client multicasts to these destinations at this time, counted in delays."""

    destinations: tuple[int, ...]
    at: float = 0.0


def simulate(
    stack: str,
    size: int,
    casts: Sequence[Planned],
    network: Network | None = None,
    seed: int = 1,
    replicas: Replicas = (),
    *,
    crashes: Sequence[tuple[float, int]] = (),
    detection: float = 0.0,
) -> History:
    """Run to the end; the i-th multicast comes from a client of its own, process size + i.

    Processes crash at these times, counted in delays, and all are told so `detection` later.
    """
    plan = parse_stack(stack)
    faults = FaultPlan()
    faults.crashes = sorted((round(at * DELAY), process) for at, process in crashes)
    faults.detection = round(detection * DELAY)
    collector = Collector()
    recorder = Recorder(collector)
    simulation = Simulation(
        size=size,
        clients=len(casts),
        build=plan.builder(size, replicas=replicas),
        codec=Codec(plan.layers),
        network=network or parse_network("unit"),
        faults=faults,
        application=Application(),
        recorder=recorder,
        random=Random(seed),
    )
    simulation.start()
    for number, cast in enumerate(casts):
        m = Message(message_id(size + number, 0), cast.destinations, PAYLOAD)
        simulation.cast_at(round(cast.at * DELAY), m)
    simulation.run(END_OF_TIME, 1_000_000)
    assert len(simulation.queue) == 0
    recorder.flush()
    return collector.history("test", size, complete=True)


def deliveries(history: History, number: int) -> dict[int, float]:
    """When each destination delivered the i-th multicast, in delays after it was multicast."""
    rows = history.deliveries
    cast_at = {
        origin_of(message): time
        for message, time in zip(
            history.multicasts.message.tolist(), history.multicasts.time.tolist(), strict=True
        )
    }
    client = history.processes + number
    return {
        process: (time - cast_at[client]) / DELAY
        for process, time, message in zip(
            rows.process.tolist(), rows.time.tolist(), rows.message.tolist(), strict=True
        )
        if origin_of(message) == client
    }


def latency(history: History, number: int) -> float:
    """Delays from the i-th multicast to its last delivery."""
    return max(deliveries(history, number).values())


def orders(history: History) -> list[list[int]]:
    """What each process delivered, in order, as numbers of multicasts."""
    found: list[list[int]] = [[] for _ in range(history.processes)]
    rows = history.deliveries
    for process, message in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
        found[process].append(origin_of(message) - history.processes)
    return found


class Sent(NamedTuple):
    """A packet as it was sent."""

    packet: str
    source: int
    target: int
    message: MessageId
    time: float
    header_bytes: int
    detail: str | None


def packets(history: History) -> list[Sent]:
    """Every packet that was sent, also by clients, in order of time."""
    rows = history.sends
    found = [
        Sent(
            rows.packet[rows.packet_code[i]],
            int(rows.process[i]),
            int(rows.peer[i]),
            int(rows.message[i]),
            int(rows.time[i]) / DELAY,
            int(rows.header_bytes[i]),
            rows.detail[rows.detail_code[i]],
        )
        for i in range(len(rows.process))
    ]
    return sorted(found, key=lambda sent: sent.time)
