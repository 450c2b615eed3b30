"""Clients: who multicasts, and when the next message follows.

A closed-loop client multicasts, waits for the answer, and multicasts again; an open-loop
client multicasts at random times at a given rate, answers or not. Clients are numbered
after the processes. Who answers, unless somebody chooses, is the protocol's: all destinations, or
the last one. Where processes replicate each other, all members of each destination group answer, or
those of the last group, and a client is content with the first answer of each.

Members multicast as planned. Nobody sends them answers: what all have delivered is answered.
Where only members multicast, a client hands its messages to one of them, in no time. If a scenario
says so, that is the first destination, as clients of real servers may have it.
"""

from __future__ import annotations

from math import log
from random import Random
from typing import Final, final

from flexgroup.core.message import Message, message_id, origin_of
from flexgroup.core.replicas import Replicas
from flexgroup.workloads.workload import Workload
from flexgroup.worlds.simulator.engine import Application, Simulation

SECOND: Final = 1_000_000_000

NOBODY: Final = -1

START_SPREAD: Final = 1000
"""Clients start within this many nanoseconds, so that no two move in lockstep by accident."""


@final
class Waiting:
    """A message that is not fully answered: since when, how many answers it lacks, whose it is,
    whom it went to, and the groups of replicas that have answered."""

    __slots__ = ("client", "destinations", "groups", "lacking", "since")

    def __init__(
        self, since: int, lacking: int, client: int, destinations: tuple[int, ...]
    ) -> None:
        self.since = since
        self.lacking = lacking
        self.client = client
        self.destinations = destinations
        self.groups: tuple[int, ...] = ()


class Clients(Application):
    """All clients of a run, and what they saw."""

    def __init__(
        self,
        *,
        size: int,
        clients: int,
        workload: Workload,
        stop_at: int,
        last_answers: bool,
        rate: float,
        random: Random,
        planned: list[tuple[int, int]],
        members_only: bool,
        by_first: bool = False,
        replicas: Replicas,
        liars: frozenset[int] = frozenset(),
    ) -> None:
        self.size = size
        self.clients = clients
        self.workload = workload
        self.stop_at = stop_at
        self.last_answers = last_answers
        self.rate = rate
        """Messages per second and client; 0 for closed-loop clients."""
        self.random = random
        self.planned = planned
        """Multicasts by members, as (time, process)."""
        self.members_only = members_only
        """Client c has its messages multicast by member c modulo their number."""
        self.by_first = by_first
        """Messages of clients are multicast by their first destinations."""
        self.group_of = {p: number for number, group in enumerate(replicas) for p in group}
        """The group of each process, where one answer of a group is enough."""
        self.liars = liars
        """Who is Byzantine: what they deliver or answer, clients do not believe."""
        self.multicasts = 0
        self.deliveries = 0
        self.answered_count = 0
        self.answered_in_time = 0
        """How many messages were answered before the clients stopped."""
        self.latency_sum = 0
        self.turned_away = 0
        """How many messages clients handed to a member that had crashed: nobody multicast them."""
        self._sent = [0] * (size + clients)
        self._waiting: dict[int, Waiting] = {}
        self._payload = bytes(workload.payload_bytes)

    def start(self, simulation: Simulation) -> None:
        for client in range(self.clients):
            first = simulation.now + int(self.random.random() * START_SPREAD)
            if self.rate > 0:
                first += self._pause()
            simulation.alarm(first, client)
        for time, process in self.planned:
            m = self._next_message(process, self.workload.next(process, self.random))
            lacking = self._answers_to(m.destinations)
            self._waiting[m.id] = Waiting(time, lacking, NOBODY, m.destinations)
            simulation.cast_at(time, m)

    def alarmed(self, simulation: Simulation, client: int, time: int) -> None:
        self._multicast(simulation, client, time)
        if self.rate > 0 and time < self.stop_at:
            simulation.alarm(time + self._pause(), client)

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        if process in self.liars:
            return
        self.deliveries += 1
        client = origin_of(m.id)
        if client < self.size:
            waiting = self._waiting.get(m.id)
            if waiting is None:
                return
            if waiting.client == NOBODY:
                self.answered(simulation, NOBODY, process, time, m.id)
                return
            client = self.size + waiting.client
        if not self.last_answers or self._is_last(process, m.destinations):
            simulation.answer(process, client, m.id)

    def answered(
        self, simulation: Simulation, client: int, process: int, time: int, message: int
    ) -> None:
        waiting = self._waiting.get(message)
        if waiting is None:
            return
        if self.group_of:
            group = self.group_of[process]
            if group in waiting.groups:
                return
            waiting.groups = (*waiting.groups, group)
        if waiting.lacking > 1:
            waiting.lacking -= 1
            return
        del self._waiting[message]
        self.answered_count += 1
        if time < self.stop_at:
            self.answered_in_time += 1
        self.latency_sum += time - waiting.since
        if self.rate == 0 and waiting.client != NOBODY:
            self._multicast(simulation, waiting.client, time)

    def _multicast(self, simulation: Simulation, client: int, time: int) -> None:
        if time >= self.stop_at:
            return
        destinations = self.workload.next(client, self.random)
        process = self.size + client
        if self.by_first:
            process = destinations[0]
        elif self.members_only:
            process = client % self.size
        m = self._next_message(process, destinations)
        lacking = 1 if self.last_answers else self._answers_to(m.destinations)
        self._waiting[m.id] = Waiting(time, lacking, client, m.destinations)
        if not simulation.cast(process, time, m):
            self.turned_away += 1

    def still_waiting(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """List the clients of a closed loop that have no answer to their last message: each with
        the message, and with the processes that it was multicast by, if by a member, and went to.
        """
        if self.rate > 0:
            return []
        return [
            (
                self.size + waiting.client,
                message,
                waiting.destinations
                if origin_of(message) >= self.size
                else (origin_of(message), *waiting.destinations),
            )
            for message, waiting in self._waiting.items()
            if waiting.client != NOBODY
        ]

    def _answers_to(self, destinations: tuple[int, ...]) -> int:
        """How many answers a message to these lacks, if all of them answer that do not lie."""
        honest = [destination for destination in destinations if destination not in self.liars]
        if self.group_of:
            return len({self.group_of[destination] for destination in honest})
        return len(honest)

    def _is_last(self, process: int, destinations: tuple[int, ...]) -> bool:
        """Tell whether a process is the last destination that does not lie, or in its group."""
        last = destinations[-1]
        if self.liars:
            last = max([p for p in destinations if p not in self.liars], default=NOBODY)
        return process == last or (
            bool(self.group_of) and self.group_of[process] == self.group_of[last]
        )

    def _next_message(self, process: int, destinations: tuple[int, ...]) -> Message:
        m = Message(message_id(process, self._sent[process]), destinations, self._payload)
        self._sent[process] += 1
        self.multicasts += 1
        return m

    def _pause(self) -> int:
        return max(1, int(-log(1.0 - self.random.random()) * SECOND / self.rate))
