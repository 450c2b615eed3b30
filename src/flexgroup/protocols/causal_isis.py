"""Causal order by piggybacking: a message brings along the messages that precede it.

Source: Birman and Joseph 1987, the primitive CBCAST of the first Isis; section 3.1 of Raynal,
Schiper and Toueg 1991.

A process keeps in BUF, in causal order, the messages that it has multicast or got and that may not
have arrived at all their destinations; REM_DESTS of each are those where it may be missing. A
packet carries a message and all of BUF. So nothing ever waits: what precedes a message is here,
or comes in the same packet, or has arrived everywhere.

Assumes reliable channels, which may reorder, and that processes fail by stopping and are suspected
then, never wrongly. Guarantees causal order, and with it FIFO order, for messages to any sets of
processes; if a destination that lives on delivers a message, all that live on do.

Differs from the source:
- The messages of BUF leave with the next multicast, to its destinations, in one packet for all of
  them; the paper has a packet for each process, whenever one is scheduled. On a suspicion, each
  process sends what it has in BUF to those that may miss it.
- A receiver responds to whoever sent it a packet; the paper leaves that to the channels.
- When REM_DESTS is empty, the origin tells the destinations, and each process tells others that
  got a copy from it: a message that has arrived everywhere is forgotten everywhere.
- A process knows a message again by its number: what it has of an origin precedes what comes later,
  so one number for each origin is enough.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, MessageId, Packet, origin_of, seq_of

Processes = tuple[int, ...]


@final
class Transfer(Packet):
    """A message and those that precede it, in causal order; of each of these, REM_DESTS: how many
    processes, and which; and the place of the message at the sender."""

    m: Message
    before: tuple[Message, ...]
    rem_dests: tuple[int, ...]
    place: int


@final
class Received(Packet):
    """The transfer of m has come, with all that the receiver of this had at earlier places."""

    m: MessageId
    place: int


@final
class Stable(Packet):
    """m has arrived at all its destinations."""

    m: MessageId


@final
class Buffered(Record):
    """A message that may not have arrived everywhere."""

    m: Message
    place: int
    """How many messages were put into BUF before this one."""
    REM_DESTS: Processes
    """The destinations that may not have it."""
    holders: Processes = ()
    """Who got it from here, may keep it, as it was missing elsewhere, and will be told here that it
    is stable."""


class CausalIsis(Layer):
    __slots__ = ("BUF", "early", "put", "seen", "suspected")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.CAUSAL, Guarantee.FIFO})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Transfer, Received, Stable)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.BUF: list[Buffered] = []
        """What may not have arrived everywhere, in an order that causal order is part of."""
        self.put = 0
        """How many messages were ever put into BUF."""
        self.seen: dict[int, int] = {}
        """The number after that of the latest message that is known here, by origin."""
        self.early: set[MessageId] = set()
        """What is stable, and will come here all the same."""
        self.suspected: set[int] = set()

    def on_cast(self, m: Message) -> None:
        i = self.process
        if i >= self.size:
            raise UsageError(
                f"client {i} cannot multicast in causal order: only members, 0 to "
                f"{self.size - 1}, keep what others may miss; let one of them multicast for it"
            )
        self.seen[i] = seq_of(m.id) + 1
        if others := receivers(m):
            self.put_in_buf(m, others)
            self.transfer(others, self.BUF)
            self.reduce(m.id, self.left(others))
        if i in m.destinations:
            self.deliver(m)

    def put_in_buf(self, m: Message, remaining: Processes) -> None:
        self.BUF.append(Buffered(m, self.put, remaining))
        self.put += 1

    def transfer(self, to: Processes, carried: list[Buffered]) -> None:
        """Send the last of these with those before it, which may be missing there or elsewhere."""
        *before, last = carried
        messages = tuple([buffered.m for buffered in before])
        rem_dests = flat([buffered.REM_DESTS for buffered in before])
        self.send(to, Transfer(last.m, messages, rem_dests, last.place))
        for buffered in carried:
            told = buffered.REM_DESTS if buffered is not last else receivers(last.m)
            keeping = [d for d in to if without(told, d) and self.is_to_tell(d, buffered.m)]
            buffered.holders = tuple(sorted({*buffered.holders, *keeping}))

    def is_to_tell(self, process: int, m: Message) -> bool:
        """Destinations are told by the origin that m is stable, others by who gave it to them."""
        return process not in m.destinations or self.process == origin_of(m.id)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if sender >= self.size or sender == self.process:
            raise self.refuse(sender, packet)
        if isinstance(packet, Transfer) and self.can_be(packet):
            self.on_transfer(sender, packet)
        elif isinstance(packet, Received) and packet.place < self.put:
            self.on_received(sender, packet.place)
        elif isinstance(packet, Stable) and origin_of(packet.m) < self.size:
            self.on_stable(packet.m)
        else:
            raise self.refuse(sender, packet)

    def on_transfer(self, sender: int, packet: Transfer) -> None:
        put_before = self.put
        rem_dests = parted(packet.rem_dests) or []
        for m, remaining in zip(packet.before, rem_dests, strict=True):
            self.take(m, remaining)
        self.take(packet.m, receivers(packet.m))
        self.send((sender,), Received(packet.m.id, packet.place))
        origins = [origin_of(m.id) for m in (*packet.before, packet.m)]
        if self.put > put_before and not self.suspected.isdisjoint((sender, *origins)):
            self.send_on()

    def take(self, m: Message, remaining: Processes) -> None:
        """Deliver m if it is for this process and new, and keep it if others may miss it."""
        remaining = self.left(without(remaining, self.process))
        if self.is_known(m.id):
            self.reduce(m.id, remaining)
        else:
            self.seen[origin_of(m.id)] = seq_of(m.id) + 1
            if self.process in m.destinations:
                self.deliver(m)
            if remaining and m.id not in self.early:
                self.put_in_buf(m, remaining)
        self.early.discard(m.id)

    def reduce(self, m: MessageId, remaining: Processes) -> None:
        """Only these may miss m; if there are none, it is forgotten, and its holders are told."""
        for place, buffered in enumerate(self.BUF):
            if buffered.m.id == m:
                left = tuple([d for d in buffered.REM_DESTS if d in remaining])
                buffered.REM_DESTS = left
                if not left:
                    del self.BUF[place]
                    if buffered.holders:
                        self.send(buffered.holders, Stable(m))
                return

    def on_received(self, sender: int, place: int) -> None:
        """All that is at earlier places was sent along."""
        for buffered in list(self.BUF):
            if buffered.place <= place:
                self.reduce(buffered.m.id, without(buffered.REM_DESTS, sender))

    def on_stable(self, m: MessageId) -> None:
        if self.is_known(m):
            self.reduce(m, ())
        else:
            self.early.add(m)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            for buffered in list(self.BUF):
                self.reduce(buffered.m.id, self.left(buffered.REM_DESTS))
            self.send_on()
        self.pass_on(notice)

    def send_on(self) -> None:
        """Send everybody what may be missing there, since others may have failed to."""
        for process in range(self.size):
            missing = [at for at, each in enumerate(self.BUF) if process in each.REM_DESTS]
            if missing:
                self.transfer((process,), self.BUF[: missing[-1] + 1])

    def left(self, processes: Processes) -> Processes:
        return tuple([process for process in processes if process not in self.suspected])

    def is_known(self, m: MessageId) -> bool:
        """It is in BUF, or was, or was stable when something came that follows it."""
        return seq_of(m) < self.seen.get(origin_of(m), 0)

    def can_be(self, packet: Transfer) -> bool:
        """It comes to a destination; what precedes it exists, has destinations, and is of others,
        or known; of each, some destinations remain."""
        rem_dests = parted(packet.rem_dests)
        if not self.is_for_me(packet.m) or rem_dests is None:
            return False
        if len(rem_dests) != len(packet.before):
            return False
        for m in (*packet.before, packet.m):
            origin = origin_of(m.id)
            if origin >= self.size or not m.destinations or m.destinations[-1] >= self.size:
                return False
            if origin == self.process and not self.is_known(m.id):
                return False
        return all(
            set(remaining) <= set(m.destinations)
            for m, remaining in zip(packet.before, rem_dests, strict=True)
        )


def receivers(m: Message) -> Processes:
    """Its destinations; if its origin is one, that has it."""
    return without(m.destinations, origin_of(m.id))


def without(processes: Processes, one: int) -> Processes:
    return tuple([process for process in processes if process != one])


def flat(lists: list[Processes]) -> tuple[int, ...]:
    """How many processes each list has, and which."""
    out: list[int] = []
    for processes in lists:
        out += (len(processes), *processes)
    return tuple(out)


def parted(numbers: tuple[int, ...]) -> list[Processes] | None:
    """The reverse of `flat`; None if it makes no sense."""
    lists: list[Processes] = []
    place = 0
    while place < len(numbers):
        end = place + 1 + numbers[place]
        lists.append(numbers[place + 1 : end])
        place = end
    return lists if place == len(numbers) else None
