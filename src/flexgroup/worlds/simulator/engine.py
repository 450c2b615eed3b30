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
from flexgroup.core.journal import CHOICE, CRASH, RECEIVE, RECOVER, SEND, SUSPECT, TIMER
from flexgroup.core.layer import (
    CancelTimer,
    Deliver,
    Effect,
    Notice,
    Offer,
    Save,
    Send,
    SetTimer,
    Suspect,
    Trust,
)
from flexgroup.core.message import NO_MESSAGE, Message, Packet, origin_of
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.simulator.events import (
    Answer,
    Cast,
    Cause,
    Crash,
    Detection,
    EventQueue,
    NextCast,
    Recovery,
    Sending,
    TimerEnd,
)
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.hosts import Host, StackFactory
from flexgroup.worlds.simulator.network import Network

TICK: Final = 1_000_000
"""A timer tick in nanoseconds."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Application:
    """What runs on top of the stacks: it hears of deliveries, answers and its own alarms."""

    def start(self, simulation: Simulation) -> None:
        pass

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        pass

    def answered(self, simulation: Simulation, client: int, time: int, message: int) -> None:
        pass

    def alarmed(self, simulation: Simulation, client: int, time: int) -> None:
        pass


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
        self.hosts = [
            Host(process, factory.build(process), faults.next_crash(process, 0))
            for process in range(self._total)
        ]
        self._timer_number = 0
        self._contention = network.contention
        self._unreliable = network.loss > 0 or network.duplication > 0 or bool(faults.partitions)
        self._plan_faults()

    def start(self) -> None:
        for host in self.hosts:
            host.stack.start()
            self._act_after(host, 0, NO_MESSAGE)
        self.application.start(self)

    def run(self, until: int, at_most: int) -> bool:
        """Handle up to `at_most` events that happen before `until`; False when none is left."""
        queue = self.queue
        left = at_most
        while left and queue.is_before(until):
            left -= 1
            cause = queue.pop()
            if isinstance(cause, Sending):
                self._arrive(queue.target, queue.source, queue.sent, queue.time, cause)
            else:
                self._happen(queue.target, queue.time, cause)
        self.now = queue.time
        self.handled += at_most - left
        self.recorder.flush_if_full()
        return left == 0

    def cast_at(self, time: int, m: Message) -> None:
        """Let the origin of m multicast it at this time."""
        self.queue.push(time, origin_of(m.id), 0, 0, Cast(m))

    def alarm(self, time: int, client: int) -> None:
        """Let the application hear of this client at this time."""
        self.queue.push(time, client, 0, 0, NextCast())

    def cast(self, process: int, time: int, m: Message) -> None:
        """Let this process multicast m now, or as soon as it is free."""
        host = self.hosts[process]
        start = self._free_at(host, time)
        if not host.up or start > host.crash_at:
            return
        self.recorder.multicast(process, host.step, start, m)
        host.step += 1
        host.stack.cast(m)
        self._act_after(host, start, m.id)

    def answer(self, process: int, client: int, message: int) -> None:
        """Let a process send a client the answer to its message."""
        host = self.hosts[process]
        host.busy_until += self.network.send_cost
        delay = self.network.delay(process, client, None, self.random)
        self.queue.push(host.busy_until + delay, client, process, 0, Answer(message))

    def _arrive(self, target: int, source: int, sent: int, time: int, sending: Sending) -> None:
        host = self.hosts[target]
        start = time if time > host.busy_until or not self._contention else host.busy_until
        finish = start
        if source != target and target < self.size:
            finish += sending.receive_cost
        if not host.up or finish > host.crash_at:
            return
        step = host.step
        host.step = step + 1
        self.recorder.receives.add(
            RECEIVE,
            target,
            step,
            finish,
            sending.message,
            source,
            sending.label,
            sending.depth,
            sending.header_bytes,
            sending.payload_bytes,
            sent,
            start - time,
        )
        host.busy_until = finish
        stack = host.stack
        stack.receive(source, sending.packet)
        effects = stack.take_effects()
        if effects:
            self._act(host, effects, sending.message, sending.depth)
        else:
            host.remember_depth(sending.message, sending.depth)

    def _free_at(self, host: Host, time: int) -> int:
        """From when the process can attend to what happens now."""
        return time if time > host.busy_until or not self._contention else host.busy_until

    def _act_after(self, host: Host, time: int, about: int) -> None:
        """Do what the stack asked for after an event other than a packet."""
        host.busy_until = time
        self._act(host, host.stack.take_effects(), about, 0)

    def _act(self, host: Host, effects: list[Effect], about: int, depth: int) -> None:
        """Do what the stack asked for after an event about a message, at this depth."""
        answered = False
        moved = NO_MESSAGE
        moved_depth = 0
        sending: Sending | None = None
        while effects:
            for effect in effects:
                if isinstance(effect, Send):
                    if sending is not None and effect.packet is sending.packet:
                        self._send(host, effect.to, sending)
                        continue
                    sending = self._sending(effect.packet)
                    message = sending.message
                    if message == about:
                        sending.depth = depth + 1
                        answered = True
                    elif message == moved:
                        sending.depth = moved_depth + 1
                    elif message != NO_MESSAGE:
                        moved = message
                        moved_depth = host.forget_depth(message)
                        sending.depth = moved_depth + 1
                    self._send(host, effect.to, sending)
                elif isinstance(effect, Deliver):
                    sending = None
                    m = effect.message
                    moved = m.id
                    moved_depth = host.forget_depth(moved)
                    if moved == about:
                        moved_depth = depth
                        answered = True
                    if host.busy_until <= host.crash_at:
                        self.recorder.deliver(
                            host.process, host.step, host.busy_until, m, moved_depth
                        )
                        host.step += 1
                        self.application.delivered(self, host.process, host.busy_until, m)
                else:
                    self._do_other(host, effect)
            effects = host.stack.take_effects()
        if not answered:
            host.remember_depth(about, depth)

    def _sending(self, packet: Packet) -> Sending:
        measure = self._codec.measure(packet)
        network = self.network
        size = measure.header_bytes + measure.payload_bytes
        bytes_cost = size * network.byte_cost_ps // 1000
        return Sending(
            packet,
            measure.about,
            self.recorder.label(packet),
            measure.header_bytes,
            measure.payload_bytes,
            network.send_cost + bytes_cost,
            network.receive_cost + bytes_cost,
        )

    def _send(self, host: Host, to: tuple[int, ...], sending: Sending) -> None:
        source = host.process
        network = self.network
        queue = self.queue
        sends = self.recorder.sends
        cost = sending.send_cost if source < self.size else 0
        message = sending.message
        label = sending.label
        depth = sending.depth
        header_bytes = sending.header_bytes
        payload_bytes = sending.payload_bytes
        for target in to:
            if target != source:
                host.busy_until += cost
            departure = host.busy_until
            if departure > host.crash_at:
                return
            step = host.step
            host.step = step + 1
            sends.add(
                SEND,
                source,
                step,
                departure,
                message,
                target,
                label,
                depth,
                header_bytes,
                payload_bytes,
                0,
                0,
            )
            arrival = departure
            if target != source:
                if self._unreliable:
                    self._send_unreliably(host, target, step, sending)
                    continue
                arrival += network.delay(source, target, sending.packet, self.random)
                if network.fifo:
                    arrival = host.in_order(target, arrival, self._total)
            queue.push(arrival, target, source, step, sending)

    def _send_unreliably(self, host: Host, target: int, step: int, sending: Sending) -> None:
        network = self.network
        source = host.process
        leaves = host.busy_until
        held = True
        while held:
            held = False
            for partition in self._faults.partitions:
                if partition.separates(source, target, leaves):
                    if partition.drop:
                        return
                    leaves = partition.end
                    held = True
        if network.loss > 0 and self.random.random() < network.loss:
            return
        copies = 1
        if network.duplication > 0 and self.random.random() < network.duplication:
            copies = 2
        for _ in range(copies):
            arrival = leaves + network.delay(source, target, sending.packet, self.random)
            if network.fifo:
                arrival = host.in_order(target, arrival, self._total)
            self.queue.push(arrival, target, source, step, sending)

    def _do_other(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self._timer_number += 1
            host.timers[effect.level, effect.name] = self._timer_number
            end = host.busy_until + effect.ticks * TICK
            timer = TimerEnd(effect.level, effect.name, self._timer_number)
            self.queue.push(end, host.process, 0, 0, timer)
        elif isinstance(effect, CancelTimer):
            host.timers.pop((effect.level, effect.name), None)
        elif isinstance(effect, Offer):
            chosen = int(self.random.random() * effect.options)
            detail = f'{{"level":{effect.level},"name":"{effect.name}","chosen":{chosen}}}'
            self._record(host, CHOICE, host.busy_until, 0, detail)
            host.stack.choose(effect.level, effect.name, chosen)
        elif isinstance(effect, Save) and host.busy_until <= host.crash_at:
            host.saved[effect.level] = effect.value

    def _happen(self, target: int, time: int, cause: Cause) -> None:
        if isinstance(cause, Answer):
            self.application.answered(self, target, time, cause.message)
        elif isinstance(cause, NextCast):
            self.application.alarmed(self, target, time)
        elif isinstance(cause, Cast):
            self.cast(target, time, cause.m)
        elif isinstance(cause, TimerEnd):
            self._end_timer(self.hosts[target], time, cause)
        elif isinstance(cause, Detection):
            self._detect(self.hosts[target], time, cause.notice)
        elif isinstance(cause, Crash):
            self._crash(self.hosts[target], time)
        elif isinstance(cause, Recovery):
            self._recover(self.hosts[target], time)

    def _record(self, host: Host, kind: int, time: int, peer: int, detail: str | None) -> None:
        self.recorder.other(kind, host.process, host.step, time, peer, detail)
        host.step += 1

    def _end_timer(self, host: Host, time: int, timer: TimerEnd) -> None:
        key = (timer.level, timer.name)
        start = self._free_at(host, time)
        if host.timers.get(key) != timer.number or not host.up or start > host.crash_at:
            return
        del host.timers[key]
        detail = f'{{"level":{timer.level},"name":"{timer.name}"}}'
        self._record(host, TIMER, start, 0, detail)
        host.stack.timer(timer.level, timer.name)
        self._act_after(host, start, NO_MESSAGE)

    def _plan_faults(self) -> None:
        plan = self._faults
        for time, process in plan.crashes:
            self.queue.push(time, process, 0, 0, Crash())
        for time, process in plan.recoveries:
            self.queue.push(time, process, 0, 0, Recovery())
        for start, end, suspicious, suspected in plan.suspicions:
            self._plan_detection(start, suspicious, Suspect(suspected))
            self._plan_detection(end, suspicious, Trust(suspected))
        if plan.detection < 0:
            return
        for process in range(self.size):
            for time, crashed in plan.crashes:
                if crashed != process:
                    self._plan_detection(time + plan.detection, process, Suspect(crashed))
            for time, recovered in plan.recoveries:
                if recovered != process:
                    self._plan_detection(time + plan.detection, process, Trust(recovered))

    def _plan_detection(self, time: int, process: int, notice: Notice) -> None:
        self.queue.push(time, process, 0, 0, Detection(notice))

    def _detect(self, host: Host, time: int, notice: Notice) -> None:
        start = self._free_at(host, time)
        if not host.up or start > host.crash_at:
            return
        if isinstance(notice, Suspect):
            self._record(host, SUSPECT, start, notice.process, '{"suspected":true}')
        elif isinstance(notice, Trust):
            self._record(host, SUSPECT, start, notice.process, '{"suspected":false}')
        host.stack.notice(notice)
        self._act_after(host, start, NO_MESSAGE)

    def _crash(self, host: Host, time: int) -> None:
        if not host.up:
            return
        host.up = False
        host.timers.clear()
        host.depths.clear()
        self._record(host, CRASH, time, 0, None)

    def _recover(self, host: Host, time: int) -> None:
        if host.up:
            return
        host.up = True
        host.crash_at = self._faults.next_crash(host.process, time)
        host.busy_until = time
        host.stack = self._factory.build(host.process)
        self._record(host, RECOVER, time, 0, None)
        host.stack.restart(host.saved)
        self._act_after(host, time, NO_MESSAGE)
