"""The views of partitionable groups in one component of the network, a *side*.

While a server stands still, since too few others are heard to go on with the configuration, those
that it does hear form views of the partitionable groups with it. Who is a member is known where the
process is connected; a view is the union of what its servers know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from flexgroup.membership.configuration import (
    NOBODY,
    Configuration,
    DomainEntry,
    DomainKey,
    GroupEntry,
    Member,
    SideId,
)
from flexgroup.membership.flush import DomainFlush, DomainReport, Report, merge_reports


class Here(Struct, frozen=True, array_like=True):
    """What one server has of a partitionable group."""

    group: int
    members: tuple[tuple[str, int], ...] = ()
    """Its processes, each with its number among the clients of the server."""
    sends: bool = False
    """Whether processes there send to the group without being members."""


class SideView(Struct, frozen=True, array_like=True):
    """The partitionable groups as all servers of a side have them."""

    id: SideId
    servers: tuple[int, ...]
    """The servers that have formed it together."""
    groups: tuple[GroupEntry, ...]
    domains: tuple[DomainEntry, ...]


class Origin(Struct, frozen=True, array_like=True):
    """Where a server comes from."""

    view: SideView
    server: int
    """Its number there; one that was excluded gets another when it is admitted again."""

    left: tuple[tuple[int, int], ...] = ()
    """The groups that its clients have left since, and the client. The view stays as it was: what
    is still to be delivered in it is delivered wherever it was multicast to."""

    def renumbered(self, me: int) -> tuple[GroupEntry, ...]:
        """The groups as they are here now, where this server may have another number."""
        if me == self.server and not self.left:
            return self.view.groups
        return tuple(
            replace(
                entry,
                members=tuple(
                    replace(member, server=me) if self._is_here(member) else member
                    for member in entry.members
                    if not (self._is_here(member) and (entry.number, member.client) in self.left)
                ),
                senders=tuple(me if s == self.server else s for s in entry.senders),
            )
            for entry in self.view.groups
        )

    def _is_here(self, member: Member) -> bool:
        return member.server == self.server

    def staying(self, entry: GroupEntry) -> set[tuple[str, int]]:
        """The processes of the server that are in this group of the view and have not left it
        since, each with its number among the clients."""
        return {
            (member.process, member.client)
            for member in entry.members
            if self._is_here(member) and (entry.number, member.client) not in self.left
        }

    def without(self, client: int, group: str | None = None) -> Origin:
        """The same, when a client of the server has left a group, or has vanished from all."""
        left = [
            (entry.number, client)
            for entry in self.view.groups
            if group in (None, entry.name)
            and any(self._is_here(member) and member.client == client for member in entry.members)
        ]
        return replace(self, left=(*self.left, *left))

    def kept(self, me: int) -> Configuration:
        """What the server, which had this number last, has while it is none of the cluster: the
        groups of its processes."""
        groups = tuple(entry for entry in self.renumbered(me) if me in entry.taking_part)
        return Configuration(0, (), groups, 0, 0, self.view.domains)


class Part(Struct, frozen=True, array_like=True):
    """What a server brings to a view that is being formed."""

    origin: Origin
    groups: tuple[Here, ...]
    """What it has of the groups now; that its processes have joined or left is new in it."""
    domains: list[DomainReport]
    """What it has delivered in the view that it comes from."""


def here(groups: tuple[GroupEntry, ...], server: int) -> tuple[Here, ...]:
    """What a server has of these groups, where it has anything."""
    found = [
        Here(
            entry.number,
            tuple((m.process, m.client) for m in entry.members if m.server == server),
            server in entry.senders,
        )
        for entry in groups
        if entry.partitionable
    ]
    return tuple(one for one in found if one.members or one.sends)


def first_count(configuration: int) -> int:
    """Where views are counted from beside a configuration. A server that has come back has
    forgotten its count, and takes part only beside a later configuration."""
    return configuration << 20


def view_of(configuration: Configuration) -> SideView:
    """The views of a configuration, in which all its servers are."""
    return SideView(
        (first_count(configuration.number), NOBODY),
        tuple(server.number for server in configuration.servers),
        configuration.partitionable,
        tuple(domain for domain in configuration.domains if domain.partitionable),
    )


def overlaid(configuration: Configuration, origin: Origin, me: int) -> Configuration:
    """A configuration as this server has it, which is in another view of the partitionable
    groups."""
    known = {entry.number: entry for entry in origin.renumbered(me)}
    groups = tuple(
        _in_view(entry, known[entry.number]) if entry.number in known else entry
        for entry in configuration.groups
    )
    domains = [domain for domain in configuration.domains if not domain.partitionable]
    domains = sorted([*domains, *origin.view.domains], key=lambda domain: domain.number)
    return replace(configuration, groups=groups, domains=tuple(domains))


def _in_view(entry: GroupEntry, seen: GroupEntry) -> GroupEntry:
    return replace(
        entry,
        view=seen.view,
        members=seen.members,
        senders=seen.senders,
        merged=seen.merged,
        side=seen.side,
    )


def united(
    id: SideId, configuration: Configuration, parts: Mapping[int, Part], first: int
) -> tuple[SideView, list[DomainFlush]]:
    """The view that these servers form, and what is left to deliver in those they come from.

    `configuration` is the one that all of them stand still at; domains are numbered from `first`.
    """
    groups = tuple(_united(id, entry, parts) for entry in configuration.partitionable)
    servers_of: dict[DomainKey, set[int]] = {}
    for entry in groups:
        if entry.taking_part:
            servers_of.setdefault(entry.domain_key, set()).update(entry.taking_part)
    domains = tuple(
        DomainEntry(number, stack, name, tuple(sorted(servers_of[stack, name, flag])), flag)
        for number, (stack, name, flag) in enumerate(sorted(servers_of), first)
    )
    return SideView(id, tuple(sorted(parts)), groups, domains), flushes(parts.values())


def _united(id: SideId, entry: GroupEntry, parts: Mapping[int, Part]) -> GroupEntry:
    members: list[Member] = []
    names: set[str] = set()
    places: dict[str, int] = {}
    views = [entry.view]
    senders = []
    come_from: dict[SideId, list[str]] = {}
    for server in sorted(parts):
        part = parts[server]
        view = part.origin.view
        before = next((one for one in view.groups if one.number == entry.number), entry)
        views.append(before.view)
        for place, member in enumerate(before.members):
            places.setdefault(member.process, place)
        known = part.origin.staying(before)
        for one in part.groups:
            if one.group != entry.number:
                continue
            if one.sends:
                senders.append(server)
            for process, client in one.members:
                if process not in names:  # of two with one name, that of the older server stays
                    names.add(process)
                    members.append(Member(process, server, client))
                    if (process, client) in known:
                        come_from.setdefault(view.id, []).append(process)
    members.sort(key=lambda member: places.get(member.process, len(places)))
    components = tuple(tuple(processes) for processes in come_from.values())
    return replace(
        entry,
        view=max(views) + 1,
        members=tuple(members),
        senders=tuple(senders),
        merged=components if len(components) > 1 else (),
        side=id,
    )


def flushes(parts: Iterable[Part]) -> list[DomainFlush]:
    """What those who come from the same domain together still have to deliver in it."""
    reports: dict[int, dict[int, Report]] = {}
    before: dict[int, Configuration] = {}
    for part in parts:
        view = part.origin.view
        for report in part.domains:
            reports.setdefault(report.domain, {})[part.origin.server] = Report([report])
            before[report.domain] = Configuration(0, (), view.groups, 0, 0, view.domains)
    return [
        replace(flush, together=tuple(sorted(reports[number])))
        for number in sorted(reports)
        for flush in merge_reports(before[number], reports[number], (number,))
    ]
