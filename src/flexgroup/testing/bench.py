"""A bench: a few processes wired together, with every packet under manual control.

The bench is where protocols are watched step by step: golden scripts, random schedules
and counterexamples all drive it. Nothing moves by itself; a packet waits in its channel
until somebody delivers, drops or duplicates it.
"""

from __future__ import annotations

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import (
    CancelTimer,
    Deliver,
    Offer,
    Save,
    Send,
    SetTimer,
    Stored,
    Suspect,
)
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of
from flexgroup.core.stack import Stack
from flexgroup.protocols.catalogue import StackPlan

Channel = tuple[int, int]


class Bench:
    """Processes 0 .. size - 1, and a client of its own for every message cast from outside."""

    def __init__(
        self, plan: StackPlan, size: int, groups: tuple[tuple[int, ...], ...] = ()
    ) -> None:
        self.plan = plan
        self.size = size
        self.groups = groups
        """What the layers are told of the sets that messages go to."""
        self.stacks: dict[int, Stack] = {
            process: plan.build(process, size, groups) for process in range(size)
        }
        self.channels: dict[Channel, list[Packet]] = {}
        self.delivered: list[list[Message]] = [[] for _ in range(size)]
        self.timers: dict[int, list[tuple[int, str]]] = {}
        self.offers: dict[int, list[tuple[int, str, int]]] = {}
        self.saved: dict[int, dict[int, Stored]] = {}
        self.crashed: set[int] = set()
        self.messages: dict[MessageId, Message] = {}
        for process in range(size):
            self.stacks[process].start()
            self.perform(process)

    def cast(self, origin: int, destinations: tuple[int, ...], payload: bytes = b"") -> Message:
        """Let a process, or a client (any number from `size` on), multicast a message."""
        for destination in destinations:
            if not 0 <= destination < self.size:
                raise UsageError(
                    f"destination {destination} does not exist; processes are 0 to {self.size - 1}"
                )
        if origin >= self.size and self.plan.closed:
            raise UsageError(
                f"only members multicast with '{self.plan.name}': "
                f"processes 0 to {self.size - 1}, not client {origin}"
            )
        if origin not in self.stacks:
            self.stacks[origin] = self.plan.build(origin, self.size, self.groups)
        m = Message(self.next_id(origin), destinations, payload)
        self.messages[m.id] = m
        self.stacks[origin].cast(m)
        self.perform(origin)
        return m

    def next_id(self, origin: int) -> MessageId:
        """The identity that the next message of this origin will have."""
        return message_id(origin, sum(1 for sent in self.messages if origin_of(sent) == origin))

    def deliver(self, source: int, target: int, index: int = 0) -> Packet:
        """Let the packet at this place of a channel arrive; 0 is the oldest."""
        packet = self.remove(source, target, index)
        if target not in self.crashed:
            self.stacks[target].receive(source, packet)
            self.perform(target)
        return packet

    def remove(self, source: int, target: int, index: int = 0) -> Packet:
        """Take a packet out of its channel: it is lost."""
        channel = self.channels.get((source, target), [])
        if index >= len(channel):
            raise UsageError(f"there is no packet {index} in flight from {source} to {target}")
        packet = channel.pop(index)
        if not channel:
            del self.channels[source, target]
        return packet

    def duplicate(self, source: int, target: int, index: int = 0) -> Packet:
        packet = self.remove(source, target, index)
        self.channels.setdefault((source, target), [])[index:index] = [packet, packet]
        return packet

    def end_timer(self, process: int, level: int, name: str) -> None:
        if (level, name) not in self.timers.get(process, []):
            raise UsageError(f"process {process} has not set a timer '{name}'")
        self.timers[process].remove((level, name))
        self.stacks[process].timer(level, name)
        self.perform(process)

    def crash(self, process: int) -> None:
        self.crashed.add(process)
        self.timers.pop(process, None)

    def suspect(self, process: int, suspected: int) -> None:
        """Let the failure detector of a process take another for crashed."""
        self.stacks[process].notice(Suspect(suspected))
        self.perform(process)

    def recover(self, process: int) -> None:
        self.crashed.discard(process)
        stack = self.stacks[process] = self.plan.build(process, self.size, self.groups)
        saved = self.saved.get(process, {})
        stack.restart([saved.get(level) for level in range(len(stack.layers))])
        self.perform(process)

    def choose(self, process: int, chosen: int) -> None:
        level, name, _ = self.offers[process].pop(0)
        self.stacks[process].choose(level, name, chosen)
        self.perform(process)

    def perform(self, process: int) -> None:
        """Do what the stack of a process asked for."""
        for effect in self.stacks[process].take_effects():
            if isinstance(effect, Send):
                for target in effect.to:
                    self.channels.setdefault((process, target), []).append(effect.packet)
            elif isinstance(effect, Deliver):
                self.delivered[process].append(effect.message)
            elif isinstance(effect, SetTimer):
                timers = self.timers.setdefault(process, [])
                if (effect.level, effect.name) not in timers:
                    timers.append((effect.level, effect.name))
            elif isinstance(effect, CancelTimer):
                timers = self.timers.get(process, [])
                if (effect.level, effect.name) in timers:
                    timers.remove((effect.level, effect.name))
            elif isinstance(effect, Offer):
                offers = self.offers.setdefault(process, [])
                offers.append((effect.level, effect.name, effect.options))
            elif isinstance(effect, Save):
                self.saved.setdefault(process, {})[effect.level] = effect.value

    @property
    def quiet(self) -> bool:
        """Nothing is in flight."""
        return not self.channels
