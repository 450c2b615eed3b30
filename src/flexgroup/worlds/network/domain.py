"""A domain: one stack of one configuration at one server.

It turns what the stack asks for into bytes for other servers and a list of deliveries, and never
waits for anything: the server hands it what arrived and sends what has gathered. Packets to the
same server travel together, so the more there is to do the less each costs, and nothing is
delayed for the sake of it.
"""

from __future__ import annotations

from collections import deque
from time import time_ns
from typing import Final, final

from flexgroup.core.codec import Codec, varints
from flexgroup.core.errors import PeerError
from flexgroup.core.journal import CHOICE, RECEIVE, SEND, SUSPECT, TIMER, VIEW
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
from flexgroup.core.message import NO_MESSAGE, Message, Packet
from flexgroup.core.stack import Stack
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.network.envelope import read_varint
from flexgroup.worlds.network.faults import Channel, Faults

DEPTHS_KEPT: Final = 1 << 16
NEVER: Final = 1 << 60
"""In milliseconds; later than any timer ends."""


@final
class Domain:
    """Hosts a stack. Whoever calls passes on `outgoing`, and takes `delivered`."""

    def __init__(
        self,
        stack: Stack,
        codec: Codec,
        size: int,
        faults: Faults,
        recorder: Recorder | None,
    ) -> None:
        self.process = stack.process
        self.size = size
        self.stack = stack
        self.delivered: list[Message] = []
        """By the stack, and not yet taken."""
        self.outgoing = [bytearray() for _ in range(size)]
        """Packets to each process, gathered until they are sent."""
        self.packets_sent = 0
        self.packets_received = 0
        self._codec = codec
        self._recorder = recorder
        self._to_itself: deque[tuple[Packet, int, int]] = deque()
        self._channels: list[Channel] = (
            [Channel(faults, stack.process, peer) for peer in range(size)] if faults.any else []
        )
        self._timers: dict[tuple[int, str], int] = {}
        """When each timer that is set runs out, in milliseconds."""
        self._earliest = NEVER
        """No timer runs out before."""
        self._earliest_is_exact = True
        """Some timer runs out just then: it was not cancelled or put off."""
        self._now = 0
        self._step = 0
        self._depths: dict[int, int] = {}
        self._choices = 0

    # What happens to the stack.

    def start(self, now: int) -> None:
        self._now = now
        self.stack.start()
        self._act(NO_MESSAGE, 0)

    def cast(self, now: int, m: Message) -> None:
        self._now = now
        if self._recorder is not None:
            self._recorder.multicast(self.process, self._step, time_ns(), m)
            self._step += 1
        self.stack.cast(m)
        self._act(m.id, 0)

    def receive(self, now: int, sender: int, data: bytes, at: int) -> None:
        """Handle the packets that another server sent together, from this place on."""
        self._now = now
        end = len(data)
        while at < end:
            length, at = read_varint(data, at)
            depth, at = read_varint(data, at)
            sent, at = read_varint(data, at)
            if at + length > end:
                raise PeerError(f"a packet of {length} bytes, {end - at} there")
            packet = self._codec.decode_part(data, at, at + length)
            at += length
            self.packets_received += 1
            self._take(sender, packet, depth, sent, length)

    def notice(self, now: int, notice: Notice) -> None:
        self._now = now
        self.stack.notice(notice)
        self._act(NO_MESSAGE, 0)

    def end_timers(self, now: int) -> bool:
        """Tell the stack of the timers that have run out by now; whether there were any."""
        if now < self._earliest:
            return False
        due = [key for key, end in self._timers.items() if end <= now]
        self._now = now
        for key in due:
            if self._timers.get(key, now + 1) > now:
                continue  # another timer's end has cancelled it or put it off
            del self._timers[key]
            level, name = key
            if self._recorder is not None:
                self._record(TIMER, f'{{"level":{level},"name":"{name}"}}')
            self.stack.timer(level, name)
            self._act(NO_MESSAGE, 0)
        self._find_earliest()
        if not due:
            return False
        for peer, channel in enumerate(self._channels):
            for data in channel.released():
                self.outgoing[peer] += data
        return True

    def earliest_timer(self) -> int | None:
        if not self._earliest_is_exact:
            self._find_earliest()
        return self._earliest if self._earliest < NEVER else None

    def deliver_left_over(self, m: Message) -> None:
        """Record a delivery that the servers agreed on when they left the configuration."""
        self._record_delivery(m, 0)

    def record_view(self, members: tuple[int, ...], number: int) -> None:
        if self._recorder is not None:
            listed = ",".join([str(member) for member in members])
            self._record(VIEW, f'{{"members":[{listed}],"number":{number}}}')

    # What the stack asks for.

    def _take(self, sender: int, packet: Packet, depth: int, sent: int, length: int) -> None:
        about = NO_MESSAGE
        recorder = self._recorder
        if recorder is not None:
            measure = self._codec.measure(packet)
            about = measure.about
            label = recorder.label(packet)
            recorder.receives.add(
                RECEIVE, self.process, self._step, time_ns(), about, sender, label, depth,
                measure.header_bytes, measure.payload_bytes, sent, 0,
            )  # fmt: skip
            self._step += 1
        self.stack.receive(sender, packet)
        self._act(about, depth)

    def _act(self, about: int, depth: int) -> None:
        self._do(self.stack.take_effects(), about, depth)
        mine = self._to_itself
        while mine:
            packet, sent, packet_depth = mine.popleft()
            if self._recorder is not None:
                self._take_from_itself(packet, sent, packet_depth)
            else:
                self.stack.receive(self.process, packet)
                self._do(self.stack.take_effects(), NO_MESSAGE, 0)

    def _take_from_itself(self, packet: Packet, sent: int, depth: int) -> None:
        recorder = self._recorder
        assert recorder is not None
        measure = self._codec.measure(packet)
        recorder.receives.add(
            RECEIVE, self.process, self._step, time_ns(), measure.about, self.process,
            recorder.label(packet), depth, measure.header_bytes, measure.payload_bytes, sent, 0,
        )  # fmt: skip
        self._step += 1
        self.stack.receive(self.process, packet)
        self._do(self.stack.take_effects(), measure.about, depth)

    def _do(self, effects: list[Effect], about: int, depth: int) -> None:
        while effects:
            for effect in effects:
                if isinstance(effect, Send):
                    self._send(effect, about, depth)
                elif isinstance(effect, Deliver):
                    m = effect.message
                    if self._recorder is not None:
                        self._record_delivery(m, depth if m.id == about else self._depth(m.id))
                    self.delivered.append(m)
                elif isinstance(effect, SetTimer):
                    self._set_timer((effect.level, effect.name), self._now + effect.ticks)
                elif isinstance(effect, CancelTimer):
                    if self._timers.pop((effect.level, effect.name), NEVER) == self._earliest:
                        self._earliest_is_exact = False
                elif isinstance(effect, Offer):
                    self._choose(effect)
                elif isinstance(effect, Save):
                    # A server that fails comes back as another one, with nothing to restore.
                    pass
                elif isinstance(effect, (Suspect, Trust)) and self._recorder is not None:
                    # Of a failure detector in the stack: no layer above it has kept it back.
                    self._record_suspicion(effect.process, isinstance(effect, Suspect))
            effects = self.stack.take_effects()
        if self._recorder is not None and about != NO_MESSAGE and depth > 0:
            if len(self._depths) >= DEPTHS_KEPT:
                del self._depths[next(iter(self._depths))]
            if depth > self._depths.get(about, 0):
                self._depths[about] = depth

    def _send(self, effect: Send, about: int, depth: int) -> None:
        packet = effect.packet
        recorder = self._recorder
        if recorder is not None:
            self._send_recorded(effect, about, depth)
            return
        data = b""
        for target in effect.to:
            if target == self.process:
                self._to_itself.append((packet, 0, 0))
                continue
            if not data:
                data = self._packed(packet, 0, 0)
            self._put(target, data)

    def _send_recorded(self, effect: Send, about: int, depth: int) -> None:
        recorder = self._recorder
        assert recorder is not None
        packet = effect.packet
        measure = self._codec.measure(packet)
        label = recorder.label(packet)
        known = depth if measure.about == about else self._depth(measure.about)
        now = time_ns()
        for target in effect.to:
            step = self._step
            self._step += 1
            recorder.sends.add(
                SEND, self.process, step, now, measure.about, target, label, known + 1,
                measure.header_bytes, measure.payload_bytes, 0, 0,
            )  # fmt: skip
            if target == self.process:
                self._to_itself.append((packet, step, known + 1))
            else:
                self._put(target, self._packed(packet, known + 1, step))

    def _packed(self, packet: Packet, depth: int, step: int) -> bytes:
        encoded = self._codec.encode(packet)
        return varints([len(encoded), depth, step]) + encoded

    def _put(self, target: int, data: bytes) -> None:
        self.packets_sent += 1
        if self._channels:
            for passed in self._channels[target].passed(data):
                self.outgoing[target] += passed
        else:
            self.outgoing[target] += data

    def _set_timer(self, key: tuple[int, str], end: int) -> None:
        if self._timers.get(key, NEVER) == self._earliest:
            self._earliest_is_exact = False
        self._timers[key] = end
        if end <= self._earliest:
            self._earliest = end
            self._earliest_is_exact = True

    def _find_earliest(self) -> None:
        self._earliest = min(self._timers.values(), default=NEVER)
        self._earliest_is_exact = True

    def _choose(self, offer: Offer) -> None:
        # Any choice is right; turns are as good as chance, and can be told from the trace.
        chosen = self._choices % offer.options
        self._choices += 1
        if self._recorder is not None:
            detail = f'{{"level":{offer.level},"name":"{offer.name}","chosen":{chosen}}}'
            self._record(CHOICE, detail)
        self.stack.choose(offer.level, offer.name, chosen)

    def _depth(self, message: int) -> int:
        return self._depths.get(message, 0)

    def _record(self, kind: int, detail: str) -> None:
        recorder = self._recorder
        assert recorder is not None
        recorder.other(kind, self.process, self._step, time_ns(), 0, detail)
        self._step += 1

    def _record_suspicion(self, process: int, suspected: bool) -> None:
        recorder = self._recorder
        assert recorder is not None
        detail = f'{{"suspected":{"true" if suspected else "false"}}}'
        recorder.other(SUSPECT, self.process, self._step, time_ns(), process, detail)
        self._step += 1

    def _record_delivery(self, m: Message, depth: int) -> None:
        recorder = self._recorder
        if recorder is not None:
            recorder.deliver(self.process, self._step, time_ns(), m, depth)
            self._step += 1
