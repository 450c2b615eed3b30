"""A bench: a few processes wired together, with every packet under manual control.

The bench is the smallest world, where protocols are watched step by step: golden scripts, random
schedules and the counterexamples of the explorer all drive it. Nothing moves by itself; a packet
waits in its channel until somebody delivers, drops or duplicates it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.host import Host, UntimedWorld
from flexgroup.core.journal import Journal, Transmission
from flexgroup.core.layer import Leader, Notice, Suspect, Trust, View
from flexgroup.core.message import Message, MessageId, Packet, message_id
from flexgroup.core.replicas import Replicas, check_destinations
from flexgroup.liars.named import Liars, check_liars, with_liars
from flexgroup.protocols.catalogue import StackPlan

Channel = tuple[int, int]

MOMENT = 1_000_000
"""The nanoseconds, in a journal, from one thing that happens on a bench to the next."""


class ImpossibleError(UsageError):
    """What was asked for cannot happen as things stand on the bench."""


@dataclass(frozen=True, slots=True, repr=False)
class InFlight:
    """A packet in a channel, and the step at which its sender sent it."""

    transmission: Transmission
    step: int

    @property
    def packet(self) -> Packet:
        return self.transmission.packet

    def __repr__(self) -> str:
        return repr(self.packet)


class Bench(UntimedWorld):
    """Processes 0 .. size - 1, and a client for every higher number that casts."""

    def __init__(
        self,
        plan: StackPlan,
        size: int,
        groups: tuple[tuple[int, ...], ...] = (),
        journal: Journal | None = None,
        replicas: Replicas = (),
        liars: Liars = (),
    ) -> None:
        super().__init__()
        check_liars(liars, size)
        self.plan = plan
        self.size = size
        self.groups = groups
        """What the layers are told of the sets that messages go to."""
        self.replicas = replicas
        self.hosts: dict[int, Host] = {}
        self.channels: dict[Channel, list[InFlight]] = {}
        self.delivered: list[list[Message]] = [[] for _ in range(size)]
        self.installed: list[list[tuple[int, View]]] = [[] for _ in range(size)]
        """The views of each process, with how many messages it had delivered before."""
        self.leaders: list[list[Leader]] = [[] for _ in range(size)]
        """The leaders that each process was told of."""
        self.messages: dict[MessageId, Message] = {}
        self.now = 0
        self._casts: dict[int, int] = {}
        self._codec = Codec(plan.layers)
        self.liars = {process for process, _ in liars}
        self._build = with_liars(plan.builder(size, groups, replicas), liars)
        self._journal = journal
        for process in range(size):
            self._start(process)

    # What happens, one thing at a time.

    def cast(self, origin: int, destinations: tuple[int, ...], payload: bytes = b"") -> Message:
        """Let a process, or a client (any number from `size` on), multicast a message."""
        for destination in destinations:
            if not 0 <= destination < self.size:
                raise ImpossibleError(
                    f"destination {destination} does not exist; processes are 0 to {self.size - 1}"
                )
        check_destinations(self.replicas, destinations)
        if origin >= self.size and self.plan.closed:
            raise ImpossibleError(
                f"only members multicast with '{self.plan.name}': "
                f"processes 0 to {self.size - 1}, not client {origin}"
            )
        if origin not in self.hosts:
            self._start(origin)
        m = Message(self.next_id(origin), destinations, payload)
        self._casts[origin] = self._casts.get(origin, 0) + 1
        self.messages[m.id] = m
        self.hosts[origin].cast(self._next_moment(), m)
        return m

    def next_id(self, origin: int) -> MessageId:
        """The identity that the next message of this origin will have."""
        return message_id(origin, self._casts.get(origin, 0))

    def deliver(self, source: int, target: int, index: int = 0) -> Packet:
        """Let the packet at this place of a channel arrive; 0 is the oldest."""
        arriving = self._take(source, target, index)
        host = self.hosts[target]
        if host.up:
            try:
                host.receive(self.now, source, arriving.transmission, arriving.step)
            except PeerError:
                if source not in self.liars:
                    raise
                host.refused()
        return arriving.packet

    def remove(self, source: int, target: int, index: int = 0) -> Packet:
        """Take a packet out of its channel: it is lost."""
        return self._take(source, target, index).packet

    def duplicate(self, source: int, target: int, index: int = 0) -> Packet:
        """Let a packet be in its channel twice."""
        twice = self._take(source, target, index)
        self.channels.setdefault((source, target), [])[index:index] = [twice, twice]
        return twice.packet

    def end_timer(self, process: int, level: int, name: str) -> None:
        if (level, name) not in self.timers.get(process, ()):
            raise ImpossibleError(f"process {process} has not set a timer '{name}'")
        self.hosts[process].timer(self._next_moment(), level, name)

    def level_of_timer(self, process: int, name: str) -> int:
        """The lowest layer that has set a timer of this name."""
        levels = [level for level, other in self.timers.get(process, ()) if other == name]
        if not levels:
            raise ImpossibleError(f"process {process} has not set a timer '{name}'")
        return min(levels)

    def choose(self, process: int, chosen: int) -> None:
        """Answer the oldest offer that a process has made."""
        host = self.hosts.get(process)
        if host is None or not host.offers:
            raise ImpossibleError(f"process {process} has offered no choice")
        host.choose(self._next_moment(), chosen)

    def suspect(self, process: int, suspected: int) -> None:
        """Let the failure detector of a process take another for crashed."""
        self.hosts[process].notice(self._next_moment(), Suspect(suspected))

    def trust(self, process: int, trusted: int) -> None:
        """Let the failure detector of a process no longer suspect another."""
        self.hosts[process].notice(self._next_moment(), Trust(trusted))

    def tell(self, process: int, notice: Notice) -> None:
        """Let a process be told of a view, or of a group."""
        self.hosts[process].notice(self._next_moment(), notice)

    def crash(self, process: int) -> None:
        self.hosts[process].crash(self._next_moment())

    def crash_after(self, process: int, effects: int, happens: Callable[[], object]) -> None:
        """Let something happen to a process that crashes when it has done so much about it."""
        if effects < 1:
            raise ImpossibleError("a process crashes after 1 effect or more; let it crash before")
        host = self.hosts[process]
        self.effects_left = effects
        happens()
        self.go_on(host)
        self.crash(process)

    def lose(self, target: int) -> None:
        """Let everything that is in flight to a process be lost."""
        for channel in [channel for channel in self.channels if channel[1] == target]:
            del self.channels[channel]

    def recover(self, process: int) -> None:
        self.plan.check_restarts()
        self.hosts[process].recover(self._next_moment(), self._build(process))

    # What can be seen of it.

    @property
    def timers(self) -> dict[int, list[tuple[int, str]]]:
        """The timers that are set, as (level, name), for each process that has set any."""
        return {process: list(host.timers) for process, host in self.hosts.items() if host.timers}

    @property
    def crashed(self) -> set[int]:
        return {process for process, host in self.hosts.items() if not host.up}

    @property
    def quiet(self) -> bool:
        """Nothing is in flight."""
        return not self.channels

    # What hosts ask for.

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        for target in to:
            if self.is_cut(host):
                return
            sent = InFlight(transmission, host.sent(target, transmission))
            self.channels.setdefault((host.process, target), []).append(sent)

    def on_deliver(self, host: Host, m: Message) -> None:
        self.delivered[host.process].append(m)
        self.is_cut(host)

    def on_notice(self, host: Host, notice: Notice) -> None:
        if isinstance(notice, View):
            before = len(self.delivered[host.process])
            self.installed[host.process].append((before, notice))
        elif isinstance(notice, Leader):
            self.leaders[host.process].append(notice)

    def _start(self, process: int) -> None:
        stack = self._build(process)
        host = self.hosts[process] = Host(stack, self, self._codec, self._journal)
        host.start(self.now)

    def _take(self, source: int, target: int, index: int) -> InFlight:
        channel = self.channels.get((source, target), [])
        if index >= len(channel):
            raise ImpossibleError(f"there is no packet {index} in flight from {source} to {target}")
        self._next_moment()
        taken = channel.pop(index)
        if not channel:
            del self.channels[source, target]
        return taken

    def _next_moment(self) -> int:
        self.now += MOMENT
        return self.now
