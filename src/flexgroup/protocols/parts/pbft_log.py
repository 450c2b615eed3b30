"""The log of a replica that does not trust the others: what it was told of each sequence number,
and what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, MessageId, Packet, origin_of
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Commit,
    Prepare,
    PrePrepare,
    Request,
    digest_of,
)
from flexgroup.protocols.parts.taken_messages import AHEAD, TakenMessages

GATHER: Final = "gather"
"""The timer of the primary that waits for more to propose."""

MOMENT: Final = 2
"""The ticks that it waits at most: of a single one, next to nothing may be left when it begins."""

MOST_BATCHES: Final = 16
"""How many batches with the same number a replica tells of that it took part in, at most: those of
the highest views."""


@final
class Slot(Record):
    """What is known of one sequence number."""

    accepted: PrePrepare | None = None
    """The pre-prepare that was accepted last."""
    digest: bytes = b""
    """That of its batch."""
    views: dict[bytes, int] = {}
    """The last view in which this process took part in giving the number to a batch, by digest."""
    prepared: PrePrepare | None = None
    """The pre-prepare that was prepared last."""
    early: dict[int, PrePrepare] = {}
    """What primaries of views that have not begun here propose: the last of each."""
    prepares: dict[int, Prepare] = {}
    """The prepare of the highest view of each replica."""
    commits: dict[int, Commit] = {}
    """The commit of the highest view of each replica."""

    def is_accepted_in(self, view: int) -> bool:
        return self.accepted is not None and self.accepted.view == view

    def is_prepared_in(self, view: int) -> bool:
        return self.prepared is not None and self.prepared.view == view

    def put_off(self, sender: int, packet: PrePrepare) -> None:
        """Keep what the primary of a view proposes that has not begun here."""
        if sender not in self.early or packet.view > self.early[sender].view:
            self.early[sender] = packet

    def is_vouched_for(self, packet: PrePrepare, faulty: int) -> bool:
        """Tell whether so many take part in giving the number to this batch, in this view, besides
        the primary that proposes it."""
        digest = digest_of(packet.batch())
        votes = self.prepares.values()
        return sum([v.view == packet.view and v.digest == digest for v in votes]) >= faulty

    def accept(self, packet: PrePrepare, digest: bytes) -> None:
        """Take part in giving the number to this batch."""
        self.accepted = packet
        self.digest = digest
        self.views[digest] = packet.view
        if len(self.views) > MOST_BATCHES:
            del self.views[min(self.views, key=lambda d: (self.views[d], d))]

    def take_prepare(self, process: int, packet: Prepare) -> bool:
        """Take the first prepare of a process in a view, unless it is needless, and tell whether it
        was taken."""
        before = self.prepares.get(process)
        is_new = before is None or before.view < packet.view
        is_taken = is_new and not self.is_prepared_in(packet.view)
        if is_taken:
            self.prepares[process] = packet
        return is_taken

    def take_commit(self, process: int, packet: Commit) -> None:
        """Take the first commit of a process in a view."""
        before = self.commits.get(process)
        if before is None or before.view < packet.view:
            self.commits[process] = packet

    def prepare(self, view: int, most: int) -> bool:
        """Have prepared what is accepted in this view, if so many take part in that."""
        if not self.is_accepted_in(view):
            return False
        votes = self.prepares.values()
        if sum([v.view == view and v.digest == self.digest for v in votes]) < most:
            return False
        self.prepared = self.accepted
        self.prepares = {j: vote for j, vote in self.prepares.items() if vote.view > view}
        return True

    def is_committed(self, most: int) -> bool:
        """Tell whether so many have committed what is accepted, in the same view."""
        if self.accepted is None:
            return False
        view, votes = self.accepted.view, self.commits.values()
        return sum([v.view == view and v.digest == self.digest for v in votes]) >= most

    def lacks(self, count: int) -> bool:
        """Tell whether so many have committed the same, in the same view, which is not what is
        accepted."""
        kinds = [(vote.view, vote.digest) for vote in self.commits.values()]
        view = -1 if self.accepted is None else self.accepted.view
        return any(kind != (view, self.digest) and kinds.count(kind) >= count for kind in kinds)


def forget_votes(slots: dict[int, Slot], number: int, process: int) -> None:
    """Forget what others have committed for a number whose batch is delivered: only what this
    process has said still matters."""
    if number in slots:
        slot = slots[number]
        slot.commits = {j: vote for j, vote in slot.commits.items() if j == process}


@final
class Requests(Record):
    """What is asked for and not delivered, a bounded number of each origin."""

    pending: dict[MessageId, Request] = {}
    counts: dict[int, int] = {}
    """How many they are, of each origin that has any."""
    turn: int = -1
    """The origin of the one that was waited for last, if there has been something since."""
    trusted: set[int] = set()
    """The replicas whose requests this one proposes, as the primary, without a look at the seal."""
    awaited: set[int] = set()
    """Those of whom requests were delivered together last, as long as the primary waits for more
    of them."""

    def add(self, request: Request) -> None:
        """Remember a request; the first one, if its origin gives several the same identity."""
        m = request.m.id
        count = self.counts.get(origin_of(m), 0)
        if m not in self.pending and count < AHEAD:
            self.pending[m] = request
            self.counts[origin_of(m)] = count + 1

    def add_proposed(self, packet: PrePrepare, taken: TakenMessages) -> None:
        """Remember what is proposed and was not delivered."""
        for request in packet.requests:
            if isinstance(request, Request) and not taken.has(request.m.id):
                self.add(request)

    def hear(self, request: Request) -> None:
        """Remember what the origin itself asks for, in the place of what somebody quoted, whose
        seal may be worth less."""
        known = self.pending.get(request.m.id)
        if known is not None and known.m == request.m:
            self.pending[request.m.id] = request
        else:
            self.add(request)

    def remove(self, m: MessageId) -> None:
        if self.pending.pop(m, None) is not None:
            count = self.counts.pop(origin_of(m)) - 1
            if count:
                self.counts[origin_of(m)] = count
            if not self.pending:
                self.turn = -1

    def next(self) -> MessageId:
        """The one to wait for next: of the next origin, so that nobody who always has something
        under way keeps others waiting."""
        origins = sorted(self.counts)
        self.turn = min([origin for origin in origins if origin > self.turn], default=origins[0])
        return min([m for m in self.pending if origin_of(m) == self.turn])

    def are_asked_for(self, packet: PrePrepare, is_authentic: Callable[[Request], bool]) -> bool:
        """Tell whether all that is proposed is known to be asked for, or can be seen to be."""
        for one in packet.requests:
            if isinstance(one, Request):
                known = self.pending.get(one.m.id)
                if (known is None or known.m != one.m) and not is_authentic(one):
                    return False
        return True

    def doubt(
        self, slots: dict[int, Slot], delivered: int, is_authentic: Callable[[Request], bool]
    ) -> None:
        """Trust nobody any more whose bad seal may be why something is proposed and not
        delivered."""
        for number, slot in slots.items():
            if number > delivered and slot.accepted is not None:
                for request in slot.accepted.requests:
                    if isinstance(request, Request) and not is_authentic(request):
                        self.trusted.discard(origin_of(request.m.id))

    def except_in(self, slots: dict[int, Slot], delivered: int, proposed: int) -> list[MessageId]:
        """What is asked for and in no batch between these numbers, ascending."""
        numbers = range(delivered + 1, proposed + 1)
        accepted = [slots[number].accepted for number in numbers if number in slots]
        batches = [proposal.batch() for proposal in accepted if proposal is not None]
        under_way = {m.id for batch in batches for m in batch}
        return [m for m in sorted(self.pending) if m not in under_way]

    def wait_for_origins_of(self, layer: Layer, batch: list[Message]) -> None:
        """Give those who had something in a batch of several a moment for what they send when it
        is delivered, so that it goes together again."""
        origins = {origin_of(m.id) for m in batch}
        if len(origins) > 1:
            self.awaited = origins
            layer.set_timer(GATHER, MOMENT)

    def to_propose(
        self, layer: Layer, waiting: list[MessageId], is_authentic: Callable[[Request], bool]
    ) -> tuple[Request, ...]:
        """Those of these requests that the primary proposes now: none, while it waits for more.

        The others would wait for ever for one that only some were sent, and whose seal does not
        tell them that it is asked for.
        """
        if not waiting or not self.awaited.issubset([origin_of(m) for m in waiting]):
            return ()
        if self.awaited:
            self.awaited.clear()
            layer.cancel_timer(GATHER)
        return self.keep(
            waiting, lambda one: origin_of(one.m.id) in self.trusted or is_authentic(one)
        )

    def keep(
        self, asked_for: list[MessageId], is_kept: Callable[[Request], bool]
    ) -> tuple[Request, ...]:
        """Those of these requests that are kept; the others are forgotten."""
        kept: list[Request] = []
        for m in asked_for:
            if is_kept(self.pending[m]):
                kept.append(self.pending[m])
            else:
                self.remove(m)
        return tuple(kept)


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

    def take(self, packet: Checkpoint, process: int, window: int, most: int) -> tuple[Packet, ...]:
        """Take what a replica has announced; the proof that this checkpoint is stable, if so many
        have announced the same as this process."""
        number = packet.number
        self.have[packet.process] = max(number, self.have.get(packet.process, 0))
        if not self.stable < number <= self.stable + window:
            return ()
        self.told.setdefault((number, packet.process), packet)
        votes = self.equal(process, number)
        return tuple(votes[:most]) if len(votes) >= most else ()

    def of_all(self, group: tuple[int, ...]) -> int:
        """The highest number that all have announced."""
        return min([self.have.get(j, 0) for j in group])

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
