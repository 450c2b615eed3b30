"""A run performed once more, on stacks of its own, with a log of all that happened.

The log is what traces and diagrams are made from. Nothing of the search is used: that the
staged run ends as the search said is a check of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexgroup.core.codec import Codec
from flexgroup.core.errors import FlexGroupError
from flexgroup.core.layer import CancelTimer, Deliver, Offer, Save, Send, SetTimer, Suspect
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.rows import (
    CHOICE,
    CRASH,
    DELIVER,
    MULTICAST,
    RECEIVE,
    SEND,
    SUSPECT,
    TIMER,
)
from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import Scope


class ImpossibleRunError(FlexGroupError):
    """A run tells of something that cannot happen there."""


@dataclass(frozen=True)
class Logged:
    """One event at a process; `time` counts the happenings of the run."""

    kind: int
    process: int
    step: int
    time: int
    message: MessageId = NO_MESSAGE
    peer: int = 0
    packet: Packet | None = None
    depth: int = 0
    sent: int = 0
    """Of a packet that arrives, the step at which its sender sent it."""
    sent_time: int = 0
    detail: str | None = None
    m: Message | None = None


@dataclass(frozen=True)
class InFlight:
    packet: Packet
    message: MessageId
    depth: int
    sent: int
    time: int


class Stage:
    """The processes and clients of a scope, moved by happenings."""

    def __init__(self, plan: StackPlan, scope: Scope) -> None:
        self.scope = scope
        self.log: list[Logged] = []
        self.delivered: list[list[Message]] = [[] for _ in range(scope.processes)]
        self.crashed: set[int] = set()
        self.problem = ""
        self._codec = Codec(plan.layers)
        total = scope.processes + scope.clients
        self._stacks: list[Stack] = [
            plan.build(p, scope.processes, scope.groups) for p in range(total)
        ]
        self._channels: dict[tuple[int, int], list[InFlight]] = {}
        self._steps = [0] * total
        self._casts = [0] * total
        self._depths: list[dict[MessageId, int]] = [{} for _ in range(total)]
        self._offers: list[list[Offer]] = [[] for _ in range(total)]
        self._timers: list[list[tuple[int, str]]] = [[] for _ in range(total)]
        self._time = 0
        for process in range(total):
            self._stacks[process].start()
            self._perform(process)

    def perform(self, run: Sequence[Happening]) -> Stage:
        for happening in run:
            self._time += 1
            try:
                self._happen(happening)
            except ImpossibleRunError:
                raise
            except Exception as error:
                self.problem = f"{type(error).__name__}: {error}"
        return self

    @property
    def quiet(self) -> bool:
        """Nothing is in flight to a process that could take it."""
        return not any(
            packets for (_, target), packets in self._channels.items() if target not in self.crashed
        )

    def _happen(self, happening: Happening) -> None:
        process = happening.process
        stack = self._stacks[process]
        kind = happening.kind
        if kind in ("receive", "lost", "doubled"):
            self._packet(happening)
        elif kind == "cast":
            destinations = self.scope.casts[happening.number].destinations
            m = Message(message_id(process, self._casts[process]), destinations, b"")
            self._casts[process] += 1
            self._write(MULTICAST, process, message=m.id, m=m)
            stack.cast(m)
            self._perform(process)
        elif kind == "timer":
            level = self._end_timer(process, happening.name)
            detail = f'{{"level":{level},"name":"{happening.name}"}}'
            self._write(TIMER, process, detail=detail)
            stack.timer(level, happening.name)
            self._perform(process)
        elif kind == "choice":
            if not self._offers[process]:
                raise ImpossibleRunError(f"process {process} has offered no choice")
            offer = self._offers[process].pop(0)
            detail = f'{{"level":{offer.level},"name":"{offer.name}","chosen":{happening.number}}}'
            self._write(CHOICE, process, detail=detail)
            stack.choose(offer.level, offer.name, happening.number)
            self._perform(process)
        elif kind == "crash":
            self._write(CRASH, process)
            self.crashed.add(process)
        else:
            self._write(SUSPECT, process, peer=happening.source, detail='{"suspected":true}')
            stack.notice(Suspect(happening.source))
            self._perform(process)

    def _packet(self, happening: Happening) -> None:
        channel = self._channels.get((happening.source, happening.process), [])
        if happening.place >= len(channel):
            raise ImpossibleRunError(
                f"no packet {happening.place} from {happening.source} to {happening.process}"
            )
        flying = channel[happening.place]
        if happening.kind == "doubled":
            channel.insert(happening.place, flying)
            return
        del channel[happening.place]
        if happening.kind == "lost":
            return
        process = happening.process
        depths = self._depths[process]
        depths[flying.message] = max(depths.get(flying.message, 0), flying.depth)
        self.log.append(
            Logged(
                RECEIVE, process, self._steps[process], self._time, flying.message,
                happening.source, flying.packet, flying.depth, flying.sent, flying.time,
            )
        )  # fmt: skip
        self._steps[process] += 1
        self._stacks[process].receive(happening.source, flying.packet)
        self._perform(process)

    def _end_timer(self, process: int, name: str) -> int:
        for level, other in self._timers[process]:
            if other == name:
                self._timers[process].remove((level, name))
                return level
        raise ImpossibleRunError(f"process {process} has set no timer '{name}'")

    def _write(
        self,
        kind: int,
        process: int,
        message: MessageId = NO_MESSAGE,
        peer: int = 0,
        detail: str | None = None,
        m: Message | None = None,
    ) -> None:
        step = self._steps[process]
        self._steps[process] += 1
        self.log.append(Logged(kind, process, step, self._time, message, peer, detail=detail, m=m))

    def _perform(self, process: int) -> None:
        for effect in self._stacks[process].take_effects():
            if isinstance(effect, Send):
                for target in effect.to:
                    self._send(process, target, effect.packet)
            elif isinstance(effect, Deliver):
                m = effect.message
                depth = self._depths[process].get(m.id, 0)
                step = self._steps[process]
                self._steps[process] += 1
                self.log.append(Logged(DELIVER, process, step, self._time, m.id, depth=depth, m=m))
                if process < len(self.delivered):
                    self.delivered[process].append(m)
            elif isinstance(effect, Offer):
                self._offers[process].append(effect)
            elif isinstance(effect, SetTimer):
                if (effect.level, effect.name) not in self._timers[process]:
                    self._timers[process].append((effect.level, effect.name))
            elif isinstance(effect, CancelTimer):
                kept = [t for t in self._timers[process] if t != (effect.level, effect.name)]
                self._timers[process] = kept
            else:
                assert not isinstance(effect, Save) or effect.level >= 0

    def _send(self, process: int, target: int, packet: Packet) -> None:
        about = self._codec.measure(packet).about
        depth = self._depths[process].get(about, 0) + 1
        step = self._steps[process]
        self._steps[process] += 1
        self.log.append(Logged(SEND, process, step, self._time, about, target, packet, depth))
        self._channels.setdefault((process, target), []).append(
            InFlight(packet, about, depth, step, self._time)
        )
