"""The domains that a server takes part in.

All groups with the same stack share a domain, unless they ask for another, so one order spans
them. The processes that a stack sees are the servers with members of these groups or with senders
to them, numbered from 0 in the order of their age.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import time_ns
from typing import final

from flexgroup.membership.configuration import (
    FIRST_OF_SIDES,
    Configuration,
    DomainEntry,
    DomainKey,
    GroupEntry,
    changed_groups,
    is_flowing,
)
from flexgroup.membership.decision import Casts
from flexgroup.membership.effects import Freeze
from flexgroup.membership.flush import DomainFlush, Report
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.server.hosting.keeping import Keeping
from flexgroup.server.peers.kept_messages import KeptMessages
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.faults import Faults

NOTHING = Configuration(number=0, servers=(), groups=(), next_server=0, next_group=0)
"""What is installed at a server that has not joined the others, or has left them."""

Recording = Callable[[Configuration, DomainEntry], Recorder | None]
"""Makes a recorder for a domain of a configuration, if a trace is wanted."""


@dataclass
class ComingView:
    """A view that members are told of when its mark is delivered."""

    before: GroupEntry
    group: GroupEntry
    then: list[Callable[[], None]] = field(default_factory=list)
    """Are called when they have been."""


@final
class Deployment:
    """The configuration that is installed at this server, and the domains it takes part in."""

    def __init__(
        self,
        faults: Faults,
        recording: Recording,
        clock: Callable[[], int] = time_ns,
        messages: Callable[[], KeptMessages] | None = None,
    ) -> None:
        self._messages = messages
        """Gives what holds the messages of groups that are kept, if this server keeps data."""
        self._faults = faults
        self._recording = recording
        self._clock = clock
        self.me = -1
        """The number of this server in the configuration."""
        self.clear()

    def clear(self) -> None:
        """Have nothing installed."""
        self.configuration = NOTHING
        self.number = NOTHING.number
        """The number of the configuration; 0 if there is none."""
        self.hosted: dict[int, HostedDomain] = {}
        """The domains by number."""
        self.domains: list[HostedDomain] = []
        """The same, in ascending order of numbers."""
        self.with_key: dict[DomainKey, HostedDomain] = {}
        """The same, by what their groups have in common."""
        self.domain_of: dict[int, HostedDomain] = {}
        """The domain of each group that has one here, by the group's number."""
        self.is_changing = True
        """A change is under way, or nothing is installed."""
        self.is_apart = False
        """Partitionable groups go on in a side, while the others stand still."""
        self.is_moving = False
        """The partitionable groups are stopped, until they go on in another view."""
        self._held: set[int] = set()
        """Groups to which nothing is multicast, since their members are about to change."""
        self._coming: dict[int, deque[ComingView]] = {}
        """The views of groups that are installed, and whose marks are not delivered here yet."""

    def part(self, alone: Configuration) -> None:
        """The server has left the others, and keeps the partitionable groups of this configuration,
        stopped, until it is admitted again."""
        kept = [hosted for hosted in self.domains if hosted.entry.partitionable]
        self.clear()
        self.is_moving = True
        self.configuration = alone
        for hosted in kept:
            hosted.is_frozen = True
            self._take_part(hosted)
        for group in alone.groups:
            self._host(group)

    def _take_part(self, hosted: HostedDomain) -> None:
        self.hosted[hosted.entry.number] = hosted
        self.domains.append(hosted)
        self.with_key[hosted.key] = hosted

    @property
    def is_alone(self) -> bool:
        """Whether the server has left the others, and keeps what it has of partitionable groups."""
        return not self.number and bool(self.configuration.groups)

    @property
    def is_of_side(self) -> bool:
        """Whether the partitionable groups here are in other views than those of the others."""
        return self.is_apart or self.is_moving

    def is_ahead(self, domain: int) -> bool:
        """Whether a domain that is not hosted here may be soon."""
        if domain < FIRST_OF_SIDES:
            return domain >= self.configuration.next_domain
        return self.is_moving

    def is_stopped(self, domain: HostedDomain, groups: tuple[int, ...]) -> bool:
        """Whether nothing may be multicast to these groups of a domain now."""
        if domain.is_frozen or domain.is_held or domain.is_closed:
            return True
        return bool(self._held) and not self._held.isdisjoint(groups)

    def freeze(self, effect: Freeze) -> Report:
        """Stop what a change concerns, and tell what was delivered and multicast there."""
        self.is_changing = True
        self.is_moving = self.is_moving or effect.is_of_side
        self._hold(effect.hold_groups)
        casts: dict[int, int] = {}
        for hosted in self.domains:
            number = hosted.entry.number
            hosted.is_frozen = hosted.is_frozen or number in effect.domains
            if self._is_aside(hosted):
                continue
            hosted.is_held = hosted.is_held or number in effect.hold
            if number in effect.hold:
                casts |= hosted.casts(hosted.groups)
            else:
                casts |= hosted.casts([g for g in effect.hold_groups if g in hosted.groups])
        return Report(
            [hosted.report() for hosted in self.domains if hosted.is_frozen],
            tuple(sorted(casts.items())),
        )

    def _hold(self, groups: Collection[int]) -> None:
        """Have nothing multicast to these groups, except to those that go on in a side: changes are
        not about them, and may stay under way for as long as the network is parted."""
        numbered = self.configuration.group_numbered
        for number in groups:
            group = numbered.get(number)
            if group is None or not (group.partitionable and self.is_of_side):
                self._held.add(number)

    def commit(self) -> None:
        """Have all messages that were to be kept on the disk."""
        if self._messages is not None:
            self._messages().commit()

    def is_drained(self, casts: Casts) -> bool:
        """Whether all of these envelopes are delivered here that are to be."""
        for group, server, count in casts:
            hosted = self.domain_of.get(group)
            if hosted is None or self._is_aside(hosted):
                continue
            if not hosted.is_drained(group, server, count):
                return False
        return True

    def _is_aside(self, hosted: HostedDomain) -> bool:
        """Whether a domain is of a side, so that changes are not about it."""
        return hosted.entry.partitionable and self.is_of_side

    def finish(
        self,
        following: Configuration,
        flush: list[DomainFlush],
        restarted: Collection[int] = (),
    ) -> list[Envelope]:
        """End the domains that are not part of the following configuration; what is delivered in
        them last."""
        left = {rest.domain: rest for rest in flush}
        opened: list[Envelope] = []
        for hosted in self._ending(following):
            opened += hosted.finish(left.get(hosted.entry.number), following, restarted)
        return opened

    def _ending(self, following: Configuration) -> list[HostedDomain]:
        going_on = {entry.number for entry in following.domains}
        return [hosted for hosted in self.domains if hosted.entry.number not in going_on]

    # Views that take a place among messages.

    def seen(self, number: int) -> GroupEntry | None:
        """A group as its members know it here."""
        coming = self._coming.get(number)
        return coming[0].before if coming else self.configuration.group_numbered.get(number)

    def take_view(self, mark: Envelope) -> list[ComingView]:
        """The views that members are told of now that this mark is delivered."""
        number, _ = mark.groups[0]
        coming = self._coming.get(number)
        taken: list[ComingView] = []
        while coming and coming[0].group.view <= mark.view:
            taken.append(coming.popleft())
        if not coming:
            self._coming.pop(number, None)
        return taken

    def take_unmarked(self, following: Configuration) -> list[ComingView]:
        """Those whose marks are lost: they end a domain that is no part of what follows."""
        ending = self._ending(following)
        lost = [n for n in self._coming if any(n in hosted.groups for hosted in ending)]
        return [view for number in lost for view in self._coming.pop(number)]

    @property
    def expects_marks(self) -> bool:
        """Whether members are still to be told of a view that is installed."""
        return bool(self._coming)

    def when_seen(self, name: str, then: Callable[[], None]) -> None:
        """Call `then` when members have been told of the latest view of a group."""
        group = self.group(name)
        coming = self._coming.get(group.number) if group is not None else None
        if coming:
            coming[-1].then.append(then)
        else:
            then()

    def install(
        self,
        configuration: Configuration,
        me: int,
        casts: Casts,
        now: int,
        is_restarted: bool = False,
        stands_still: bool = False,
        is_apart: bool = False,
    ) -> None:
        """Go on in this configuration. A server that was restarted takes part in no domain of it
        before the others know; one that stands still goes on with partitionable groups only, and
        one that comes from a side with all others."""
        before = self.configuration
        self.configuration = configuration
        self.number = configuration.number
        self.me = me
        self.is_apart = stands_still
        self.is_moving = is_apart
        self.is_changing = stands_still
        held, self._held = self._held, set()
        if stands_still:
            self._hold(held)
        hosted_before, self.hosted = self.hosted, {}
        self.domains, self.with_key = [], {}
        new: list[HostedDomain] = []
        for entry in configuration.domains:
            # A server that comes from a side may have had another number there.
            is_here = me in entry.servers or entry.number in hosted_before
            if is_here and not is_restarted:
                hosted = hosted_before.pop(entry.number, None)
                if hosted is not None:
                    hosted.is_held = hosted.is_held and stands_still
                else:
                    recorder = self._recording(configuration, entry)
                    groups = configuration.groups_in[entry.key]
                    keeping = self._keeping(entry, groups)
                    hosted = HostedDomain(
                        entry, groups, me, self._faults, recorder, self._clock, keeping
                    )
                    new.append(hosted)
                self._take_part(hosted)
        for hosted in hosted_before.values():
            for group in hosted.groups:
                self.domain_of.pop(group, None)
        for hosted in new:
            self.domain_of.update(dict.fromkeys(hosted.groups, hosted))
        self._regroup(before, casts, now)
        for hosted in new:
            hosted.start(now)

    def _keeping(self, domain: DomainEntry, groups: dict[int, GroupEntry]) -> Keeping | None:
        """A group that keeps its messages has a domain for itself, on servers that keep data."""
        group = next(iter(groups.values()))
        if self._messages is None or not group.keep:
            return None
        return Keeping(group, domain, self.me, self._messages())

    def _regroup(self, before: Configuration, casts: Casts, now: int) -> None:
        """Look at the groups that have changed."""
        counts: dict[int, dict[int, int]] = {}
        for number, server, count in casts:
            counts.setdefault(number, {})[server] = count
        for known, changed in changed_groups(before, self.configuration):
            if changed is not None:
                if self.is_moving and changed.partitionable:
                    continue  # its domain waits for its end, whatever becomes of its groups
                hosted = self._host(changed)
                if hosted is None:
                    continue
                if hosted.groups.get(changed.number) is not changed:
                    hosted.regroup(now, changed.number, changed, counts.get(changed.number, {}))
                    hosted.mark_change(self.number)
                    if known is not None and is_flowing(before, known, self.configuration, changed):
                        self._expect_mark(hosted, known, changed, now)
            elif known is not None:
                hosted = self.domain_of.pop(known.number, None)
                if hosted is not None and not (self.is_moving and hosted.entry.partitionable):
                    hosted.regroup(now, known.number, None, {})
                    hosted.mark_change(self.number)

    def _expect_mark(
        self, hosted: HostedDomain, known: GroupEntry, group: GroupEntry, now: int
    ) -> None:
        """Members learn of a view by its mark, which the oldest of their servers multicasts."""
        processes = hosted.processes_of[group.number]
        if hosted.process in processes:
            self._coming.setdefault(group.number, deque()).append(ComingView(known, group))
        if hosted.process == processes[0] and not hosted.is_frozen:
            hosted.mark(now, group.number)

    def _host(self, group: GroupEntry) -> HostedDomain | None:
        """The domain of a group, if this server takes part in it."""
        hosted = self.with_key.get(group.domain_key)
        if hosted is not None:
            self.domain_of[group.number] = hosted
        else:
            self.domain_of.pop(group.number, None)
        return hosted

    def group(self, name: str) -> GroupEntry | None:
        return self.configuration.group_named.get(name)

    def domain_key(self, group: int) -> DomainKey | None:
        """What a group shares its domain by; None if there is no such group."""
        hosted = self.domain_of.get(group)
        if hosted is not None:
            return hosted.key
        entry = self.configuration.group_numbered.get(group)
        return entry.domain_key if entry is not None else None

    def is_owner(self, client: int) -> bool:
        """Whether this client of the server has created a group that still exists."""
        return (self.me, client) in self.configuration.owners

    def has_undelivered(self) -> bool:
        """Whether something that was multicast here is not known to be delivered everywhere."""
        return self.is_changing or any(hosted.stability.own for hosted in self.domains)
