"""The discrete-event simulator: a world that moves packets and time, and lets things fail.

One event is taken from the queue at a time. A packet that arrives waits until its process
is free, is handled when its cost has been paid, and what the stack then asks for happens
from that moment on. The whole handling of a packet is done when its arrival is taken from
the queue: processes handle packets in order of arrival and crashes are planned ahead, so
nothing that is taken later can change it. What is one-sided costs no processor where it
arrives: it is there at once, its completion leaves at once, and the process finds it as soon
as it is free.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.host import Host, World
from flexgroup.core.journal import COMPLETION, OF_PROCESSORS, Transmission
from flexgroup.core.layer import Notice, Save, Store, Suspect, Trust, View, Write
from flexgroup.core.message import Message, origin_of
from flexgroup.core.stack import BuildStack
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.simulator.channels import FifoChannels
from flexgroup.worlds.simulator.events import (
    Answer,
    Crash,
    NextCast,
    Recovery,
    TimerEnd,
    new_event_queue,
)
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.machine import Arrived, Delivered, Machine, RoundEnd
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

    def answered(
        self, simulation: Simulation, client: int, process: int, time: int, message: int
    ) -> None:
        pass

    def alarmed(self, simulation: Simulation, client: int, time: int) -> None:
        pass


@final
class Simulation(World):
    """One run. Equal arguments give equal runs."""

    def __init__(
        self,
        *,
        size: int,
        clients: int,
        build: BuildStack,
        codec: Codec,
        network: Network,
        faults: FaultPlan,
        application: Application,
        recorder: Recorder,
        random: Random,
        liars: frozenset[int] = frozenset(),
    ) -> None:
        self.size = size
        self._liars = liars
        self.now = 0
        self.handled = 0
        self.queue = new_event_queue()
        self.network = network
        self.random = random
        self.recorder = recorder
        self.application = application
        self._build = build
        self._faults = faults
        self._total = size + clients
        self._codec = codec
        self.hosts = [Host(build(p), self, codec, recorder) for p in range(self._total)]
        self._channels = [FifoChannels(self._total) for _ in range(self._total)]
        for host in self.hosts:
            host.crash_at = faults.next_crash(host.process, 0)
        self._timer_number = 0
        self._arrival = 0
        self._begun = 0
        """When the packet arrived that is being handled."""
        self._contention = network.contention
        self._machine = Machine(network, size) if network.cores else None
        """The processors, where processes share them."""
        self._unreliable = network.loss > 0 or network.duplication > 0 or bool(faults.partitions)
        self._clients_time = 0
        """How far the round of the clients has come, where processors are shared."""
        self._plan_faults()

    def start(self) -> None:
        for host in self.hosts:
            host.start(0)
        self.application.start(self)

    def run(self, until: int, at_most: int) -> bool:
        """Handle up to `at_most` events that happen before `until`; False when none is left."""
        queue = self.queue
        left = at_most
        while left and queue.is_before(until):
            left -= 1
            cause = queue.pop()
            if self._machine is not None and self._waits(self._machine, cause):
                continue
            if isinstance(cause, Transmission):
                self._arrive(queue.target, queue.source, queue.sent, queue.time, cause)
            else:
                self._happen(queue.target, queue.time, cause)
        self.now = queue.time
        self.handled += at_most - left
        self.recorder.flush_if_full()
        return left == 0

    def cast_at(self, time: int, m: Message) -> None:
        """Let the origin of m multicast it at this time."""
        self.queue.push(time, origin_of(m.id), 0, 0, m)

    def alarm(self, time: int, client: int) -> None:
        """Let the application hear of this client at this time."""
        self.queue.push(time, client, 0, 0, NextCast())

    def cast(self, process: int, time: int, m: Message) -> bool:
        """Let this process multicast m now, or as soon as it is free; return whether it does, and
        has not crashed then."""
        if self._machine is not None:
            self._hand_over(self._machine, process, time, m)
            return True
        return self._attend(self.hosts[process], time, m)

    def answer(self, process: int, client: int, message: int) -> None:
        """Let a process send a client the answer to its message."""
        host = self.hosts[process]
        machine = self._machine
        if machine is not None:
            told = Answer(process, message)
            machine.outbox.append((machine.clients, client, self._delay(host), told))
            return
        host.time += self.network.send_cost
        delay = self.network.delay(process, client, None, self.random)
        self.queue.push(host.time + delay, client, process, 0, Answer(process, message))

    # What hosts ask for.

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        source = host.process
        network = self.network
        queue = self.queue
        cost = 0
        if self._machine is not None and self._machine.current == source:
            self._send_in_round(self._machine, host, to, transmission)
            return
        if transmission.work_of == COMPLETION:
            self._complete(host, to[0], transmission)
            return
        if source < self.size:
            size = transmission.header_bytes + transmission.payload_bytes
            cost = network.send_cost + size * network.byte_cost_ps // 1000
        recorder = self.recorder
        crash_at = host.crash_at
        departure = host.time
        for target in to:
            if target != source:
                departure += cost
                host.time = departure
            if departure > crash_at:
                return
            # `Host.sent` without the call: nothing else is done as often.
            step = host.step
            host.step = step + 1
            recorder.send(source, step, departure, target, transmission)
            if target == source:
                queue.push(departure, target, source, step, transmission)
            elif self._unreliable:
                self._send_unreliably(host, target, step, transmission)
            else:
                arrival = departure + network.delay(
                    source, target, transmission.packet, self.random
                )
                if network.fifo:
                    arrival = self._channels[source].in_order(target, arrival)
                queue.push(arrival, target, source, step, transmission)

    def on_deliver(self, host: Host, m: Message) -> None:
        machine = self._machine
        if machine is None:
            self.application.delivered(self, host.process, host.time, m)
            return
        host.time += self.network.deliver_cost + machine.writing(machine.clients)
        before = len(machine.outbox)
        self.application.delivered(self, host.process, host.time, m)
        if len(machine.outbox) == before:  # it has answered nobody
            machine.outbox.append((machine.clients, 0, self._delay(host), Delivered()))

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        network = self.network
        if host.process < self.size:
            host.time += network.sync_cost
            if network.stored_byte_cost_ps:
                size = sum([self._size_of(effect) for effect in effects])
                host.time += size * network.stored_byte_cost_ps // 1000
        return host.time <= host.crash_at

    def _size_of(self, effect: Store) -> int:
        if not isinstance(effect, Save | Write):
            return 0
        measured = self._codec.measure(effect.packet)
        return measured.header_bytes + measured.payload_bytes

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        self._timer_number += 1
        timer = TimerEnd(level, name, self._timer_number)
        self.queue.push(host.time + ticks * TICK, host.process, 0, 0, timer)
        return self._timer_number

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        return int(self.random.random() * options)

    # What is done in rounds, where processes share processors.

    def _waits(self, machine: Machine, cause: object) -> bool:
        """Have what happens wait for a processor, and let processes run that have one; return
        whether it is something that needs one."""
        queue = self.queue
        time, target = queue.time, queue.target
        if isinstance(cause, RoundEnd):
            machine.leave(target)
        elif isinstance(cause, (Answer, Delivered)):
            machine.arrive(machine.clients, Arrived(time, queue.source, target, cause))
        elif isinstance(cause, (Transmission, Message, TimerEnd)) and target < self.size:
            machine.arrive(target, Arrived(time, queue.source, queue.sent, cause))
        else:
            return False
        while True:
            arrived = machine.begin_round()
            if not arrived:
                return True
            self._round(machine, time, arrived)

    def _round(self, machine: Machine, began: int, arrived: list[Arrived]) -> None:
        """Let a process handle all that has arrived; what it sends leaves at the end."""
        process = machine.current
        reading = machine.reading(arrived)
        if process == machine.clients:
            self._clients_time = began + reading
            for each in arrived:
                self._clients_time += self.network.client_cost
                if isinstance(each.cause, Answer):
                    answer = each.cause
                    self.application.answered(
                        self, each.sent, answer.process, self._clients_time, answer.message
                    )
            ended = self._clients_time
        else:
            host = self.hosts[process]
            host.time = began + reading
            for each in arrived:
                if isinstance(each.cause, Transmission):
                    self._arrive(process, each.source, each.sent, each.time, each.cause)
                else:
                    if isinstance(each.cause, Message):
                        host.time += self.network.cast_cost
                    self._attend(host, each.time, each.cause)
                while machine.own:
                    step, own = machine.own.pop(0)
                    assert isinstance(own, Transmission)
                    self._arrive(process, process, step, host.time, own)
            ended = host.time
        ended = machine.end_of(began, ended)
        for target, step, delay, sent in machine.outbox:
            arrival = ended + delay
            if isinstance(sent, Transmission) and self.network.fifo:
                arrival = self._channels[process].in_order(target, arrival)
            if target == machine.clients:
                self.queue.push(arrival, step, process, 0, sent)
            else:
                self.queue.push(arrival, target, process, step, sent)
        machine.outbox.clear()
        machine.current = -1
        self.queue.push(ended, process, 0, 0, RoundEnd())

    def _send_in_round(
        self, machine: Machine, host: Host, to: tuple[int, ...], transmission: Transmission
    ) -> None:
        network = self.network
        size = transmission.header_bytes + transmission.payload_bytes
        cost = network.send_cost + size * network.byte_cost_ps // 1000
        for target in to:
            if target != host.process:
                host.time += cost + machine.writing(target)
            step = host.sent(target, transmission)
            if target == host.process:
                machine.own.append((step, transmission))
            else:
                delay = network.delay(host.process, target, transmission.packet, self.random)
                machine.outbox.append((target, step, delay, transmission))

    def _hand_over(self, machine: Machine, process: int, time: int, m: Message) -> None:
        """Let the clients send a server a message to multicast."""
        if machine.current != machine.clients:
            self.queue.push(time, process, machine.clients, 0, m)
            return
        self._clients_time += self.network.client_cost + machine.writing(process)
        delay = self.network.delay(machine.clients, process, None, self.random)
        machine.outbox.append((process, 0, delay, m))

    def _delay(self, host: Host) -> int:
        """Return how long what a server tells the clients travels."""
        return self.network.delay(host.process, self.size, None, self.random)

    # What happens to them.

    def _arrive(
        self, target: int, source: int, sent: int, time: int, transmission: Transmission
    ) -> None:
        host = self.hosts[target]
        start = time if time > host.time or not self._contention else host.time
        finish = start
        self._arrival = time
        self._begun = finish
        if source != target and target < self.size and transmission.work_of == OF_PROCESSORS:
            network = self.network
            size = transmission.header_bytes + transmission.payload_bytes
            finish += network.receive_cost + size * network.byte_cost_ps // 1000
        if host.up and finish <= host.crash_at:
            try:
                host.receive(finish, source, transmission, sent, start - time)
            except PeerError:
                if source not in self._liars:
                    raise
                host.refused()

    def _complete(self, host: Host, target: int, transmission: Transmission) -> None:
        """Let the adapter of a process tell that what arrived has arrived, without its processor.

        It leaves when what was stored before it is durable; if the process crashes before that, it
        does not. In the history of the process it follows what the processor did before.
        """
        busy = host.time
        if busy > host.crash_at:
            return
        host.time = self._arrival + busy - self._begun
        step = host.sent(target, transmission)
        self._send_unreliably(host, target, step, transmission)
        host.time = busy

    def _send_unreliably(
        self, host: Host, target: int, step: int, transmission: Transmission
    ) -> None:
        network = self.network
        source = host.process
        leaves = host.time
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
            arrival = leaves + network.delay(source, target, transmission.packet, self.random)
            if network.fifo:
                arrival = self._channels[source].in_order(target, arrival)
            self.queue.push(arrival, target, source, step, transmission)

    def _happen(self, target: int, time: int, cause: object) -> None:
        if isinstance(cause, Answer):
            self.application.answered(self, target, cause.process, time, cause.message)
        elif isinstance(cause, NextCast):
            self.application.alarmed(self, target, time)
        elif isinstance(cause, Crash):
            if self.hosts[target].up:
                self.hosts[target].crash(time)
        elif isinstance(cause, Recovery):
            self._recover(self.hosts[target], time)
        else:
            self._attend(self.hosts[target], time, cause)

    def _attend(self, host: Host, time: int, cause: object) -> bool:
        """Let a process attend to what happens, when it is free and unless it has crashed then;
        return whether it does."""
        start = time if time > host.time or not self._contention else host.time
        if not host.up or start > host.crash_at:
            return False
        if isinstance(cause, Message):
            host.cast(start, cause)
        elif isinstance(cause, TimerEnd):
            if host.timers.get((cause.level, cause.name)) == cause.number:
                host.timer(start, cause.level, cause.name)
        elif isinstance(cause, Notice):
            host.notice(start, cause)
        return True

    def _plan_faults(self) -> None:
        plan = self._faults
        for time, process in plan.crashes:
            self.queue.push(time, process, 0, 0, Crash())
        for time, process in plan.recoveries:
            self.queue.push(time, process, 0, 0, Recovery())
        for start, end, suspicious, suspected in plan.suspicions:
            self.queue.push(start, suspicious, 0, 0, Suspect(suspected))
            self.queue.push(end, suspicious, 0, 0, Trust(suspected))
        for number, (time, members) in enumerate(plan.views, 1):
            for process in range(self.size):
                self.queue.push(time, process, 0, 0, View(number, members))
        if plan.detection < 0:
            return
        for process in range(self.size):
            for time, crashed in plan.crashes:
                if crashed != process:
                    self.queue.push(time + plan.detection, process, 0, 0, Suspect(crashed))
            for time, recovered in plan.recoveries:
                if recovered != process:
                    self.queue.push(time + plan.detection, process, 0, 0, Trust(recovered))
                elif any(layer.STORED for layer in self.hosts[process].stack.layers):
                    # It goes on with what it stored, and was told of nothing while it was down.
                    for other in plan.down_at(time):
                        self.queue.push(time + plan.detection, process, 0, 0, Suspect(other))

    def _recover(self, host: Host, time: int) -> None:
        if not host.up:
            host.crash_at = self._faults.next_crash(host.process, time)
            host.recover(time, self._build(host.process))
