"""One domain at a server: a stack, and what is known of its messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import GroupCreate, GroupDestroy, GroupUpdate, Notice
from flexgroup.core.message import Message, MessageId, message_id, origin_of, seq_of
from flexgroup.core.promises import UNIFORM
from flexgroup.core.varints import Reader, varints
from flexgroup.membership.configuration import Configuration, DomainEntry, GroupEntry
from flexgroup.membership.flush import DomainFlush, DomainReport, Identity, Unstable
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.hosting.keeping import Keeping
from flexgroup.server.peers.links import COUNTS, LOGS, PACKETS, head_of
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.envelope import Envelope, Past, follow_past, past_of, seal, unseal
from flexgroup.worlds.network.faults import Faults
from flexgroup.worlds.network.send_window import SendWindow
from flexgroup.worlds.network.stability import Groups, Stability

log = logging.getLogger("flexgroup.server")

REPORT_TICKS = 16
"""Servers tell with their packets how far they are, at most once in so many milliseconds."""

REPORT_TICKS_A_SERVER = 8
"""Where there are many servers, at most once in so many milliseconds for each from the third on:
all tell all, and would otherwise spend much of their time on that."""


@final
class HostedDomain:
    """A domain, and what is known of its messages."""

    def __init__(
        self,
        entry: DomainEntry,
        groups: dict[int, GroupEntry],
        me: int,
        faults: Faults,
        recorder: Recorder | None,
        clock: Callable[[], int],
        keeping: Keeping | None = None,
    ) -> None:
        self.entry = entry
        self.key = entry.key
        self.keeping = keeping
        """How the messages are kept, if the group of the domain asks for it."""
        self.is_closed = keeping is not None
        """Nothing is multicast until all servers have the same log, as the configuration tells."""
        self.stack = entry.stack
        self.groups = groups.copy()
        self.servers = servers = entry.servers
        self.process_of = process_of = {server: process for process, server in enumerate(servers)}
        self.mark_change(0)
        self.process = process_of[me]
        self.processes_of: dict[int, tuple[int, ...]] = {}
        numbered: dict[tuple[int, ...], tuple[int, ...]] = {}
        for number, group in groups.items():
            # There may be many groups, on few sets of servers.
            processes = numbered.get(group.servers)
            if processes is None:
                processes = numbered[group.servers] = self._processes(group.servers)
            self.processes_of[number] = processes
        plan = parse_stack(entry.stack)
        self._everyone = tuple(range(len(servers)))
        self._broadcasts = plan.broadcasts
        self._heeds_groups = plan.heeds_groups
        self.promises = plan.promises(faults.channels())
        self.domain = Domain(
            plan.build(self.process, len(servers)),
            Codec(plan.layers),
            len(servers),
            faults,
            recorder,
            clock,
        )
        self.window = SendWindow()
        # A message that all with members have delivered may still be under way to others.
        self.stability = Stability(
            self.process,
            dict.fromkeys(self.groups, self._everyone)
            if self._broadcasts
            else self.processes_of.copy(),
        )
        self.is_frozen = False
        """Nothing is delivered any more: what is left is agreed on by the servers."""
        self.is_held = False
        """Nothing is multicast any more: the domain ends when all that was is delivered."""
        self.cast_count = 0
        """How many envelopes this server has multicast."""
        self.messages_cast = 0
        """How many messages of clients were in these envelopes."""
        self.messages_delivered = 0
        self.reported = 0
        """When others were last told how far this server is, in milliseconds."""
        self.report_ticks = max(REPORT_TICKS, REPORT_TICKS_A_SERVER * (len(servers) - 2))
        """How many milliseconds pass, at least, between two such reports."""
        self._positions: dict[int, int] = {}
        self._past = [0] * len(servers) if "causal order" in self.promises else []
        """How many envelopes of each process precede what is multicast here next."""
        self._untaken_in_past = 0
        """How many of those that the stack has delivered, and nobody has taken, are counted."""
        self._held_back: list[tuple[Message, Envelope]] | None = None
        """What the stack held back when it was stopped: clients are given it at the end."""

    def _processes(self, servers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([self.process_of[server] for server in servers])

    def _told_by(self, group: int) -> tuple[int, ...]:
        """The processes that messages to a group go to."""
        return self._everyone if self._broadcasts else self.processes_of[group]

    def mark_change(self, changed: int) -> None:
        """A group of the domain has changed in this configuration, as all of its servers know."""
        self.changed = changed
        self.packets_head = head_of(PACKETS, self.entry.number, changed)
        self.counts_head = head_of(COUNTS, self.entry.number, changed)
        self.logs_head = head_of(LOGS, self.entry.number, changed)

    def start(self, now: int) -> None:
        self.domain.record_view(self._everyone, 0)
        self.domain.start(now)
        for group in self.groups.values():
            self._tell(now, None, group)
        if self.keeping is not None:
            self.keeping.start()

    def _tell(self, now: int, before: GroupEntry | None, group: GroupEntry | None) -> None:
        """Tell layers that heed groups of one that comes, has other members, or ends.

        All servers of the domain do so for the same groups in the same order.
        """
        if not self._heeds_groups:
            return
        notice: Notice
        if group is None:
            if before is None:
                return
            notice = GroupDestroy(before.number)
        else:
            names = tuple([member.process for member in group.members])
            processes = self._processes(group.servers)
            if before is None:
                notice = GroupCreate(group.number, group.name, group.view, processes, names)
            elif before.view == group.view:
                return
            else:
                notice = GroupUpdate(group.number, group.view, processes, names)
        self.domain.notice(now, notice)

    def destinations(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        """The processes with members of any of these groups, or all if the stack knows no less."""
        if self._broadcasts:
            return self._everyone
        if len(groups) == 1:
            return self.processes_of[groups[0]]
        of = self.processes_of
        return tuple(sorted({p for group in groups for p in of.get(group, ())}))

    def cast(self, now: int, groups: tuple[int, ...], count: int, contents: bytes) -> None:
        destinations = self.destinations(groups)
        if not destinations:
            return
        lines = tuple([(group, self._positions.get(group, 0)) for group in groups])
        payload = seal(lines, count, contents, self._past_of_next() if self._past else ())
        m = Message(message_id(self.process, self.cast_count), destinations, payload)
        self.domain.cast(now, m)
        # Only now: a stack may refuse a message.
        self.stability.sent(m, lines)
        if self.window.watched is None:
            self.window.watch(now, m.id)
        self.cast_count += 1
        self.messages_cast += count
        for group, position in lines:
            self._positions[group] = position + 1

    def mark(self, now: int, group: int) -> None:
        """Have the view of a group that is installed now begin behind what is multicast to it."""
        self.cast(now, (group,), 0, varints([self.groups[group].view]))

    def _past_of_next(self) -> Past:
        """The past of an envelope that is multicast now: what the stack has delivered precedes it,
        even if nobody has taken that yet."""
        self._count_in_past(self.domain.delivered)
        self._past[self.process] = self.cast_count
        return tuple(self._past)

    def _count_in_past(self, delivered: list[Message]) -> None:
        """What the stack has delivered, and its past, precede what is multicast here from now on;
        what this server has multicast does so anyway."""
        known = self._past
        while self._untaken_in_past < len(delivered):
            m = delivered[self._untaken_in_past]
            self._untaken_in_past += 1
            origin, seq = origin_of(m.id), seq_of(m.id)
            if origin == self.process:
                continue
            try:
                follow_past(_bytes(m), known)
            except PeerError:
                continue  # it is dropped when it is taken
            if origin < len(known) and seq >= known[origin]:
                known[origin] = seq + 1

    def take_delivered(self) -> list[Envelope]:
        """What the stack has delivered since, opened."""
        delivered, self.domain.delivered = self.domain.delivered, []
        if self._past:
            self._count_in_past(delivered)
            self._untaken_in_past = 0
        opened: list[Envelope] = []
        for m in delivered:
            try:
                opened.append(self._opened(m))
            except PeerError as error:
                # Nobody can open it, so it is delivered nowhere.
                log.warning("dropped", extra={"data": {"reason": str(error)}})
        return opened

    def _opened(self, m: Message) -> Envelope:
        envelope = unseal(_bytes(m), len(self._past))
        for group, _ in envelope.groups:
            if group not in self.groups:
                raise PeerError(f"an envelope to group {group}, which is not of '{self.stack}'")
        if envelope.count > len(envelope.contents):
            raise PeerError(f"an envelope of {envelope.count} messages with too few bytes for them")
        if not envelope.count:
            envelope.view = Reader(envelope.contents, 0, len(envelope.contents)).varint()
        self.stability.deliver(origin_of(m.id), m, envelope.groups)
        self.messages_delivered += envelope.count
        return envelope

    def sent_by_layer(self) -> list[tuple[str, int]]:
        """The names of the layers, the lowest first, with how many packets each has sent."""
        stack = self.domain.host.stack
        names = [type(layer).__name__ for layer in stack.layers]
        return list(zip(names, stack.sent_counts(), strict=True))

    # What is known of what this server has multicast.

    def cast_to(self, group: int) -> int:
        """How many envelopes this server has multicast to a group."""
        return self._positions.get(group, 0)

    def is_settled(self, group: int, count: int) -> bool:
        """Whether all servers with members of a group have so many of these envelopes.

        When the domain has been stopped, that is open until it ends.
        """
        if self._held_back is not None or self.is_closed:
            return False
        if group not in self.groups:
            return True  # it has ended, and before that all of them were delivered
        line = (group, self.process)
        is_uniform = UNIFORM in self.promises
        if is_uniform and self.process in self.processes_of.get(group, ()):
            return self.stability.low(line) >= count
        return self.stability.stable(line) >= count

    # What servers tell each other about stability.

    def counts(self, held_back: set[int]) -> bytes:
        """How far this server is in each line that has moved, except of groups held back."""
        stability = self.stability
        told: list[int] = []
        kept_back = []
        for line in sorted(stability.changed):
            group, origin = line
            if group in held_back:
                kept_back.append(line)
                continue
            told += (group, origin, stability.low(line))
            stability.settle(line)
        stability.changed = set(kept_back)
        return varints(told)

    def counted(self, teller: int, data: bytes, at: int) -> None:
        reader = Reader(data, at, len(data))
        while reader.position < reader.end:
            group = reader.varint()
            origin = reader.varint()
            count = reader.varint()
            if origin >= len(self.servers):
                raise PeerError(f"counts of process {origin}; there are {len(self.servers)}")
            if group in self.groups:
                self.stability.told(teller, group, origin, count)

    def look_at_window(self, now: int) -> None:
        """Something may be stable that was not."""
        watched = self.window.watched
        if watched is not None and watched not in self.stability.own:
            self.window.arrived(now)

    # Changes.

    def casts(self, groups: Collection[int]) -> dict[int, int]:
        """How many envelopes this server has multicast to each of these groups, if it has any; and
        how many to other groups that are under way to one of these as well."""
        of = self._positions
        casts = {group: of[group] for group in of if group in groups}
        for _, lines in self.stability.own.values():
            if len(lines) > 1 and any(group in groups for group, _ in lines):
                for group, position in lines:
                    casts[group] = max(casts.get(group, 0), position + 1)
        return casts

    def is_drained(self, group: int, server: int, count: int) -> bool:
        """Whether so many of a server's envelopes to a group are delivered here, if they are to
        be."""
        origin = self.process_of.get(server)
        if origin is None or self.process not in self._told_by(group):
            return True
        if self.keeping is not None and not self.keeping.is_settled:
            return False
        return not self.is_frozen and self.stability.low((group, origin)) >= count

    def regroup(
        self, now: int, group: int, entry: GroupEntry | None, counts: dict[int, int]
    ) -> None:
        """A group comes, has other members, or ends. What was multicast to it is delivered."""
        before = self.groups.get(group)
        if entry is None:
            self.groups.pop(group, None)
            self.processes_of.pop(group, None)
            self._positions.pop(group, None)
            self.stability.regroup(group, None, {})
            self._tell(now, before, None)
            return
        processes = self._processes(entry.servers)
        is_same = self.processes_of.get(group) == processes
        self.groups[group] = entry
        self.processes_of[group] = processes
        if not is_same:
            by_process = {self.process_of[server]: counts[server] for server in counts}
            self.stability.regroup(group, self._told_by(group), by_process)
        self._tell(now, before, entry)

    def report(self) -> DomainReport:
        """What was delivered and sent here. What the stack holds back counts as delivered, in its
        order: another server, which may have failed, may have delivered it."""
        if self._held_back is None:
            held_back = self.domain.host.stack.held_back()
            self._held_back = [(m, self._opened(m)) for m in held_back]
        stability = self.stability
        undelivered = [m.id for m, _ in stability.own.values() if m.id not in stability.kept]
        return DomainReport(
            self.entry.number,
            [
                self._reported(identity, groups, stability.kept)
                for identity, groups in stability.log
            ],
            tuple((group, self.servers[origin], low) for (group, origin), low in stability.lows()),
            [self._reported(m, stability.own[m][1], stability.own) for m in undelivered],
            len(self._held_back),
            self._broadcasts,
            self.promises,
        )

    def _reported(
        self, identity: MessageId, groups: Groups, kept: dict[MessageId, tuple[Message, Groups]]
    ) -> Unstable:
        origin, seq = self.servers[origin_of(identity)], seq_of(identity)
        if identity not in kept:
            return Unstable(origin, seq, groups, b"", True)
        payload = _bytes(kept[identity][0])
        return Unstable(origin, seq, groups, payload, past=past_of(payload, len(self._past)))

    def finish(
        self,
        flush: DomainFlush | None,
        following: Configuration,
        restarted: Collection[int] = (),
    ) -> list[Envelope]:
        """Deliver what is left and this server lacks; the domain ends. Servers that were restarted
        do not come to its end, although they are part of the following configuration."""
        opened = self._release(flush.dropped if flush is not None else ())
        if flush is not None:
            opened += self._flush(flush)
        if self.keeping is not None:
            self.keeping.finish(opened)
            opened = []
        servers = [server.number for server in following.servers]
        present = [server for server in servers if server not in restarted]
        if flush is not None and flush.together:
            present = list(flush.together)
        members = [process for server, process in self.process_of.items() if server in present]
        self.domain.record_view(tuple(members), 1)
        return opened

    def _release(self, dropped: Collection[Identity]) -> list[Envelope]:
        """Deliver what the stack held back: all that go on to the next configuration have it,
        unless they have agreed to drop it."""
        opened: list[Envelope] = []
        for m, envelope in self._held_back or []:
            if (self.servers[origin_of(m.id)], seq_of(m.id)) in dropped:
                continue
            self.domain.deliver_left_over(m)
            opened.append(envelope)
        return opened

    def _flush(self, flush: DomainFlush) -> list[Envelope]:
        opened: list[Envelope] = []
        for kept in flush.messages:
            origin = self.process_of.get(kept.origin)
            if origin is None:
                raise PeerError(f"a message of server {kept.origin}, which is not here")
            destinations = self.destinations(tuple([group for group, _ in kept.groups]))
            if self.process not in destinations:
                continue
            if self.stability.is_delivered(origin, kept.groups):
                continue
            m = Message(message_id(origin, kept.seq), destinations, kept.payload)
            self.domain.deliver_left_over(m)
            opened.append(self._opened(m))
        return opened


def _bytes(m: Message) -> bytes:
    assert isinstance(m.payload, bytes)
    return m.payload
