"""Processes that share processors: who runs, and what has arrived for those that do not.

Each server is a process, and all clients together are one more. What arrives for a process waits
in its inbox until a processor is free. Then the process handles all that is there in one round, as
event loops do; what it sends leaves at the end of the round, one frame for each receiver.
"""

from __future__ import annotations

from collections import deque
from typing import final

from flexgroup.worlds.simulator.network import Network


@final
class Arrived:
    """Something that waits for a process: when it came, from whom, and what it is."""

    __slots__ = ("cause", "sent", "source", "time")

    def __init__(self, time: int, source: int, sent: int, cause: object) -> None:
        self.time = time
        self.source = source
        self.sent = sent
        self.cause = cause


@final
class RoundEnd:
    """The processor of a process is free again, and what the process sent leaves."""

    __slots__ = ()


@final
class Delivered:
    """The clients are told that a member was given a message, which answers nobody."""

    __slots__ = ()


@final
class Machine:
    """The processors, and what waits for them; processes take turns in the order they could run."""

    def __init__(self, network: Network, size: int) -> None:
        self.clients = size
        """The number that stands for the process of all clients."""
        self.current = -1
        """Which process has its round computed now; -1 for none."""
        self.outbox: list[tuple[int, int, int, object]] = []
        """What the current round sends: to whom, at which step, with how much delay, and what."""
        self.own: list[tuple[int, object]] = []
        """What the current process sends itself: at which step, and what."""
        self._network = network
        self._free = network.cores
        self._inboxes: list[list[Arrived]] = [[] for _ in range(size + 1)]
        self._is_waiting = [False] * (size + 1)
        """Whether a process waits for a processor, or has one."""
        self._ready: deque[int] = deque()
        self._receivers: set[int] = set()
        self._busy_factor = 1.0 / (1.0 - network.background)

    def arrive(self, process: int, arrived: Arrived) -> None:
        self._inboxes[process].append(arrived)
        if not self._is_waiting[process]:
            self._is_waiting[process] = True
            self._ready.append(process)

    def begin_round(self) -> list[Arrived]:
        """Give the next process a processor, if there are both, and return what it handles."""
        if not self._free or not self._ready:
            return []
        self._free -= 1
        self.current = self._ready.popleft()
        self._receivers.clear()
        arrived = self._inboxes[self.current]
        self._inboxes[self.current] = []
        return arrived

    def reading(self, arrived: list[Arrived]) -> int:
        """Return what it costs to read a frame from everybody who has sent something."""
        network = self._network
        is_server = self.current != self.clients
        cost = network.read_cost if is_server else network.client_frame_cost
        return len({each.source for each in arrived}) * cost

    def writing(self, receiver: int) -> int:
        """Return what it costs to have a frame for the receiver: nothing, if there is one."""
        if receiver in self._receivers:
            return 0
        self._receivers.add(receiver)
        network = self._network
        return network.write_cost if self.current != self.clients else network.client_frame_cost

    def end_of(self, began: int, ended: int) -> int:
        """Return when a round ends that would end so if nothing else took processor time."""
        return began + int((ended - began) * self._busy_factor)

    def leave(self, process: int) -> None:
        """Take the processor from a process, whose round has ended."""
        self._free += 1
        if self._inboxes[process]:
            self._ready.append(process)
        else:
            self._is_waiting[process] = False
