"""Clients: who multicasts, and when the next message follows.

A closed-loop client multicasts, waits for the answer, and multicasts again; an open-loop
client multicasts at random times at a given rate, answers or not. Clients are numbered
after the processes. Who answers is the protocol's: all destinations, or the last one.
"""

from __future__ import annotations

from math import log
from random import Random
from typing import Final

from flexgroup.core.message import Message, message_id, origin_of
from flexgroup.workloads.workload import Workload
from flexgroup.worlds.simulator.engine import Application, Simulation
from flexgroup.worlds.simulator.events import Answer, NextCast

SECOND: Final = 1_000_000_000

START_SPREAD: Final = 1000
"""Clients start within this many nanoseconds, so that no two move in lockstep by accident."""


class Clients(Application):
    """All clients of a run, and what they saw."""

    def __init__(
        self,
        size: int,
        clients: int,
        workload: Workload,
        stop_at: int,
        last_answers: bool,
        rate: float,
        random: Random,
    ) -> None:
        self.size = size
        self.clients = clients
        self.workload = workload
        self.stop_at = stop_at
        self.last_answers = last_answers
        self.rate = rate
        """Messages per second and client; 0 for closed-loop clients."""
        self.random = random
        self.multicasts = 0
        self.deliveries = 0
        self.answered_count = 0
        self.latency_sum = 0
        self._sent = [0] * clients
        self._waiting: dict[int, tuple[int, int]] = {}
        """For each unanswered message, when it was multicast and how many answers it lacks."""
        self._payload = bytes(workload.payload_bytes)

    def start(self, simulation: Simulation) -> None:
        for client in range(self.clients):
            first = simulation.now + int(self.random.random() * START_SPREAD)
            if self.rate > 0:
                first += self._pause()
            simulation.queue.push(NextCast(first, client))

    def next_cast(self, simulation: Simulation, event: NextCast) -> None:
        self._multicast(simulation, event.client, event.time)
        if self.rate > 0 and event.time < self.stop_at:
            simulation.queue.push(NextCast(event.time + self._pause(), event.client))

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        self.deliveries += 1
        client = origin_of(m.id)
        if client >= self.size and (not self.last_answers or process == m.destinations[-1]):
            simulation.answer(process, client, m.id)

    def answered(self, simulation: Simulation, event: Answer) -> None:
        waiting = self._waiting.get(event.message)
        if waiting is None:
            return
        cast_at, lacking = waiting
        if lacking > 1:
            self._waiting[event.message] = (cast_at, lacking - 1)
            return
        del self._waiting[event.message]
        self.answered_count += 1
        self.latency_sum += event.time - cast_at
        if self.rate == 0:
            self._multicast(simulation, event.client - self.size, event.time)

    def _multicast(self, simulation: Simulation, client: int, time: int) -> None:
        if time >= self.stop_at:
            return
        process = self.size + client
        destinations = self.workload.next(client, self.random)
        m = Message(message_id(process, self._sent[client]), destinations, self._payload)
        self._sent[client] += 1
        self.multicasts += 1
        self._waiting[m.id] = (time, 1 if self.last_answers else len(destinations))
        simulation.cast(process, time, m)

    def _pause(self) -> int:
        return max(1, int(-log(1.0 - self.random.random()) * SECOND / self.rate))
