"""A domain: one stack of one configuration at one server.

It turns what the stack asks for into bytes for other servers and a list of deliveries, and never
waits for anything: the server hands it what arrived and sends what has gathered. Packets to the
same server travel together, so the more there is to do the less each costs, and nothing is
delayed for the sake of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import time_ns
from typing import final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.host import NEVER, Host, World
from flexgroup.core.journal import Journal, Transmission
from flexgroup.core.layer import Notice, Recall, Store, View
from flexgroup.core.message import Message, Packet
from flexgroup.core.stack import Stack
from flexgroup.core.varints import Reader, varints
from flexgroup.worlds.network.faults import Channel, Faults
from flexgroup.worlds.network.layer_files import LayerFiles


@final
class Domain(World):
    """The world of one stack. Whoever calls passes on `outgoing`, and takes `delivered`.

    Times are milliseconds; those in the journal are nanoseconds since 1970, by the clock.
    """

    def __init__(
        self,
        stack: Stack,
        codec: Codec,
        size: int,
        faults: Faults,
        journal: Journal | None,
        clock: Callable[[], int] = time_ns,
        files: LayerFiles | None = None,
        forgiving: bool = False,
    ) -> None:
        self.process = stack.process
        self.size = size
        self.host = Host(stack, self, codec, journal)
        self.delivered: list[Message] = []
        """What the stack has delivered and nobody has taken yet."""
        self.outgoing = [bytearray() for _ in range(size)]
        """Packets to each process, gathered until they are sent."""
        self.tick = 1
        """How many milliseconds a tick of the timers has that are set from now on."""
        self.packets_sent = 0
        self.packets_received = 0
        self._codec = codec
        self._recorded = journal is not None
        self._now_recorded = clock
        self._to_itself: deque[tuple[Transmission, int]] = deque()
        self._channels: list[Channel] = (
            [Channel(faults, stack.process, peer) for peer in range(size)] if faults.any else []
        )
        self._earliest = NEVER
        """The time before which no timer runs out."""
        self._earliest_is_exact = True
        """Some timer runs out just then: it was not cancelled or put off."""
        self._now = 0
        self._choices = 0
        self._files = files
        """Where it keeps what the stack stores; if nowhere, a server that fails comes back as
        another one, with nothing to restore."""
        self._forgiving = forgiving
        """A packet that no correct process sends is dropped, and those around it are not: the stack
        tolerates processes that send such."""
        self.packets_refused = 0

    # What happens to the stack.

    def start(self, now: int, step: int = 0) -> None:
        """The process starts, with what is stored if there is something, and then at this step of
        its history, if that is recorded."""
        self._now = now
        if self._files is not None and self._files.was_there:
            self.host.step = step
            self.host.restore(self._clock(), self._files.stored, self._files.numbered)
        else:
            self.host.start(self._clock())
        self._receive_from_itself()

    def restart(self, now: int, stack: Stack) -> None:
        """The process starts again, with another stack and what this one stored: whatever was
        under way to and from it is lost, as at a crash."""
        self._now = now
        self._to_itself.clear()
        self.outgoing = [bytearray() for _ in range(self.size)]
        self.host.crash(self._clock())
        self._find_earliest()
        self.host.recover(self._clock(), stack)
        self._receive_from_itself()

    def commit(self) -> None:
        """Have on the disk what the stack stored and delivered.

        Whoever calls passes on nothing that was gathered before that.
        """
        if self._files is not None:
            self._files.deliver(self.host.deliveries)
            self._files.number(self.host.numbered)
            self._files.commit()

    def cast(self, now: int, m: Message) -> None:
        self._now = now
        self.host.cast(self._clock(), m)
        self._receive_from_itself()

    def cast_again(self, now: int, m: Message) -> None:
        """Multicast a message that was multicast before the process started again."""
        self._now = now
        self.host.cast_again(self._clock(), m)
        self._receive_from_itself()

    def receive(self, now: int, sender: int, data: bytes, at: int) -> None:
        """Handle the packets that another server sent together, from this place on."""
        self._now = now
        host = self.host
        end = len(data)
        reader = Reader(data, at, end)
        while at < end:
            length = reader.varint()
            depth = reader.varint()
            sent = reader.varint()
            at = reader.position
            if at + length > end:
                raise PeerError(f"a packet of {length} bytes is announced, with {end - at} left")
            start = at
            at += length
            reader.position = at
            self.packets_received += 1
            try:
                packet = self._codec.decode_part(data, start, at)
                if self._recorded:
                    transmission = host.transmission(packet)
                    transmission.depth = depth
                    host.receive(self._now_recorded(), sender, transmission, sent)
                else:
                    host.receive(0, sender, Transmission(packet))
            except PeerError:
                if not self._forgiving:
                    raise
                host.refused()
                self.packets_refused += 1
            if self._to_itself:
                self._receive_from_itself()

    def notice(self, now: int, notice: Notice) -> None:
        """Tell the stack of a group."""
        self._now = now
        self.host.notice(self._clock(), notice)
        self._receive_from_itself()

    def end_timers(self, now: int) -> bool:
        """Tell the stack of the timers that have run out by now; whether there were any."""
        if now < self._earliest:
            return False
        timers = self.host.timers
        due = [key for key, end in timers.items() if end <= now]
        self._now = now
        for key in due:
            if timers.get(key, NEVER) > now:
                continue  # another timer's end has cancelled it or put it off
            level, name = key
            self.host.timer(self._clock(), level, name)
            self._receive_from_itself()
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
        self.host.time = self._clock()
        self.host.delivered(m)

    def record_view(self, members: tuple[int, ...], number: int) -> None:
        self.host.time = self._clock()
        self.host.note(View(number, members))

    # What the stack asks for.

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        if self._files is not None:
            self._files.store(effects)
        return True

    def has_archive(self, host: Host) -> bool:
        return self._files is not None

    def on_recall(self, host: Host, asked: Recall) -> list[tuple[int, Packet]]:
        if self._files is None:
            return super().on_recall(host, asked)
        return self._files.recall(asked)

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        data = b""
        for target in to:
            step = host.sent(target, transmission) if self._recorded else 0
            if target == self.process:
                self._to_itself.append((transmission, step))
                continue
            if self._recorded or not data:
                encoded = self._codec.encode(transmission.packet)
                data = varints([len(encoded), transmission.depth, step]) + encoded
            self.packets_sent += 1
            if self._channels:
                for passed in self._channels[target].passed(data):
                    self.outgoing[target] += passed
            else:
                self.outgoing[target] += data

    def on_deliver(self, host: Host, m: Message) -> None:
        self.delivered.append(m)

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        end = self._now + ticks * self.tick
        if host.timers.get((level, name), NEVER) == self._earliest:
            self._earliest_is_exact = False
        if end <= self._earliest:
            self._earliest = end
            self._earliest_is_exact = True
        return end

    def on_cancel_timer(self, host: Host, level: int, name: str, answer: int) -> None:
        if answer == self._earliest:
            self._earliest_is_exact = False

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        # Any choice is right; turns are as good as chance, and can be told from the trace.
        chosen = self._choices % options
        self._choices += 1
        return chosen

    def on_notice(self, host: Host, notice: Notice) -> None:
        # A failure detector in the stack has changed its mind. The host notes views itself.
        if not isinstance(notice, View):
            host.note(notice)

    def _receive_from_itself(self) -> None:
        mine = self._to_itself
        host = self.host
        while mine:
            transmission, step = mine.popleft()
            host.receive(self._clock(), self.process, transmission, step)

    def _find_earliest(self) -> None:
        earliest = NEVER
        for end in self.host.timers.values():
            if end < earliest:
                earliest = end
        self._earliest = earliest
        self._earliest_is_exact = True

    def _clock(self) -> int:
        return self._now_recorded() if self._recorded else 0
