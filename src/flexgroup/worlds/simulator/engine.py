"""The discrete-event simulator: hosts stacks, moves their packets, records the trace.

One event is taken from the queue at a time. A packet that arrives waits until its process
is free, is handled when its cost has been paid, and what the stack then asks for happens
from that moment on. The whole handling of a packet is done when its arrival is taken from
the queue: processes handle packets in order of arrival and crashes are planned ahead, so
nothing that is taken later can change it.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.codec import Codec
from flexgroup.core.layer import (
    CancelTimer,
    Deliver,
    Effect,
    Offer,
    Save,
    Send,
    SetTimer,
    Stored,
    Suspect,
    Trust,
)
from flexgroup.core.message import NO_MESSAGE, Message, Packet, origin_of
from flexgroup.core.stack import Stack
from flexgroup.trace.recorder import (
    CHOICE,
    CRASH,
    RECEIVE,
    RECOVER,
    SEND,
    SUSPECT,
    TIMER,
    Recorder,
)
from flexgroup.worlds.simulator.events import (
    Answer,
    Arrival,
    Cast,
    Crash,
    Detection,
    Event,
    EventQueue,
    NextCast,
    Recovery,
    Sending,
    TimerEnd,
)
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.network import Network

NEVER: Final = 1 << 61

TICK: Final = 1_000_000
"""A timer tick in nanoseconds."""

DEPTHS_KEPT: Final = 1 << 16
"""Of how many messages a process remembers the depth at which it last heard of them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class StackFactory:
    """Builds the stack of a process, at the start and after a crash."""

    def build(self, process: int) -> Stack:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Application:
    """What runs on top of the stacks: it hears of deliveries, answers and its own alarms."""

    def start(self, simulation: Simulation) -> None:
        pass

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        pass

    def answered(self, simulation: Simulation, event: Answer) -> None:
        pass

    def next_cast(self, simulation: Simulation, event: NextCast) -> None:
        pass


@final
class Host:
    """A process of the simulation."""

    __slots__ = ("busy_until", "crash_at", "depths", "process", "saved", "stack", "timers", "up")

    def __init__(self, process: int, stack: Stack, crash_at: int) -> None:
        self.process = process
        self.stack = stack
        self.up = True
        self.busy_until = 0
        self.crash_at = crash_at
        self.saved: list[Stored] = [None] * len(stack.layers)
        self.timers: dict[tuple[int, str], int] = {}
        self.depths: dict[int, int] = {}
        """Communication steps since its multicast, for messages heard of and kept waiting."""


@final
class Simulation:
    """One run. Equal arguments give equal runs."""

    def __init__(
        self,
        size: int,
        clients: int,
        factory: StackFactory,
        codec: Codec,
        network: Network,
        faults: FaultPlan,
        application: Application,
        recorder: Recorder,
        random: Random,
    ) -> None:
        self.size = size
        self.now = 0
        self.handled = 0
        self.queue = EventQueue()
        self.network = network
        self.random = random
        self.recorder = recorder
        self.application = application
        self._factory = factory
        self._codec = codec
        self._faults = faults
        self._total = size + clients
        self._crash_times = [faults.crash_times(process) for process in range(self._total)]
        self.hosts = [
            Host(process, factory.build(process), self._next_crash(process, 0))
            for process in range(self._total)
        ]
        self._last_arrivals: list[list[int]] = [[] for _ in range(self._total)]
        self._timer_number = 0
        self._unreliable = network.loss > 0 or network.duplication > 0 or bool(faults.partitions)
        self._plan_faults()

    def start(self) -> None:
        for host in self.hosts:
            host.stack.start()
            self._act(host, 0, NO_MESSAGE, 0)
        self.application.start(self)

    def run(self, until: int, at_most: int) -> bool:
        """Handle up to `at_most` events that happen before `until`; False when none is left."""
        queue = self.queue
        for _ in range(at_most):
            if not len(queue):
                return False
            event = queue.pop()
            if event.time >= until:
                queue.push(event)
                return False
            self.now = event.time
            self.handled += 1
            if isinstance(event, Arrival):
                self._arrive(event)
            else:
                self._happen(event)
        self.recorder.flush_if_full()
        return True

    def cast_at(self, time: int, m: Message) -> None:
        """Let the origin of m multicast it at this time."""
        self.queue.push(Cast(time, m))

    def cast(self, process: int, time: int, m: Message) -> None:
        """Let this process multicast m now, or as soon as it is free."""
        host = self.hosts[process]
        start = time if time > host.busy_until else host.busy_until
        if not host.up or start > host.crash_at:
            return
        payload = m.payload
        size = 0 if isinstance(payload, Packet) else len(payload)
        self.recorder.multicast(process, start, m, size)
        host.stack.cast(m)
        self._act(host, start, m.id, 0)

    def answer(self, process: int, client: int, message: int) -> None:
        """Let a process send a client the answer to its message."""
        host = self.hosts[process]
        host.busy_until += self.network.cost_of_sending(0)
        delay = self.network.delay(process, client, None, self.random)
        self.queue.push(Answer(host.busy_until + delay, client, message))

    def _arrive(self, arrival: Arrival) -> None:
        host = self.hosts[arrival.target]
        sending = arrival.sending
        time = arrival.time
        start = time if time > host.busy_until else host.busy_until
        finish = start
        if arrival.source != arrival.target and arrival.target < self.size:
            finish += sending.receive_cost
        if not host.up or finish > host.crash_at:
            return
        recorder = self.recorder
        recorder.receives.add(
            RECEIVE,
            arrival.target,
            recorder.next_step(arrival.target),
            finish,
            sending.message,
            arrival.source,
            sending.label,
            sending.depth,
            sending.header_bytes,
            sending.payload_bytes,
            arrival.sent,
            start - time,
        )
        host.stack.receive(arrival.source, sending.packet)
        self._act(host, finish, sending.message, sending.depth)

    def _act(self, host: Host, time: int, about: int, depth: int) -> None:
        """Do what the stack asked for after an event about a message, at this depth."""
        if time > host.busy_until:
            host.busy_until = time
        answered = about == NO_MESSAGE
        moved = NO_MESSAGE
        moved_depth = 0
        effects = host.stack.take_effects()
        while effects:
            for effect in effects:
                if isinstance(effect, Send):
                    sending = self._sending(effect.packet)
                    message = sending.message
                    if message == about:
                        sending.depth = depth + 1
                        answered = True
                    elif message == moved:
                        sending.depth = moved_depth + 1
                    elif message != NO_MESSAGE:
                        moved = message
                        moved_depth = host.depths.pop(message, 0)
                        sending.depth = moved_depth + 1
                    else:
                        sending.depth = 1
                    self._send(host, effect.to, sending)
                elif isinstance(effect, Deliver):
                    m = effect.message
                    moved_depth = host.depths.pop(m.id, 0)
                    moved = m.id
                    if moved == about:
                        moved_depth = depth
                        answered = True
                    payload = m.payload
                    size = 0 if isinstance(payload, Packet) else len(payload)
                    if host.busy_until <= host.crash_at:
                        self.recorder.deliver(
                            host.process, host.busy_until, moved, moved_depth, size
                        )
                        self.application.delivered(self, host.process, host.busy_until, m)
                else:
                    self._do_other(host, effect)
            effects = host.stack.take_effects()
        if not answered:
            depths = host.depths
            if len(depths) >= DEPTHS_KEPT:
                del depths[next(iter(depths))]
            if depth > depths.get(about, 0):
                depths[about] = depth

    def _sending(self, packet: Packet) -> Sending:
        measure = self._codec.measure(packet)
        size = measure.header_bytes + measure.payload_bytes
        return Sending(
            packet,
            measure.about,
            self.recorder.label_of(packet),
            0,
            measure.header_bytes,
            measure.payload_bytes,
            self.network.cost_of_sending(size),
            self.network.cost_of_receiving(size),
        )

    def _send(self, host: Host, to: tuple[int, ...], sending: Sending) -> None:
        source = host.process
        network = self.network
        recorder = self.recorder
        for target in to:
            if target != source and source < self.size:
                host.busy_until += sending.send_cost
            departure = host.busy_until
            if departure > host.crash_at:
                return
            step = recorder.next_step(source)
            recorder.sends.add(
                SEND,
                source,
                step,
                departure,
                sending.message,
                target,
                sending.label,
                sending.depth,
                sending.header_bytes,
                sending.payload_bytes,
                0,
                0,
            )
            if target == source:
                self.queue.push(Arrival(departure, target, source, step, sending))
                continue
            if self._unreliable:
                self._send_unreliably(departure, target, source, step, sending)
                continue
            arrival = departure + network.delay(source, target, sending.packet, self.random)
            self._schedule(Arrival(arrival, target, source, step, sending))

    def _schedule(self, arrival: Arrival) -> None:
        if self.network.fifo:
            last = self._last_arrivals[arrival.source]
            if not last:
                last = [0] * self._total
                self._last_arrivals[arrival.source] = last
            if arrival.time < last[arrival.target]:
                arrival.time = last[arrival.target]
            last[arrival.target] = arrival.time
        self.queue.push(arrival)

    def _send_unreliably(
        self, departure: int, target: int, source: int, step: int, sending: Sending
    ) -> None:
        network = self.network
        leaves = departure
        for partition in self._faults.partitions:
            if partition.separates(source, target, departure):
                if partition.drop:
                    return
                leaves = max(leaves, partition.end)
        if network.loss > 0 and self.random.random() < network.loss:
            return
        copies = 1
        if network.duplication > 0 and self.random.random() < network.duplication:
            copies = 2
        for _ in range(copies):
            arrival = leaves + network.delay(source, target, sending.packet, self.random)
            self._schedule(Arrival(arrival, target, source, step, sending))

    def _do_other(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self._timer_number += 1
            host.timers[effect.level, effect.name] = self._timer_number
            end = host.busy_until + effect.ticks * TICK
            self.queue.push(
                TimerEnd(end, host.process, effect.level, effect.name, self._timer_number)
            )
        elif isinstance(effect, CancelTimer):
            host.timers.pop((effect.level, effect.name), None)
        elif isinstance(effect, Offer):
            chosen = int(self.random.random() * effect.options)
            detail = f'{{"level":{effect.level},"name":"{effect.name}","chosen":{chosen}}}'
            self.recorder.other(CHOICE, host.process, host.busy_until, 0, detail)
            host.stack.choose(effect.level, effect.name, chosen)
        elif isinstance(effect, Save):
            if host.busy_until <= host.crash_at:
                host.saved[effect.level] = effect.value

    def _happen(self, event: Event) -> None:
        if isinstance(event, Answer):
            self.application.answered(self, event)
        elif isinstance(event, NextCast):
            self.application.next_cast(self, event)
        elif isinstance(event, Cast):
            self.cast(origin_of(event.m.id), event.time, event.m)
        elif isinstance(event, TimerEnd):
            self._end_timer(event)
        elif isinstance(event, Detection):
            self._detect(event)
        elif isinstance(event, Crash):
            self._crash(self.hosts[event.process], event.time)
        elif isinstance(event, Recovery):
            self._recover(self.hosts[event.process], event.time)

    def _end_timer(self, event: TimerEnd) -> None:
        host = self.hosts[event.process]
        key = (event.level, event.name)
        start = max(event.time, host.busy_until)
        if host.timers.get(key) != event.number or not host.up or start > host.crash_at:
            return
        del host.timers[key]
        detail = f'{{"level":{event.level},"name":"{event.name}"}}'
        self.recorder.other(TIMER, event.process, start, 0, detail)
        host.stack.timer(event.level, event.name)
        self._act(host, start, NO_MESSAGE, 0)

    def _plan_faults(self) -> None:
        plan = self._faults
        for time, process in plan.crashes:
            self.queue.push(Crash(time, process))
        for time, process in plan.recoveries:
            self.queue.push(Recovery(time, process))
        for start, end, suspicious, suspected in plan.suspicions:
            self.queue.push(Detection(start, suspicious, Suspect(suspected)))
            self.queue.push(Detection(end, suspicious, Trust(suspected)))
        if plan.detection < 0:
            return
        for process in range(self.size):
            for time, crashed in plan.crashes:
                if crashed != process:
                    self.queue.push(Detection(time + plan.detection, process, Suspect(crashed)))
            for time, recovered in plan.recoveries:
                if recovered != process:
                    self.queue.push(Detection(time + plan.detection, process, Trust(recovered)))

    def _detect(self, event: Detection) -> None:
        host = self.hosts[event.process]
        start = max(event.time, host.busy_until)
        if not host.up or start > host.crash_at:
            return
        notice = event.notice
        if isinstance(notice, Suspect):
            self.recorder.other(SUSPECT, host.process, start, notice.process, '{"suspected":true}')
        elif isinstance(notice, Trust):
            self.recorder.other(SUSPECT, host.process, start, notice.process, '{"suspected":false}')
        host.stack.notice(notice)
        self._act(host, start, NO_MESSAGE, 0)

    def _next_crash(self, process: int, time: int) -> int:
        for crash in self._crash_times[process]:
            if crash >= time:
                return crash
        return NEVER

    def _crash(self, host: Host, time: int) -> None:
        if not host.up:
            return
        host.up = False
        host.timers.clear()
        host.depths.clear()
        self.recorder.other(CRASH, host.process, time, 0, None)

    def _recover(self, host: Host, time: int) -> None:
        if host.up:
            return
        host.up = True
        host.crash_at = self._next_crash(host.process, time)
        host.busy_until = time
        host.stack = self._factory.build(host.process)
        self.recorder.other(RECOVER, host.process, time, 0, None)
        host.stack.restart(host.saved)
        self._act(host, time, NO_MESSAGE, 0)
