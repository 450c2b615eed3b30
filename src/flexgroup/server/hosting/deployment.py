"""The domains of one configuration at one server.

All groups with the same stack share a domain, so one order spans them. The processes that a
stack sees are the servers, numbered from 0 in the order of their age.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.message import Message, MessageId, message_id, origin_of, seq_of
from flexgroup.core.varints import Reader, varints
from flexgroup.membership.configuration import Configuration, GroupEntry
from flexgroup.membership.flush import DomainFlush, DomainReport, Unstable
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.peers.links import COUNTS, PACKETS, head_of
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.envelope import Envelope, seal, unseal
from flexgroup.worlds.network.faults import Faults
from flexgroup.worlds.network.stability import Groups, Stability

NOTHING = Configuration(number=0, servers=(), groups=(), next_server=0, next_group=0)
"""What is installed at a server that has not joined the others, or has left them."""

Recording = Callable[[str, tuple[GroupEntry, ...]], Recorder | None]
"""A recorder for the domain of a stack with these groups, if a trace is wanted."""


@final
class HostedDomain:
    """A domain, and what is known of its messages."""

    def __init__(
        self,
        configuration: Configuration,
        number: int,
        stack: str,
        me: int,
        faults: Faults,
        recorder: Recorder | None,
    ) -> None:
        self.stack = stack
        groups = groups_with(configuration, stack)
        self.groups = {group.number: group for group in groups}
        self.servers = servers = tuple([server.number for server in configuration.servers])
        self.process_of = process_of = {server: process for process, server in enumerate(servers)}
        self.packets_head = head_of(PACKETS, configuration.number, number)
        self.counts_head = head_of(COUNTS, configuration.number, number)
        self.process = process_of[me]
        self.processes_of = {
            group.number: tuple([process_of[server] for server in group.servers()])
            for group in groups
        }
        plan = parse_stack(stack)
        self._everyone = tuple(range(len(servers)))
        self._broadcasts = plan.broadcasts
        self._promises = plan.promises(faults.channels())
        self.domain = Domain(
            plan.build(self.process, len(servers)),
            Codec(plan.layers),
            len(servers),
            faults,
            recorder,
        )
        # A message that all with members have delivered may still be under way to others.
        told_by = dict.fromkeys(self.groups, self._everyone)
        self.stability = Stability(self.process, told_by if self._broadcasts else self.processes_of)
        self.cast_count = 0
        """How many envelopes this server has multicast."""
        self.messages_cast = 0
        """How many messages of clients were in these envelopes."""
        self.messages_delivered = 0
        self.reported = 0
        """When others were last told how far this server is, in milliseconds."""
        self._positions: dict[int, int] = {}

    def start(self, now: int) -> None:
        self.domain.record_view(self._everyone, 0)
        self.domain.start(now)

    def destinations(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        """The processes with members of any of these groups, or all if the stack knows no less."""
        if self._broadcasts:
            return self._everyone
        if len(groups) == 1:
            return self.processes_of[groups[0]]
        return tuple(sorted({p for group in groups for p in self.processes_of[group]}))

    def cast(self, now: int, groups: tuple[int, ...], count: int, contents: bytes) -> None:
        destinations = self.destinations(groups)
        if not destinations:
            return
        lines = tuple([(group, self._positions.get(group, 0)) for group in groups])
        payload = seal(lines, count, contents)
        m = Message(message_id(self.process, self.cast_count), destinations, payload)
        self.domain.cast(now, m)
        # Only now: a stack may refuse a message.
        self.stability.sent(m, lines)
        self.cast_count += 1
        self.messages_cast += count
        for group, position in lines:
            self._positions[group] = position + 1

    def take_delivered(self) -> list[Envelope]:
        """What the stack has delivered since, opened."""
        delivered, self.domain.delivered = self.domain.delivered, []
        return [self._opened(m) for m in delivered]

    def _opened(self, m: Message) -> Envelope:
        envelope = unseal(_bytes(m))
        self.stability.deliver(origin_of(m.id), m, envelope.groups)
        self.messages_delivered += envelope.count
        return envelope

    def sent_by_layer(self) -> list[tuple[str, int]]:
        """The names of the layers, the lowest first, with how many packets each has sent."""
        stack = self.domain.host.stack
        names = [type(layer).__name__ for layer in stack.layers]
        return list(zip(names, stack.sent_counts(), strict=True))

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
            self.stability.told(teller, group, origin, count)

    # The end of a configuration.

    def report(self) -> DomainReport:
        stability = self.stability
        undelivered = [m.id for m, _ in stability.own.values() if m.id not in stability.kept]
        return DomainReport(
            self.stack,
            [
                self._reported(identity, groups, stability.kept)
                for identity, groups in stability.log
            ],
            tuple((group, self.servers[origin], low) for (group, origin), low in stability.lows()),
            [self._reported(m, stability.own[m][1], stability.own) for m in undelivered],
            [stability.logged_when_sent(m) for m in undelivered],
            self._broadcasts,
            self._promises,
        )

    def _reported(
        self, identity: MessageId, groups: Groups, kept: dict[MessageId, tuple[Message, Groups]]
    ) -> Unstable:
        origin, seq = self.servers[origin_of(identity)], seq_of(identity)
        if identity not in kept:
            return Unstable(origin, seq, groups, b"", True)
        return Unstable(origin, seq, groups, _bytes(kept[identity][0]))

    def finish(self, flush: DomainFlush | None, following: Configuration) -> list[Envelope]:
        """Deliver what is left and this server lacks; another configuration follows."""
        opened = self._flush(flush) if flush is not None else []
        present = [server.number for server in following.servers]
        members = [process for server, process in self.process_of.items() if server in present]
        self.domain.record_view(tuple(members), 1)
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


def groups_with(configuration: Configuration, stack: str) -> tuple[GroupEntry, ...]:
    return tuple([group for group in configuration.groups if group.stack == stack])


@final
class Deployment:
    """The configuration that is installed at this server, and its domains."""

    def __init__(self, faults: Faults, recording: Callable[[Configuration], Recording]) -> None:
        self._faults = faults
        self._recording = recording
        self.me = -1
        """The number of this server in the configuration."""
        self.clear()

    def clear(self) -> None:
        """Have nothing installed."""
        self.configuration = NOTHING
        self.number = NOTHING.number
        """The number of the configuration; 0 if there is none."""
        self.domains: list[HostedDomain] = []
        """They stand in the order in which all servers number them."""
        self.domain_of: dict[int, HostedDomain] = {}
        """The domain of each group, by the group's number."""
        self.frozen = True
        """Nothing is delivered or multicast: a change is under way, or nothing is installed."""

    def install(self, configuration: Configuration, me: int, now: int) -> None:
        recording = self._recording(configuration)
        self.configuration = configuration
        self.number = configuration.number
        self.me = me
        self.domains = [
            HostedDomain(
                configuration,
                number,
                stack,
                me,
                self._faults,
                recording(stack, groups_with(configuration, stack)),
            )
            for number, stack in enumerate(sorted({group.stack for group in configuration.groups}))
        ]
        self.domain_of = {group: hosted for hosted in self.domains for group in hosted.groups}
        self.frozen = False
        for hosted in self.domains:
            hosted.start(now)

    def group(self, name: str) -> GroupEntry | None:
        return next((group for group in self.configuration.groups if group.name == name), None)

    def is_owner(self, client: int) -> bool:
        """Whether this client of the server has created a group that still exists."""
        return any(group.owner_at == (self.me, client) for group in self.configuration.groups)

    def has_undelivered(self) -> bool:
        """Whether something that was multicast here is not known to be delivered everywhere."""
        return self.frozen or any(hosted.stability.own for hosted in self.domains)
