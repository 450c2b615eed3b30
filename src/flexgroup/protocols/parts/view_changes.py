"""What a change of views rests on: quorums, certificates, and what they oblige a new primary to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.pbft_log import Checkpoints, Slot
from flexgroup.protocols.parts.pbft_packets import (
    DIGEST_BYTES,
    Checkpoint,
    Commit,
    Fetch,
    Fetched,
    NewView,
    Prepare,
    PrePrepare,
    Request,
    ViewChange,
    digest_of,
)
from flexgroup.protocols.parts.timestamps import FAR

IsSealed = Callable[[int, Packet, bytes], bool]
"""Whether the seal is that of a process on this packet."""

IsOurs = Callable[[Message], bool]
"""Whether a message is for this group."""

NULL: Final = digest_of(())
"""The digest of the null request, a batch without messages, which fills a hole."""


@final
class Quorums(Record):
    """How many replicas of a group have to say the same."""

    group: tuple[int, ...]
    interval: int
    """K: there is a checkpoint every so many sequence numbers."""

    @property
    def faulty(self) -> int:
        """f: so many may lie. One more have a correct one among them."""
        return (len(self.group) - 1) // 3

    @property
    def most(self) -> int:
        """2f + 1 of 3f + 1: any two such sets have a correct replica in common."""
        return (len(self.group) + self.faulty) // 2 + 1

    @property
    def window(self) -> int:
        """L: numbers may be so far beyond the last stable checkpoint."""
        return 2 * self.interval

    def primary(self, view: int) -> int:
        return self.group[view % len(self.group)]

    def proves_stable(self, stable: int, C: tuple[Packet, ...], is_sealed: IsSealed) -> bool:
        """Tell whether these are equal checkpoints with this number, sealed by a quorum."""
        if stable == 0:
            return not C
        if len(C) != self.most or stable % self.interval:
            return False
        votes = [vote for vote in C if isinstance(vote, Checkpoint) and vote.number == stable]
        digests = {vote.digest for vote in votes}
        return (
            self.are_distinct([vote.process for vote in votes])
            and len(digests) == 1
            and all(is_sealed(v.process, v.said(), v.seal) for v in votes)
        )

    def proves_prepared(self, votes: list[Prepare], is_sealed: IsSealed) -> bool:
        """Tell whether these are equal prepares, sealed by a quorum."""
        kinds = {(vote.view, vote.number, vote.digest) for vote in votes}
        return (
            self.are_distinct([vote.process for vote in votes])
            and len(kinds) == 1
            and all(is_sealed(v.process, v.said(), v.seal) for v in votes)
        )

    def are_distinct(self, processes: list[int]) -> bool:
        """Tell whether these are a quorum of replicas."""
        return len(processes) == len(set(processes) & set(self.group)) == self.most

    def is_valid(self, change: ViewChange, is_sealed: IsSealed) -> bool:
        """Tell whether a correct replica may have said this when it left its view."""
        if not 0 < change.view < FAR or change.stable >= FAR or change.process not in self.group:
            return False
        if len(change.P) > self.window * self.most:
            return False
        groups = certificates_in(change)
        if sum(map(len, groups.values())) != len(change.P):
            return False
        for number, votes in groups.items():
            if not change.stable < number <= change.stable + self.window:
                return False
            if len(votes) != self.most or votes[0].view >= change.view:
                return False
        return (
            is_sealed(change.process, change.said(), change.seal)
            and self.proves_stable(change.stable, change.C, is_sealed)
            and all(self.proves_prepared(votes, is_sealed) for votes in groups.values())
        )

    def is_new_view(self, packet: NewView, is_sealed: IsSealed) -> bool:
        """Tell whether a correct primary may begin the view in this way."""
        V = [one for one in packet.V if isinstance(one, ViewChange)]
        if len(V) != len(packet.V) or not self.are_distinct([change.process for change in V]):
            return False
        if not all(c.view == packet.view and not c.batches and c.last == 0 for c in V):
            return False
        if not all(self.is_valid(change, is_sealed) for change in V):
            return False
        to_propose = obligations(V)
        if len(to_propose) != len(packet.O):
            return False
        primary = self.primary(packet.view)
        for (number, digest), proposal in zip(to_propose, packet.O, strict=True):
            if not isinstance(proposal, PrePrepare) or proposal.view != packet.view:
                return False
            said = Prepare(packet.view, number, digest, primary, b"")
            if proposal.number != number or not is_sealed(primary, said, proposal.seal):
                return False
            if not is_batch(proposal, digest):
                return False
        return True


def certificates_in(change: ViewChange) -> dict[int, list[Prepare]]:
    """The prepares that a view change quotes, by sequence number."""
    groups: dict[int, list[Prepare]] = {}
    for vote in change.P:
        if isinstance(vote, Prepare) and vote.view < FAR and vote.number < FAR:
            groups.setdefault(vote.number, []).append(vote)
    return groups


def has_batches(change: ViewChange) -> bool:
    """Tell whether the batches come with a view change that it proves to be prepared."""
    groups = certificates_in(change)
    if len(change.batches) != len(groups):
        return False
    for number, batch in zip(sorted(groups), change.batches, strict=True):
        if not isinstance(batch, PrePrepare) or not is_batch(batch, groups[number][0].digest):
            return False
    return True


def is_batch(proposal: PrePrepare, digest: bytes) -> bool:
    """Tell whether this is a batch with this digest."""
    if not all(isinstance(one, Request) for one in proposal.requests):
        return False
    return digest_of(proposal.batch()) == digest


def change_of(
    view: int, process: int, checkpoints: Checkpoints, slots: dict[int, Slot], last: int
) -> ViewChange:
    """What a replica has to say when it leaves for this view, without a seal."""
    prepared = [slots[number] for number in sorted(slots) if slots[number].certificate]
    votes = tuple([vote for slot in prepared for vote in slot.certificate])
    batches = tuple([slot.certified for slot in prepared if slot.certified is not None])
    stable, proof = checkpoints.stable, checkpoints.proof
    return ViewChange(view, stable, proof, votes, process, b"", batches, last)


def obligations(V: list[ViewChange]) -> list[tuple[int, bytes]]:
    """What the primary has to propose again: the digest for each number beyond the highest stable
    checkpoint, up to the highest that is prepared anywhere.

    It is that of the certificate of the highest view, or of the null request if there is none.
    """
    stable = max([change.stable for change in V])
    highest: dict[int, Prepare] = {}
    for change in V:
        for number, votes in certificates_in(change).items():
            if number not in highest or votes[0].view > highest[number].view:
                highest[number] = votes[0]
    numbers = range(stable + 1, max(highest, default=stable) + 1)
    return [(n, highest[n].digest if n in highest else NULL) for n in numbers]


def proposals_again(V: list[ViewChange]) -> list[PrePrepare]:
    """The same as pre-prepares, of whatever view and without a seal."""
    batches = [one for change in V for one in change.batches if isinstance(one, PrePrepare)]
    requests = {digest_of(one.batch()): one.requests for one in batches}
    return [PrePrepare(0, n, requests.get(digest, ()), b"") for n, digest in obligations(V)]


def may_send(sender: int, packet: Packet, process: int, quorums: Quorums, is_ours: IsOurs) -> bool:
    """Tell whether the sender is another replica of the group, and may send this if it is correct,
    whatever has happened before."""
    if sender not in quorums.group or sender == process:
        return False
    if isinstance(packet, PrePrepare):
        is_primary = sender == quorums.primary(packet.view)
        return is_primary and is_near(packet.view, packet.number) and are_ours([packet], is_ours)
    if isinstance(packet, Prepare):
        is_backup = sender == packet.process != quorums.primary(packet.view)
        return is_backup and is_near(packet.view, packet.number) and is_digest(packet.digest)
    if isinstance(packet, Commit):
        return is_near(packet.view, packet.number) and is_digest(packet.digest)
    if isinstance(packet, Checkpoint):
        is_due = packet.number % quorums.interval == 0
        is_its = sender == packet.process
        return is_its and is_due and is_near(0, packet.number) and is_digest(packet.digest)
    if isinstance(packet, ViewChange):
        is_its = sender == packet.process
        return is_its and packet.last < FAR and are_ours(packet.batches, is_ours)
    if isinstance(packet, NewView):
        is_primary = sender == quorums.primary(packet.view)
        return is_primary and 0 < packet.view < FAR and are_ours(packet.O, is_ours)
    if isinstance(packet, Fetch):
        return 0 < packet.first <= packet.last < min(FAR, packet.first + quorums.interval)
    if isinstance(packet, Fetched):
        return is_near(0, packet.number) and all(map(is_ours, packet.messages))
    return False


def is_near(view: int, number: int) -> bool:
    return view < FAR and 0 < number < FAR


def is_digest(digest: bytes) -> bool:
    return len(digest) == DIGEST_BYTES


def are_ours(proposals: Iterable[Packet], is_ours: IsOurs) -> bool:
    """Tell whether these are batches of requests to this group."""
    for one in proposals:
        if not isinstance(one, PrePrepare):
            return False
        for request in one.requests:
            if not isinstance(request, Request) or not is_ours(request.m):
                return False
    return True
