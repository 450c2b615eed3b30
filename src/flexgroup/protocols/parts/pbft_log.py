"""The log of a replica that does not trust the others: what it was told of each sequence number."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Packet, origin_of
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Commit,
    Prepare,
    PrePrepare,
    Request,
    messages_of,
)
from flexgroup.protocols.parts.taken_messages import AHEAD


@final
class Slot(Record):
    """What is known of one sequence number."""

    accepted: PrePrepare | None = None
    """The pre-prepare that was accepted last."""
    digest: bytes = b""
    """That of its batch."""
    early: dict[int, PrePrepare] = {}
    """What primaries of views that have not begun here propose: the last of each."""
    prepares: dict[int, Prepare] = {}
    """The prepare of the highest view of each replica."""
    commits: dict[int, Commit] = {}
    """The commit of the highest view of each replica."""
    certificate: tuple[Prepare, ...] = ()
    """That the batch is prepared, in the last view in which it was."""
    certified: PrePrepare | None = None
    """The pre-prepare that the certificate is about."""

    def is_accepted_in(self, view: int) -> bool:
        return self.accepted is not None and self.accepted.view == view

    def is_prepared_in(self, view: int) -> bool:
        return bool(self.certificate) and self.certificate[0].view == view

    def agreeing_prepares(self) -> list[Prepare]:
        """The prepares for what is accepted: of the same view, and for the same digest."""
        view = -1 if self.accepted is None else self.accepted.view
        votes = [self.prepares[j] for j in sorted(self.prepares)]
        return [vote for vote in votes if vote.view == view and vote.digest == self.digest]

    def agreeing_commits(self) -> int:
        view = -1 if self.accepted is None else self.accepted.view
        votes = self.commits.values()
        return sum([vote.view == view and vote.digest == self.digest for vote in votes])


@final
class Requests(Record):
    """What is asked for and not delivered, a bounded number of each origin."""

    pending: dict[MessageId, Request] = {}
    counts: dict[int, int] = {}
    """How many they are, of each origin that has any."""

    def add(self, request: Request) -> None:
        """Remember a request; the first one, if its origin gives several the same identity."""
        m = request.m.id
        count = self.counts.get(origin_of(m), 0)
        if m not in self.pending and count < AHEAD:
            self.pending[m] = request
            self.counts[origin_of(m)] = count + 1

    def remove(self, m: MessageId) -> None:
        if self.pending.pop(m, None) is not None:
            count = self.counts.pop(origin_of(m)) - 1
            if count:
                self.counts[origin_of(m)] = count

    def has(self, request: Request) -> bool:
        """Tell whether the origin itself has asked for just that here."""
        known = self.pending.get(request.m.id)
        return known is not None and known.m == request.m


@final
class Checkpoints(Record):
    """What replicas say that they have delivered, and the last checkpoint that is stable."""

    stable: int = 0
    """Its number: the low water mark."""
    proof: tuple[Packet, ...] = ()
    """The checkpoints of 2f + 1 replicas that make it stable."""
    told: dict[tuple[int, int], Checkpoint] = {}
    """The checkpoints beyond it, by number and replica."""
    have: dict[int, int] = {}
    """The highest checkpoint of each replica, which may not be true."""

    def take(self, packet: Checkpoint) -> None:
        if packet.number > self.stable:
            self.told.setdefault((packet.number, packet.process), packet)

    def hear(self, process: int, number: int) -> None:
        self.have[process] = max(number, self.have.get(process, 0))

    def certificate(self, process: int, number: int) -> list[Checkpoint]:
        """The checkpoints that are equal to that of this process."""
        own = self.told.get((number, process))
        if own is None:
            return []
        votes = [self.told[key] for key in sorted(self.told) if key[0] == number]
        return [vote for vote in votes if vote.digest == own.digest]

    def move(self, stable: int, proof: tuple[Packet, ...]) -> None:
        """Let this checkpoint be the last one that is stable."""
        self.stable = stable
        self.proof = proof
        self.told = {key: told for key, told in self.told.items() if key[0] > stable}


@final
class CatchingUp(Record):
    """What a replica lacks and asks others for, and what others ask of it."""

    wanted: int = 0
    """The highest number that it knows it will not learn otherwise."""
    last: int = 0
    """The last number of the piece of that which it asked for last."""
    copies: dict[tuple[int, int], tuple[Message, ...]] = {}
    """What others say that these numbers are, by number and replica."""
    beyond: dict[int, int] = {}
    """The highest number above the high water mark that each replica has sent something about."""
    asks: dict[int, tuple[int, int]] = {}
    """What others lack and this process has not delivered yet: the first number, and the last."""

    def reached(self, count: int) -> int:
        """A number that so many replicas have gone beyond, so that one of them is correct."""
        numbers = sorted(self.beyond.values(), reverse=True)
        return numbers[count - 1] if len(numbers) >= count else 0

    def take(self, number: int, sender: int, messages: tuple[Message, ...]) -> int:
        """Take a copy, and tell how many are equal to it."""
        self.copies.setdefault((number, sender), messages)
        return sum([key[0] == number and copy == messages for key, copy in self.copies.items()])

    def drop(self, number: int) -> None:
        """Forget the copies of this number."""
        self.copies = {key: copy for key, copy in self.copies.items() if key[0] != number}


def ids_of(proposal: PrePrepare) -> set[MessageId]:
    return {m.id for m in messages_of(proposal)}
