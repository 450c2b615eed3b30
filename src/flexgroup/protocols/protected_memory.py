"""Protected memory: processes write into each other's memory, if the owner permits it.

Sources: the model of M. K. Aguilera, N. Ben-David, R. Guerraoui, V. Marathe and I. Zablotchi, "The
impact of RDMA on agreement", PODC 2019 (memory with dynamic permissions), as RamCast uses it.

What the layer above sends is written into the memory of each target. A write is *one-sided*: the
target's network adapter performs it, without the processor (`ONE_SIDED`, `COMPLETIONS`; the
simulator charges none). Every process owns a region for each other process, which only that one
ever writes: such writes cannot fail, and nobody is told that they landed. And it owns a *protected*
region, for packets whose type is PROTECTED: one process at a time may write there, and the owner
says which (`Permit`). The permission is checked when a write arrives. Then the adapter sends a
completion, and the writer learns whether the write has landed (`WriteCompleted`). The owner polls
its memory: here, the layer above is told of what has landed.

The memory outlives its process: who starts again finds what landed last in the protected region, at
which it may not have looked when it crashed. It permits nobody to write there before it says so
again.

Assumes and keeps reliable channels in order, as those of RDMA are between two processes. What is
modelled and what is not is on the page of this protocol.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Stored, WriteCompleted
from flexgroup.core.message import Message, Packet, origin_of, seq_of
from flexgroup.protocols.parts.permit import Permit

NOBODY: Final = -1

FAILED: Final = 0
LANDED: Final = 1


@final
class Write(Packet):
    """Write this into your memory; the writer is the origin of m."""

    m: Message


@final
class Completion(Packet):
    """Your protected write of this number has landed, or failed."""

    number: int
    status: int


@final
class Landed(Packet):
    """This has landed in the protected region, and nothing since."""

    m: Message


class ProtectedMemory(Layer):
    __slots__ = ("permitted", "posted", "restarted")

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.PROTECTED_MEMORY})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Write, Completion)
    ONE_SIDED: ClassVar[tuple[type[Packet], ...]] = (Write, Completion)
    COMPLETIONS: ClassVar[tuple[type[Packet], ...]] = (Completion,)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Landed,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # Of an owner.
        self.permitted = NOBODY
        """Who may write into the protected region here."""
        # Of a writer.
        self.posted: dict[tuple[int, int], Packet] = {}
        """Its protected writes, by number and target, that are not complete."""
        self.restarted = False
        """Whether there may be completions of writes that it no longer knows of."""

    def on_restart(self, stored: Stored) -> None:
        self.restarted = True
        landed = stored.saved
        if isinstance(landed, Landed):
            self.deliver(landed.m)

    def on_cast(self, m: Message) -> None:
        payload = m.payload
        if isinstance(payload, Permit):
            self.permitted = payload.writer
            return
        if isinstance(payload, Packet) and payload.PROTECTED:
            for target in m.destinations:
                self.posted[seq_of(m.id), target] = payload
        self.send(m.destinations, Write(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Write) and self.is_written_by(sender, packet.m):
            self.on_write(sender, packet.m)
        elif isinstance(packet, Completion) and (packet.number, sender) in self.posted:
            written = self.posted.pop((packet.number, sender))
            self.pass_on(WriteCompleted(sender, written, packet.status == LANDED))
        elif not isinstance(packet, Completion) or not self.restarted:
            raise self.refuse(sender, packet)

    def is_written_by(self, sender: int, m: Message) -> bool:
        return self.is_for_me(m) and origin_of(m.id) == sender

    def on_write(self, sender: int, m: Message) -> None:
        payload = m.payload
        if isinstance(payload, Packet) and payload.PROTECTED:
            if sender != self.permitted:
                self.send((sender,), Completion(seq_of(m.id), FAILED))
                return
            self.save(Landed(m))
            self.send((sender,), Completion(seq_of(m.id), LANDED))
        self.deliver(m)
