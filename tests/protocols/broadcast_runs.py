"""Simulations of a few broadcasts by members, with crashes, for tests that count and measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flexgroup.core.codec import Codec
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, message_id
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.simulator.engine import Application, Simulation
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.networks import parse_network

UNIT = 1_000_000
"""A unit of time of the paper, in nanoseconds: the delay of the network `unit`."""


@dataclass(frozen=True)
class Broadcasts:
    """What happened."""

    sent: Counter[str]
    """Packets by type."""
    delivered: list[list[int]]
    """By process, in order."""
    latency: float
    """Units until the last delivery."""
    layers: list[list[Layer]]
    """The stack of each process in the end."""


def run(
    stack: str | StackPlan,
    size: int,
    casts: Sequence[tuple[float, int]] = ((0.0, 0),),
    network: str = "unit",
    crashes: Sequence[tuple[float, int]] = (),
    detection: float | None = None,
    until: float = 10_000.0,
) -> Broadcasts:
    """Processes broadcast at these times and crash at those; times are in units.

    `detection`: all are told of a crash so long after it; otherwise nobody is.
    """
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    collector = Collector()
    recorder = Recorder(collector)
    faults = FaultPlan()
    faults.crashes = sorted((round(at * UNIT), process) for at, process in crashes)
    if detection is not None:
        faults.detection = round(detection * UNIT)
    simulation = Simulation(
        size=size,
        clients=0,
        build=plan.builder(size, replicas=(tuple(range(size)),) if plan.needs_replicas else ()),
        codec=Codec(plan.layers),
        network=parse_network(network),
        faults=faults,
        application=Application(),
        recorder=recorder,
        random=Random(1),
    )
    simulation.start()
    counts: Counter[int] = Counter()
    for at, origin in casts:
        m = Message(message_id(origin, counts[origin]), tuple(range(size)), b"")
        counts[origin] += 1
        simulation.cast_at(round(at * UNIT), m)
    simulation.run(round(until * UNIT), 100_000_000)
    recorder.flush()
    history = collector.history("test", size, complete=True)
    delivered: list[list[int]] = [[] for _ in range(size)]
    rows = history.deliveries
    for process, m_id in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
        delivered[process].append(m_id)
    sends = history.sends
    return Broadcasts(
        Counter(sends.packet[code] for code in sends.packet_code.tolist()),
        delivered,
        max(rows.time.tolist(), default=0) / UNIT,
        [host.stack.layers for host in simulation.hosts],
    )
