"""What a change of views rests on: quorums, which view replicas want, and what their view changes
oblige a new primary to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Packet, origin_of
from flexgroup.protocols.parts.pbft_log import MOST_BATCHES, Checkpoints, Slot
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

    def are_distinct(self, processes: list[int]) -> bool:
        """Tell whether these are a quorum of replicas."""
        return len(processes) == len(set(processes) & set(self.group)) == self.most

    def is_valid(self, change: ViewChange, is_sealed: IsSealed) -> bool:
        """Tell whether a correct replica may have said this when it left its view."""
        if not 0 < change.view < FAR or change.stable >= FAR or change.process not in self.group:
            return False
        P = [vote for vote in change.P if isinstance(vote, Commit)]
        Q = [vote for vote in change.Q if isinstance(vote, Prepare)]
        if len(P) != len(change.P) or len(Q) != len(change.Q):
            return False
        said = [(v.view, v.number, v.digest) for v in P] + [(v.view, v.number, v.digest) for v in Q]
        low, high = change.stable, change.stable + self.window
        if not all(v < change.view and low < n <= high and is_digest(d) for v, n, d in said):
            return False
        return (
            len(P) == len({vote.number for vote in P})
            and len(Q) == len({(vote.number, vote.digest) for vote in Q})
            and len(Q) <= self.window * MOST_BATCHES
            and is_sealed(change.process, change.said(), change.seal)
            and self.proves_stable(change.stable, change.C, is_sealed)
        )

    def is_new_view(self, packet: NewView, is_sealed: IsSealed) -> bool:
        """Tell whether a correct primary may begin the view in this way."""
        V = [one for one in packet.V if isinstance(one, ViewChange)]
        processes = {change.process for change in V}
        if len(V) != len(packet.V) or not self.most <= len(processes) == len(V):
            return False
        if not all(c.view == packet.view and not c.batches and c.last == 0 for c in V):
            return False
        if not all(self.is_valid(change, is_sealed) for change in V):
            return False
        chosen = choices(V, self)
        if chosen is None or len(chosen) != len(packet.O):
            return False
        for (number, digest), proposal in zip(chosen, packet.O, strict=True):
            if not isinstance(proposal, PrePrepare) or proposal.view != packet.view:
                return False
            if proposal.number != number or not is_batch(proposal, digest):
                return False
        return True


@final
class Views(Record):
    """Which view a replica takes part in, and which ones the replicas of its group want."""

    process: int
    quorums: Quorums
    view: int = 0
    changing: bool = False
    """Whether the view is still to begin: this process takes part in no earlier one."""
    changes: dict[int, ViewChange] = {}
    """What each replica said when it left its view for the highest that it wants."""

    @property
    def primary(self) -> int:
        return self.quorums.primary(self.view)

    def takes_part_in(self, view: int) -> bool:
        return self.view == view and not self.changing

    def is_past(self, view: int) -> bool:
        """Tell whether the view has begun here, or will not any more."""
        return view < self.view + (not self.changing)

    def is_news(self, packet: ViewChange) -> bool:
        """Tell whether its replica has wanted no such view, and this process does not have it."""
        before = self.changes.get(packet.process)
        return not self.is_past(packet.view) and (before is None or before.view < packet.view)

    def leave(self, layer: Layer, change: ViewChange) -> ViewChange:
        """Leave the view for a later one; what is said of that, with its seal."""
        sealed = change.with_seal(layer.seal(change.said()))
        self.view = change.view
        self.changing = True
        self.changes[self.process] = sealed
        return sealed

    def higher(self) -> int:
        """The lowest view above this one that some replica wants, if one that does is correct; 0
        otherwise."""
        higher = [change.view for change in self.changes.values() if change.view > self.view]
        return min(higher) if len(higher) > self.quorums.faulty else 0

    def is_left_by_most(self) -> bool:
        """Tell whether a quorum takes part in no view before this one, which has not begun."""
        left = [change for change in self.changes.values() if change.view >= self.view]
        return self.changing and len(left) >= self.quorums.most

    def new_view(self) -> NewView | None:
        """What begins the view, if this process is to begin it, and knows how."""
        changes = [self.changes[j] for j in sorted(self.changes)]
        V = [change for change in changes if change.view == self.view]
        if self.primary != self.process or len(V) < self.quorums.most:
            return None
        proposals = proposals_again(V, self.quorums, self.view)
        if proposals is None:
            return None
        return NewView(self.view, tuple([change.quoted() for change in V]), tuple(proposals))

    def begin(self, view: int) -> None:
        self.view = view
        self.changing = False
        self.changes = {j: c for j, c in self.changes.items() if c.view > view}


def has_batches(change: ViewChange) -> bool:
    """Tell whether the batches come with a view change that it says to be prepared."""
    if len(change.batches) != len(change.P):
        return False
    for vote, batch in zip(change.P, change.batches, strict=True):
        if not isinstance(vote, Commit) or not isinstance(batch, PrePrepare):
            return False
        if not is_batch(batch, vote.digest):
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
    P: list[Packet] = []
    Q: list[Packet] = []
    batches: list[Packet] = []
    for number in sorted(slots):
        slot = slots[number]
        Q += [Prepare(slot.views[digest], number, digest) for digest in sorted(slot.views)]
        if slot.prepared is not None:
            P.append(slot.commits[process])
            batches.append(slot.prepared)
    stable, proof = checkpoints.stable, checkpoints.proof
    return ViewChange(view, stable, proof, tuple(P), tuple(Q), process, b"", tuple(batches), last)


def choices(V: list[ViewChange], quorums: Quorums) -> list[tuple[int, bytes]] | None:
    """The digest of what the primary has to propose again for each number beyond the highest stable
    checkpoint, up to the last one that may be committed; None if more has to be known for that."""
    stable = max([change.stable for change in V])
    commits: dict[int, list[Commit]] = {}
    prepares: dict[int, list[Prepare]] = {}
    for change in V:
        for vote in (*change.P, *change.Q):
            if isinstance(vote, Commit):
                commits.setdefault(vote.number, []).append(vote)
            elif isinstance(vote, Prepare):
                prepares.setdefault(vote.number, []).append(vote)
    found: list[tuple[int, bytes]] = []
    needed = 0
    for number in range(stable + 1, max(commits, default=stable) + 1):
        said = commits.get(number, [])
        digest = choice(len(V), said, prepares.get(number, []), quorums)
        if digest is not None:
            needed = len(found) + 1
        elif len(V) - len(said) < quorums.most:
            return None
        found.append((number, NULL if digest is None else digest))
    return found[:needed]


def choice(
    count: int, commits: list[Commit], prepares: list[Prepare], quorums: Quorums
) -> bytes | None:
    """The digest that has to be proposed again for a number, by what so many replicas say of it;
    None if there is none.

    It is the one of the highest view that a quorum of them do not contradict, who have nothing
    prepared in that view or later that differs; if one more than f have taken part in giving the
    number to it in that view or later, so that a liar alone cannot have made it up.
    """
    for view, digest in sorted({(vote.view, vote.digest) for vote in commits}, reverse=True):
        contradict = [
            vote
            for vote in commits
            if vote.view >= view and (vote.view, vote.digest) != (view, digest)
        ]
        confirm = [vote for vote in prepares if vote.view >= view and vote.digest == digest]
        if count - len(contradict) >= quorums.most and len(confirm) > quorums.faulty:
            return digest
    return None


def proposals_again(V: list[ViewChange], quorums: Quorums, view: int) -> list[PrePrepare] | None:
    """The same as pre-prepares, in this view."""
    chosen = choices(V, quorums)
    if chosen is None:
        return None
    batches = [one for change in V for one in change.batches if isinstance(one, PrePrepare)]
    requests = {digest_of(one.batch()): one.requests for one in batches}
    return [PrePrepare(view, n, requests.get(digest, ())) for n, digest in chosen]


def may_send(
    sender: int, packet: Packet, process: int, quorums: Quorums, is_sealed: IsSealed
) -> bool:
    """Tell whether another process may send this if it is correct, whatever has happened before:
    the origin its request, and a replica of the group the rest."""
    group = quorums.group
    if isinstance(packet, Request) and origin_of(packet.m.id) == sender != process:
        return process in group and packet.m.destinations == group
    if sender not in group or sender == process:
        return False
    if isinstance(packet, Request):
        is_authentic = is_sealed(origin_of(packet.m.id), packet.said(), packet.seal)
        return packet.m.destinations == group and is_authentic
    if isinstance(packet, PrePrepare):
        is_primary = sender == quorums.primary(packet.view)
        return is_primary and is_near(packet.view, packet.number) and are_of([packet], group)
    if isinstance(packet, Prepare):
        is_backup = sender != quorums.primary(packet.view)
        return is_backup and is_near(packet.view, packet.number) and is_digest(packet.digest)
    if isinstance(packet, Commit):
        return is_near(packet.view, packet.number) and is_digest(packet.digest)
    if isinstance(packet, Checkpoint):
        is_due = packet.number % quorums.interval == 0
        is_its = sender == packet.process
        return is_its and is_due and is_near(0, packet.number) and is_digest(packet.digest)
    if isinstance(packet, ViewChange):
        is_its = sender == packet.process
        return is_its and packet.last < FAR and are_of(packet.batches, group)
    if isinstance(packet, NewView):
        is_primary = sender == quorums.primary(packet.view)
        return is_primary and 0 < packet.view < FAR and are_of(packet.O, group)
    if isinstance(packet, Fetch):
        return 0 < packet.first <= packet.last < min(FAR, packet.first + quorums.interval)
    if isinstance(packet, Fetched):
        return is_near(0, packet.number) and all(m.destinations == group for m in packet.messages)
    return False


def is_near(view: int, number: int) -> bool:
    return view < FAR and 0 < number < FAR


def is_digest(digest: bytes) -> bool:
    return len(digest) == DIGEST_BYTES


def are_of(proposals: Iterable[Packet], group: tuple[int, ...]) -> bool:
    """Tell whether these are batches of requests to this group."""
    for one in proposals:
        if not isinstance(one, PrePrepare):
            return False
        for request in one.requests:
            if not isinstance(request, Request) or request.m.destinations != group:
                return False
    return True
