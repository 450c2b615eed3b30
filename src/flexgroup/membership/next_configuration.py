"""How the next configuration follows from operations.

Sections 3.5.3 to 3.5.8 of the FlexGroup text, with one difference: of two that create a group
under the same name at the same time exactly one succeeds, as the leader puts all in an order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import final

from msgspec.structs import replace

from flexgroup.membership.configuration import (
    Changed,
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    ReplicaGroup,
    ReplicatedDomain,
    Server,
    Shares,
    SideId,
    changed_groups,
    is_flowing,
    shares_after,
)
from flexgroup.membership.operations import (
    Admit,
    AnyOperation,
    CreateGroup,
    CreateReplicated,
    DestroyGroup,
    Error,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    Merge,
    OpenLog,
    RemoveClient,
    Renew,
    SendFrom,
    already_member,
)
from flexgroup.membership.side_view import Here

NUMBER = attrgetter("number")

MOST_GROUPS = 10_000
MOST_NAMES = 100_000
"""The most names on lists of who may join, over all groups. Every server holds all of them."""


@final
class NextConfiguration:
    """A configuration in the making.

    What does not change is not looked at, so that a change costs the same however many groups
    there are.
    """

    def __init__(self, before: Configuration) -> None:
        self._before = before
        self._servers = {server.number: server for server in before.servers}
        self._changed: dict[str, GroupEntry | None] = {}
        """What has become of groups that change, by name; None: it is gone."""
        self._added = 0
        """How many groups there are more than before."""
        self._gone: set[int] = set()
        """The servers that are not part of it."""
        self._admitted = False
        """There are servers that were not part of the one before."""
        self._next_server = before.next_server
        self._first = self._next_group = before.next_group
        """The numbers of new groups begin here."""
        self._next_domain = before.next_domain
        self._replicated: list[ReplicatedDomain] = []
        """The replicated domains that are created."""
        self._merged: dict[str, dict[int, ComesFrom]] = {}
        """The servers that were apart, by the name of a group that they change, and from where."""

    def without(self, servers: Collection[int]) -> None:
        """These servers are not part of it, and their processes leave all groups."""
        for number in servers:
            if self._servers.pop(number, None) is not None:
                self._gone.add(number)

    def lose_processes(self, servers: set[int]) -> None:
        """The processes of these servers leave all groups; the servers stay."""
        if servers:
            self._remove_processes(servers)

    def _group(self, name: str) -> GroupEntry | None:
        return self._changed[name] if name in self._changed else self._before.group_named.get(name)

    def _groups(self) -> list[GroupEntry]:
        """The groups as they are now."""
        before = self._before.groups
        unchanged = [entry for entry in before if entry.name not in self._changed]
        return unchanged + [entry for entry in self._changed.values() if entry is not None]

    def admit(self, server: Server) -> None:
        self._servers[server.number] = server
        self._admitted = True
        self._next_server = max(self._next_server, server.number + 1)

    def apply(self, origin: int, operation: AnyOperation, group: int | None) -> Error | None:
        """Carry out what `origin` asked for, or say why not.

        `group` is the number that the named group had where and when the request was made.
        """
        match operation:
            case CreateGroup():
                return self._create(origin, operation)
            case CreateReplicated():
                return self._create_replicated(operation)
            case DestroyGroup():
                return self._destroy(operation, group)
            case JoinGroup():
                return self._join(origin, operation)
            case LeaveGroup():
                return self._leave(origin, operation)
            case RemoveClient():
                for entry in self._groups():
                    for member in entry.members:
                        if (member.server, member.client) == (origin, operation.client):
                            self._remove(entry.name, member)
                    if entry.owner_at == (origin, operation.client):
                        self._owner_ended(entry.name)
            case LeaveServers():
                if len(self._servers) > 1:
                    self.without({origin})
                # The last one ends as well, but a cluster without servers could not come back.
            case SendFrom():
                return self._send_from(origin, operation)
            case OpenLog():
                return self._open_log(operation)
            case Merge():
                self._merge(origin, operation)
            case Renew():
                pass
            case Admit():
                raise AssertionError("a server is admitted by admit()")
        return None

    def _create(self, origin: int, operation: CreateGroup) -> Error | None:
        if self._group(operation.group) is not None:
            return (
                "exists",
                f"there is a group {operation.group!r}; join it, or choose another name",
            )
        number = len(self._before.groups) + self._added
        if number >= MOST_GROUPS or (operation.allow and self._allows_too_many(operation.allow)):
            return (
                "too-many",
                f"there may be {MOST_GROUPS} groups, with {MOST_NAMES} names of who may join; "
                "destroy some first",
            )
        keepers = self._keepers() if operation.keep else ()
        if operation.keep and 2 * len(keepers) <= len(self._servers):
            return (
                "not-kept",
                f"{len(keepers)} of {len(self._servers)} servers keep data, and more than half have"
                " to for a group that keeps its messages; start servers with --data",
            )
        self._added += 1
        self._changed[operation.group] = GroupEntry(
            name=operation.group,
            number=self._next_group,
            stack=operation.stack,
            owner=operation.owner,
            open=operation.open,
            allow=operation.allow,
            view=0,
            members=(),
            owner_at=None if operation.client is None else (origin, operation.client),
            domain=operation.domain,
            keep=operation.keep,
            keepers=keepers,
            partitionable=operation.partitionable,
            flows=operation.flows,
        )
        self._next_group += 1
        return None

    def _create_replicated(self, operation: CreateReplicated) -> Error | None:
        if error := self._why_not_replicated(operation):
            return error
        groups: list[ReplicaGroup] = []
        for name, servers in operation.groups:
            groups.append(ReplicaGroup(self._next_group, name, servers))
            self._added += 1
            self._changed[name] = GroupEntry(
                name=name,
                number=self._next_group,
                stack=operation.stack,
                owner=None,
                open=True,
                allow=None,
                view=0,
                members=(),
                replicated=self._next_domain,
            )
            self._next_group += 1
        self._replicated.append(ReplicatedDomain(self._next_domain, operation.stack, tuple(groups)))
        self._next_domain += 1
        return None

    def _why_not_replicated(self, operation: CreateReplicated) -> Error | None:
        for name, _ in operation.groups:
            if self._group(name) is not None:
                return "exists", f"there is a group {name!r}; join it, or choose another name"
        # Who is admitted now could not tell that the replicas are new, and would not start its own.
        gone = self._gone
        present = {server.name for server in self._before.servers if server.number not in gone}
        named = [server for _, servers in operation.groups for server in servers]
        names = [name for name, _ in operation.groups]
        twice = sorted({name for name in names if names.count(name) > 1})
        twice += sorted({server for server in named if named.count(server) > 1})
        if twice or not all(servers for _, servers in operation.groups):
            return (
                "not-allowed",
                f"{', '.join(map(repr, twice))} twice: a server has one replica of one group"
                if twice
                else "a group without replicas: name at least one server for each",
            )
        if missing := sorted(set(named) - present):
            return (
                "not-here",
                f"there is no server {', '.join(map(repr, missing))} now; there are "
                f"{', '.join(sorted(present))}: name some of these, or start the others first",
            )
        if len(self._before.groups) + self._added + len(operation.groups) > MOST_GROUPS:
            return "too-many", f"there may be {MOST_GROUPS} groups; destroy some first"
        return None

    def _replicated_left(self, groups: Sequence[GroupEntry]) -> tuple[ReplicatedDomain, ...]:
        """The replicated domains of which a group exists."""
        domains = (*self._before.replicated, *self._replicated)
        if not domains:
            return ()
        used = {entry.replicated for entry in groups if entry.replicated}
        return tuple(domain for domain in domains if domain.number in used)

    def _keepers(self) -> tuple[int, ...]:
        """The servers that keep data."""
        keeping = [number for number, server in self._servers.items() if server.keeps_data]
        return tuple(sorted(keeping))

    def _allows_too_many(self, allow: tuple[str, ...]) -> bool:
        allowed = sum(len(group.allow or ()) for group in self._groups())
        return allowed + len(allow) > MOST_NAMES

    def _destroy(self, operation: DestroyGroup, number: int | None) -> Error | None:
        entry = self._group(operation.group)
        if number is not None and (entry is None or entry.number != number):
            return None  # destroyed by another at the same time: both succeed
        if entry is None:
            return _missing(operation.group)
        if entry.owner is not None and entry.owner != operation.process:
            return "not-owner", f"only {entry.owner!r} may destroy the group {entry.name!r}"
        # A group without owner and members could never be destroyed if that took a member.
        is_member = any(member.process == operation.process for member in entry.members)
        if entry.owner is None and entry.members and not is_member:
            return (
                "not-member",
                f"the group {entry.name!r} is destroyed by its members; "
                f"{operation.process!r} is none",
            )
        self._changed[entry.name] = None
        self._added -= 1
        return None

    def _join(self, origin: int, operation: JoinGroup) -> Error | None:
        entry = self._group(operation.group)
        if entry is None:
            return _missing(operation.group)
        if any(member.process == operation.process for member in entry.members):
            return already_member(operation)
        if entry.allow is not None and operation.process not in entry.allow:
            return (
                "not-allowed",
                f"{operation.process!r} is not among those who may join {entry.name!r}",
            )
        if operation.wants_kept and not entry.keep:
            return (
                "not-kept",
                f"{entry.name!r} keeps no messages; join without since=, or create a group with "
                "keep= for those that come later",
            )
        if error := self._kept_elsewhere(origin, entry) or self._replicated_elsewhere(
            origin, entry
        ):
            return error
        member = Member(operation.process, origin, operation.client)
        self._changed[entry.name] = replace(entry, members=(*entry.members, member))
        return None

    def _kept_elsewhere(self, origin: int, entry: GroupEntry) -> Error | None:
        """Why nobody can be in a group over this server, if others keep its messages.

        Whoever asks may not know yet that the group keeps them, as it is created at the same time.
        """
        server = self._servers.get(origin)
        if not entry.keep or server is None or server.keeps_data:
            return None
        names = ", ".join(self._servers[number].name for number in self._keepers())
        return (
            "not-kept",
            f"{entry.name!r} keeps its messages, and this server keeps no data; connect to one "
            f"that does ({names or 'none runs now'})",
        )

    def _replicated_elsewhere(self, origin: int, entry: GroupEntry) -> Error | None:
        """Why nobody can be in a group over this server, if it has no replica of that."""
        server = self._servers.get(origin)
        if not entry.replicated or server is None:
            return None
        domains = (*self._before.replicated, *self._replicated)
        domain = next(one for one in domains if one.number == entry.replicated)
        return not_here(domain.group(entry.number), server.name)

    def _leave(self, origin: int, operation: LeaveGroup) -> Error | None:
        entry = self._group(operation.group)
        if entry is None:
            return _missing(operation.group)
        member = Member(operation.process, origin, operation.client)
        if member not in entry.members:
            return "not-member", f"{operation.process!r} is not a member of {entry.name!r}"
        self._remove(entry.name, member)
        return None

    def _send_from(self, origin: int, operation: SendFrom) -> Error | None:
        entry = self._group(operation.group)
        if entry is None:
            return _missing(operation.group)
        if operation.wanted and (error := self._kept_elsewhere(origin, entry)):
            return error
        others = {server for server in entry.senders if server != origin}
        senders = others | {origin} if operation.wanted else others
        self._changed[entry.name] = replace(entry, senders=tuple(sorted(senders)))
        return None

    def _open_log(self, operation: OpenLog) -> Error | None:
        entry = self._group(operation.group)
        if entry is None:
            return _missing(operation.group)
        domain = self._before.domain_with.get(entry.domain_key)
        if not entry.keep or domain is None or domain.number != operation.domain:
            return "busy", f"{entry.name!r} has another domain now"
        self._changed[entry.name] = replace(entry, epoch=domain.number)
        return None

    def _merge(self, origin: int, operation: Merge) -> None:
        """What a server has of partitionable groups takes the place of what was known of it.

        Of two processes with one name, the one stays that was here.
        """
        was = operation.part.origin
        view = was.view
        brought = {here.group: here for here in operation.part.groups}
        known = {entry.number: entry for entry in view.groups}
        for entry in self._groups():
            if not entry.partitionable:
                continue
            here = brought.get(entry.number, Here(entry.number))
            rest = tuple(member for member in entry.members if member.server != origin)
            senders = {server for server in entry.senders if server != origin}
            has_members = bool(here.members) or len(rest) < len(entry.members)
            if not has_members and here.sends == (origin in entry.senders):
                continue
            names = {member.process for member in rest}
            new = tuple(
                Member(process, origin, client)
                for process, client in here.members
                if process not in names
            )
            seen = known.get(entry.number)
            staying = was.staying(seen) if seen is not None else set()
            self._merged.setdefault(entry.name, {})[origin] = view.id, staying
            self._changed[entry.name] = replace(
                entry,
                members=rest + new,
                senders=tuple(sorted(senders | {origin} if here.sends else senders)),
                view=max(entry.view, seen.view if seen is not None else 0),
            )

    def _remove(self, name: str, member: Member) -> None:
        entry = self._group(name)
        assert entry is not None
        is_owner = entry.owner == member.process
        self._changed[name] = replace(
            entry,
            members=tuple(other for other in entry.members if other != member),
            owner=None if is_owner else entry.owner,
            owner_at=None if is_owner else entry.owner_at,
        )

    def _owner_ended(self, name: str) -> None:
        """The owner, or the connection under which it created the group, has ended."""
        entry = self._group(name)
        assert entry is not None
        is_member = any(member.process == entry.owner for member in entry.members)
        owner = entry.owner if is_member else None
        self._changed[name] = replace(entry, owner=owner, owner_at=None)

    def finish(self, renewed: Collection[int] = (), apart: Collection[int] = ()) -> Configuration:
        """The configuration, in which these domains of the one before begin anew; processes of
        servers that were apart have not been in its views."""
        if self._gone:
            self._remove_processes(self._gone)
        if self._gone or self._admitted:
            self._replace_keepers()
        before = self._before
        for name, entry in self._changed.items():
            known = before.group_named.get(name)
            members = known.members if known and entry and known.number == entry.number else ()
            if entry is not None and (entry.members != members or name in self._merged):
                merged: tuple[tuple[str, ...], ...] = ()
                if name in self._merged:
                    were = {member for member in members if member.server not in apart}
                    merged = components(entry, were, self._merged[name])
                self._changed[name] = replace(entry, view=entry.view + 1, merged=merged)
            elif entry == known:
                self._changed[name] = known  # who came has gone again
        groups = self._all_groups()
        changed = [(before.group_named.get(name), entry) for name, entry in self._changed.items()]
        shares = shares_after(before.shares, changed)
        domains = self._domains(changed, shares, renewed)
        after = Configuration(
            number=before.number + 1,
            servers=tuple(self._servers[number] for number in sorted(self._servers)),
            groups=tuple(groups),
            next_server=self._next_server,
            next_group=self._next_group,
            domains=tuple(domains),
            next_domain=max([self._next_domain, *[domain.number + 1 for domain in domains]]),
            replicated=self._replicated_left(groups),
        )
        after.adopt(before, self._changed, shares)
        return after

    def _all_groups(self) -> list[GroupEntry]:
        """The groups in ascending order of numbers; those that have not changed are not looked
        at."""
        groups = list(self._before.groups)
        ended = []
        for name, entry in self._changed.items():
            known = self._before.group_named.get(name)
            if known is not None:
                place = bisect_left(groups, known.number, key=NUMBER)
                if entry is not None and entry.number == known.number:
                    groups[place] = entry
                else:
                    ended.append(place)
        for place in sorted(ended, reverse=True):
            del groups[place]
        new = [entry for entry in self._changed.values() if entry and entry.number >= self._first]
        return groups + sorted(new, key=NUMBER)

    def _remove_processes(self, servers: set[int]) -> None:
        """All processes of these servers leave all groups."""
        for entry in self._groups():
            for member in entry.members:
                if member.server in servers:
                    self._remove(entry.name, member)
            if entry.owner_at is not None and entry.owner_at[0] in servers:
                self._owner_ended(entry.name)
            if servers.intersection(entry.senders):
                for server in servers:
                    self._send_from(server, SendFrom(entry.name, False))

    def _replace_keepers(self) -> None:
        """All servers that keep data keep the messages of the groups that ask for it."""
        keepers = self._keepers()
        for entry in self._groups():
            if entry.keep and entry.keepers != keepers:
                self._changed[entry.name] = replace(entry, keepers=keepers)

    def _domains(
        self, changed: list[Changed], shares: Shares, renewed: Collection[int]
    ) -> list[DomainEntry]:
        """Those before, except where other servers take part or one begins anew."""
        before = self._before
        entries = [entry for pair in changed for entry in pair if entry is not None]
        # Nothing about replicated domains changes.
        keys = {entry.domain_key for entry in entries if not entry.replicated}
        keys.update(domain.key for domain in before.domains if domain.number in renewed)
        domains = [domain for domain in before.domains if domain.key not in keys]
        number = self._next_domain
        for key in sorted(keys):
            known = before.domain_with.get(key)
            servers = tuple(sorted(shares.get(key, ())))
            if known is not None and known.servers == servers and known.number not in renewed:
                domains.append(known)
            elif servers:
                stack, name, partitionable = key
                domains.append(DomainEntry(number, stack, name, servers, partitionable))
                number += 1
        return sorted(domains, key=lambda domain: domain.number)


ComesFrom = tuple[SideId, set[tuple[str, int]]]
"""The view that a server comes from, and its processes that were in it, each with its client."""


def components(
    entry: GroupEntry, were: set[Member], merged: Mapping[int, ComesFrom]
) -> tuple[tuple[str, ...], ...]:
    """The processes of a group by the view that they come from: these members from that of the
    configuration before, and those of servers that were apart from others. Whoever was in none of
    these is left out. Empty if there is only one."""
    parts: dict[SideId | None, list[str]] = {}
    for member in entry.members:
        view, staying = merged.get(member.server, (None, ()))
        if (member.process, member.client) in staying or (view is None and member in were):
            parts.setdefault(view, []).append(member.process)
    return tuple(tuple(part) for part in parts.values()) if len(parts) > 1 else ()


def concerned(before: Configuration, after: Configuration) -> tuple[set[int], set[int]]:
    """What has to stop for a change: the domains that end with it, and those groups of the other
    domains that end, or whose members change and not at a place in the order of messages. Nothing
    may be on its way to them."""
    going_on = {domain.number for domain in after.domains}
    ending = {domain.number for domain in before.domains if domain.number not in going_on}
    groups = set()
    for known, group in changed_groups(before, after):
        if known is not None and (group is None or group.view != known.view):
            domain = before.domain_with.get(known.domain_key)
            if domain is None or domain.number in ending:
                continue
            if not is_flowing(before, known, after, group):
                groups.add(known.number)
    return ending, groups


def not_here(group: ReplicaGroup, server: str) -> Error | None:
    """Why nobody can be in a group of replicas over this server, if none of them is there."""
    if server in group.servers:
        return None
    return (
        "not-here",
        f"{group.name!r} has no replica at the server {server!r}; connect to one of those that "
        f"have: {', '.join(group.servers)}",
    )


def _missing(group: str) -> Error:
    return "missing", f"there is no group {group!r}; create it first"
