"""The log of a replica that does not trust the others: what it was told of each sequence number,
and what is asked for."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import MessageId, Packet, origin_of
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Commit,
    Prepare,
    PrePrepare,
    Request,
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

    def put_off(self, sender: int, packet: PrePrepare) -> None:
        """Keep what the primary of a view proposes that has not begun here."""
        if sender not in self.early or packet.view > self.early[sender].view:
            self.early[sender] = packet

    def take_prepare(self, packet: Prepare) -> None:
        self.prepares[packet.process] = packet

    def lacks_prepare(self, packet: Prepare) -> bool:
        """Tell whether this is the first prepare of the process in the view, and not needless."""
        before = self.prepares.get(packet.process)
        is_new = before is None or before.view < packet.view
        return is_new and not self.is_prepared_in(packet.view)

    def take_commit(self, process: int, packet: Commit) -> None:
        """Take the first commit of a process in a view."""
        before = self.commits.get(process)
        if before is None or before.view < packet.view:
            self.commits[process] = packet

    def prepare(self, most: int) -> bool:
        """Keep a certificate of so many prepares, equal to what is accepted, if they are there."""
        if self.accepted is None:
            return False
        votes = [self.prepares[j] for j in sorted(self.prepares)]
        equal = [v for v in votes if v.view == self.accepted.view and v.digest == self.digest]
        if len(equal) < most:
            return False
        self.certificate = tuple(equal[:most])
        self.certified = self.accepted
        return True

    def is_committed(self, most: int) -> bool:
        """Tell whether so many have committed what is accepted, in the same view."""
        if self.accepted is None:
            return False
        view = self.accepted.view
        votes = self.commits.values()
        return sum([v.view == view and v.digest == self.digest for v in votes]) >= most

    def lacks(self, count: int) -> bool:
        """Tell whether so many have committed the same, in the same view, which is not what is
        accepted."""
        kinds = [(vote.view, vote.digest) for vote in self.commits.values()]
        view = -1 if self.accepted is None else self.accepted.view
        return any(kind != (view, self.digest) and kinds.count(kind) >= count for kind in kinds)


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

    def except_in(self, proposals: list[PrePrepare]) -> list[Request]:
        """What is asked for and in none of these batches."""
        under_way = {m.id for proposal in proposals for m in proposal.batch()}
        return [self.pending[m] for m in sorted(self.pending) if m not in under_way]


@final
class Checkpoints(Record):
    """What replicas say that they have delivered, and the last checkpoint that is stable."""

    stable: int = 0
    """Its number: the low water mark."""
    proof: tuple[Packet, ...] = ()
    """The checkpoints of a quorum that make it stable."""
    told: dict[tuple[int, int], Checkpoint] = {}
    """The checkpoints beyond it, by number and replica."""
    have: dict[int, int] = {}
    """The highest checkpoint of each replica, which may not be true."""

    def take(self, packet: Checkpoint) -> None:
        self.told.setdefault((packet.number, packet.process), packet)

    def hear(self, process: int, number: int) -> None:
        self.have[process] = max(number, self.have.get(process, 0))

    def equal(self, process: int, number: int) -> list[Checkpoint]:
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
