"""A configuration: which servers there are, which groups, and who is a member where.

All servers pass through the same configurations, one after another. Within one, nothing about
membership changes; a change of any kind is the step to the next one, before which all servers that
it concerns deliver the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import is_
from typing import Final

from msgspec import Struct

FIRST_OF_SIDES: Final = 1 << 62
"""The domains of sides are numbered from here on, which no domain of a configuration reaches."""


class Server(Struct, frozen=True, array_like=True):
    """One of the group of servers."""

    number: int
    """Unique for ever: counts all servers that ever joined; older servers have lower ones."""
    name: str
    address: str
    """Where other servers reach it: `host:port`."""
    keeps_data: bool = False
    """It remembers what it takes part in while it is not running, so it may come back."""
    attempt: int = 0
    """The attempt to join with which it came, or to begin a cluster. It is drawn at random, and
    only servers of the cluster know it: so it is also the secret by which they know each other."""


class Member(Struct, frozen=True, array_like=True):
    """A process in a group."""

    process: str
    """Its name, unique in the group."""
    server: int
    """The number of the server that it is connected to."""
    client: int
    """Its number among the clients of that server."""


NOBODY: Final = 0
"""What stands for the leader of the views that a configuration has; servers count from 1."""

SideId = tuple[int, int]
"""How often views were formed, as far as its leader knew, and the number of that server."""

NO_SIDE: Final[SideId] = (0, NOBODY)
"""What stands for it in the views that a configuration has."""


class GroupEntry(Struct, frozen=True, array_like=True, dict=True):
    name: str
    number: int
    """Unique for ever, so a group that is created anew under the same name is another."""
    stack: str
    owner: str | None
    open: bool
    allow: tuple[str, ...] | None
    view: int
    """Counts the changes of `members`."""
    members: tuple[Member, ...]
    """They stand in the order in which they joined."""
    owner_at: tuple[int, int] | None = None
    """The server and client of an owner that created the group itself: it need not be a member for
    the others to notice that it has ended."""
    senders: tuple[int, ...] = ()
    """The servers with processes that send to the group without being members, ascending."""
    domain: str = ""
    """Groups with the same stack and the same text here share a domain."""
    keep: int = 0
    """How many of the last messages are kept on disk, at least; 0: none are."""
    keepers: tuple[int, ...] = ()
    """The servers that keep them, ascending: all that keep data."""
    epoch: int = 0
    """The last domain of the group in which all keepers had all of its messages. Nobody goes on
    with less than that."""
    partitionable: bool = False
    """Its members go on in every component of the network, with views of their own."""
    merged: tuple[tuple[str, ...], ...] = ()
    """If components have met in this view: the processes of each that had been in one view."""
    side: SideId = NO_SIDE
    """The side whose servers have formed this view among themselves, if they have: those of other
    sides may have another one with the same number and the same members."""
    flows: bool = False
    """Its servers deliver the same sequence, even those that fail, so that a view can take a place
    in that while messages go on."""

    replicated: int = 0
    """The replicated domain that it is a group of; 0: it has an ordinary one."""

    @cached_property
    def servers(self) -> tuple[int, ...]:
        """The numbers of the servers that messages to the group go to, ascending: those with
        members, and its keepers. Those to a group of replicas go to these (`ReplicatedDomain`)."""
        return tuple(sorted({*(member.server for member in self.members), *self.keepers}))

    @cached_property
    def taking_part(self) -> tuple[int, ...]:
        """These and the servers with its senders, ascending: they are part of its domain."""
        return tuple(sorted({*self.servers, *self.senders}))

    @cached_property
    def domain_key(self) -> DomainKey:
        if self.replicated:
            return self.stack, f"{REPLICATED}{self.replicated}", False
        name = f"{KEPT}{self.number}" if self.keep else self.domain
        return self.stack, name, self.partitionable


KEPT = "kept:"
"""Begins the name of the domain that a group which keeps its messages has for itself."""

REPLICATED = "replicated:"
"""Begins the name that groups of a replicated domain have in the place of one that they share."""

DomainKey = tuple[str, str, bool]
"""What groups that share a domain have in common: the stack, the domain that they ask for, and
whether they are partitionable."""


class DomainEntry(Struct, frozen=True, array_like=True):
    """The servers that run one stack together, for all groups that share the domain.

    A domain with other servers is another one, and so is one that begins anew after a failure. As
    long as neither happens, groups in it come, change and go while the others are not disturbed.
    """

    number: int
    """Unique for ever, so what is said in one domain is never taken for another's."""
    stack: str
    name: str
    servers: tuple[int, ...]
    """The servers with members of its groups, with senders to them, or that keep their messages,
    ascending: the processes that the stack sees, numbered from 0."""
    partitionable: bool = False

    @property
    def key(self) -> DomainKey:
        return self.stack, self.name, self.partitionable


class ReplicaGroup(Struct, frozen=True, array_like=True):
    """A group of a replicated domain, and the servers with its replicas."""

    number: int
    """The number of the group, which may have been destroyed meanwhile."""
    name: str
    servers: tuple[str, ...]
    """Their names: a server that fails and comes back has another number, and the same replica."""


class ReplicatedDomain(Struct, frozen=True, array_like=True):
    """A stack that survives crashes itself, on servers that were named when it was created.

    It never changes. Configurations come and go, and servers with them, while it runs.
    """

    number: int
    """Unique for ever, among those of all domains."""
    stack: str
    groups: tuple[ReplicaGroup, ...]

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers by the number of their process."""
        return tuple([server for group in self.groups for server in group.servers])

    def group(self, number: int) -> ReplicaGroup:
        return next(group for group in self.groups if group.number == number)


Shares = dict[DomainKey, dict[int, int]]
"""How many groups of each domain each server takes part in; servers that do so in none are left
out."""

GroupsIn = dict[DomainKey, dict[int, GroupEntry]]
"""The groups of each domain that has some, by number, ascending."""


class Configuration(Struct, frozen=True, array_like=True, dict=True):
    number: int
    servers: tuple[Server, ...]
    """The servers in ascending order of numbers: the first is the oldest, and leads."""
    groups: tuple[GroupEntry, ...]
    """The groups in ascending order of numbers."""
    next_server: int
    next_group: int
    domains: tuple[DomainEntry, ...] = ()
    """The domains of all groups with members, senders or keepers, in ascending order of
    numbers."""
    next_domain: int = 1
    replicated: tuple[ReplicatedDomain, ...] = ()
    """The replicated domains with a group that exists, in ascending order of numbers."""

    @cached_property
    def replicated_numbered(self) -> dict[int, ReplicatedDomain]:
        return {domain.number: domain for domain in self.replicated}

    @cached_property
    def group_named(self) -> dict[str, GroupEntry]:
        return {group.name: group for group in self.groups}

    @cached_property
    def group_numbered(self) -> dict[int, GroupEntry]:
        return {group.number: group for group in self.groups}

    @cached_property
    def partitionable(self) -> tuple[GroupEntry, ...]:
        """The partitionable groups."""
        return tuple(group for group in self.groups if group.partitionable)

    @cached_property
    def owners(self) -> set[tuple[int, int]]:
        """The servers and clients that own groups which they have created themselves."""
        return {group.owner_at for group in self.groups if group.owner_at is not None}

    @cached_property
    def domain_with(self) -> dict[DomainKey, DomainEntry]:
        return {domain.key: domain for domain in self.domains}

    @cached_property
    def groups_in(self) -> GroupsIn:
        return _groups_in({}, [(None, group) for group in self.groups])

    @cached_property
    def shares(self) -> Shares:
        return shares_after({}, [(None, group) for group in self.groups])

    def adopt(
        self, before: Configuration, changed: Mapping[str, GroupEntry | None], shares: Shares
    ) -> None:
        """Take over what the configuration before has worked out about its groups, of which only
        these have changed: looking at all of them would make every change as slow as there are
        groups."""
        differ = _compared(before.groups, self.groups)
        self.__dict__["_changed_since"] = before.groups, differ
        self.__dict__["shares"] = shares
        self.__dict__["groups_in"] = _groups_in(before.groups_in, differ)
        named, numbered = before.group_named.copy(), before.group_numbered.copy()
        for name, entry in changed.items():
            known = named.pop(name, None) if entry is None else named.get(name)
            if known is not None and (entry is None or entry.number != known.number):
                del numbered[known.number]
            if entry is not None:
                named[name] = numbered[entry.number] = entry
        self.__dict__["group_named"] = named
        self.__dict__["group_numbered"] = numbered
        touched = [*changed.values(), *[before.group_named.get(name) for name in changed]]
        if not any(entry is not None and entry.partitionable for entry in touched):
            self.__dict__["partitionable"] = before.partitionable


Changed = tuple[GroupEntry | None, GroupEntry | None]
"""A group before and after a change; None before it was created, and after it was destroyed."""


def changed_groups(before: Configuration, after: Configuration) -> list[Changed]:
    """The groups that a configuration and the one made from it do not share."""
    since: tuple[object, list[Changed]] = after.__dict__.get("_changed_since", (None, []))
    return since[1] if since[0] is before.groups else _compared(before.groups, after.groups)


def _compared(before: tuple[GroupEntry, ...], after: tuple[GroupEntry, ...]) -> list[Changed]:
    first = _shared(before, after)
    rest, made = before[first:], after[first:]
    last = _shared(reversed(rest), reversed(made))
    old = {group.number: group for group in rest[: len(rest) - last]}
    differ = [(old.pop(group.number, None), group) for group in made[: len(made) - last]]
    changed: list[Changed] = [pair for pair in differ if pair[0] is not pair[1]]
    return changed + [(group, None) for group in old.values()]


def shares_after(before: Shares, changed: Iterable[Changed]) -> Shares:
    """What these changes make of the servers' shares."""
    after = before.copy()
    touched: dict[DomainKey, dict[int, int]] = {}
    for pair in changed:
        for group, more in zip(pair, (-1, 1), strict=True):
            if group is None:
                continue
            key = group.domain_key
            if key not in touched:
                touched[key] = after[key] = after.get(key, {}).copy()
            for server in group.taking_part:
                touched[key][server] = touched[key].get(server, 0) + more
    for key, of_servers in touched.items():
        after[key] = {server: count for server, count in of_servers.items() if count}
        if not after[key]:
            del after[key]
    return after


def _groups_in(before: GroupsIn, changed: Iterable[Changed]) -> GroupsIn:
    after = before.copy()
    touched: GroupsIn = {}
    for known, group in changed:
        entry = known or group
        assert entry is not None
        key = entry.domain_key
        if key not in touched:
            touched[key] = after[key] = after.get(key, {}).copy()
        if group is not None:
            touched[key][group.number] = group
        else:
            del touched[key][entry.number]
    for key, groups in touched.items():
        if not groups:
            del after[key]
    return after


def _shared(some: Iterable[GroupEntry], others: Iterable[GroupEntry]) -> int:
    """How many of the first groups are the same ones."""
    return [*map(is_, some, others), False].index(False)


def is_flowing(
    before: Configuration, known: GroupEntry | None, after: Configuration, group: GroupEntry | None
) -> bool:
    """Whether nothing has to stop for the members of a group to change.

    Messages go to the same servers as before, which deliver them in one order. So the new view
    comes where a mark stands in that order, which one of these servers multicasts.
    """
    if known is None or group is None or not group.flows or known.view == group.view:
        return False
    servers = group.servers
    if not servers or servers != known.servers:
        return False
    return before.domain_with.get(known.domain_key) == after.domain_with.get(group.domain_key)


def name_in_files(server: str) -> str:
    """A server's name as the files of a trace have it; so no two servers may agree in this."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in server)
