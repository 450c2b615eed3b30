"""Clients that do what a schedule says, and what they saw: in virtual time and in real time."""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from flexgroup.client.connecting import connect
from flexgroup.client.errors import GroupExists, NoSuchGroup
from flexgroup.client.group import Group, Link
from flexgroup.client.message import Message, View
from flexgroup.core.errors import FlexGroupError
from flexgroup.virtual.schedule import ClientPlan, Schedule


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with an execution."""

    kind: str
    """The same words for all problems of a kind, whoever and whatever is concerned."""
    text: str

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Problem], tuple[str, str]]:
        # Otherwise, in the compiled form, whoever is sent one by another process cannot read it.
        return Problem, (self.kind, self.text)


@dataclass
class Sent:
    """A message of a client; it names itself in its body."""

    name: str
    groups: tuple[str, ...]
    at: float
    has_failed: bool = False
    """The client was told that it may not have been sent."""
    is_confirmed: bool = False


@dataclass
class Membership:
    """What one client saw of one group, from joining it to leaving it."""

    process: str
    group: str
    joined_at: float
    items: list[tuple[float, str | View]] = field(default_factory=list)
    """Names of messages and views, in the order of their positions, and when the client was given
    them, in this group or, if a message went to several, in another one."""
    positions: list[int] = field(default_factory=list)
    """The positions of the items."""
    ended_at: float | None = None

    def add(self, at: float, item: View | Message[bytes]) -> None:
        place = bisect(self.positions, item.position)
        if isinstance(item, View) and not any(isinstance(i, View) for _, i in self.items):
            # What comes before the first view was for an earlier membership in the same group.
            del self.positions[:place], self.items[:place]
            place = 0
        self.positions.insert(place, item.position)
        self.items.insert(place, (at, item if isinstance(item, View) else item.body.decode()))


@dataclass
class Life:
    """One connection of a client: a process, as far as groups are concerned."""

    process: str
    server: int
    sent: list[Sent] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    ended_at: float | None = None
    """When the connection was lost, if it was."""

    def add(self, at: float, item: View | Message[bytes]) -> None:
        """Write down what the client was given, for each of its groups that it was meant for."""
        groups = (item.group,) if isinstance(item, View) else item.groups
        for membership in self.memberships:
            if membership.group in groups and membership.ended_at is None:
                membership.add(at, item)

    def was_in(self, sent: Sent) -> bool:
        """Whether it has been in a group of this message since before it was sent."""
        return any(
            m.group in sent.groups and m.ended_at is None and m.joined_at < sent.at
            for m in self.memberships
        )

    def given(self) -> set[str]:
        """The messages that the client was given, in whichever group."""
        return {i for m in self.memberships for _, i in m.items if isinstance(i, str)}


class Surroundings(Protocol):
    """What a client has to know of the execution that it is a part of."""

    @property
    def schedule(self) -> Schedule: ...

    @property
    def addresses(self) -> Sequence[str]:
        """Where the servers are."""

    @property
    def problems(self) -> list[Problem]:
        """Takes what is found to be wrong."""

    def now(self) -> float:
        """The time in seconds, the same for all clients."""


class ScheduledClient:
    """Stays connected and in its groups, whatever happens, and writes down what it sees."""

    def __init__(
        self,
        plan: ClientPlan,
        execution: Surroundings,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        *,
        reads_by_link: bool,
    ) -> None:
        """`spawn` lets something run beside everything else, as the client's own."""
        self.plan = plan
        self.lives: list[Life] = []
        self._execution = execution
        self._spawn = spawn
        self._groups: dict[str, Group[bytes]] = {}
        self._wanted = dict.fromkeys(plan.groups)
        self._link: Link | None = None
        self._reads_by_link = reads_by_link
        """It reads all its groups by link, instead of each by itself."""
        spawn(self._live())

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and in all groups it wants to be in."""
        return self._link is not None and all(name in self._groups for name in self._wanted)

    async def _live(self) -> None:
        addresses = self._execution.addresses
        attempt = 0
        while True:
            server = (self.plan.server + attempt) % len(addresses)
            attempt += 1
            process = f"{self.plan.name}.{len(self.lives)}"
            link = None
            with suppress(FlexGroupError, OSError):
                link = await connect(addresses[server], name=process, timeout=10.0)
            if link is None:
                await asyncio.sleep(0.05)
                continue
            life = Life(process, server)
            self.lives.append(life)
            self._link = link
            if self._reads_by_link:
                self._spawn(self._read(link.events(), life, None))
            for name in list(self._wanted):
                self._spawn(self._enter(link, life, name))
            await asyncio.shield(link.connection.closed)
            life.ended_at = self._execution.now()
            self._link = None
            self._groups.clear()

    async def _enter(self, link: Link, life: Life, name: str) -> None:
        while link is self._link and name in self._wanted and name not in self._groups:
            # Messages to this group, too, may be read in another one before this task goes on.
            membership = Membership(life.process, name, inf)
            if not self._reads_by_link:
                life.memberships.append(membership)
            group = None
            with suppress(FlexGroupError):
                group = await self._join(link, name)
            if group is None:
                membership.ended_at = self._execution.now()
                await asyncio.sleep(0.01)
                continue
            membership.joined_at = self._execution.now()
            if link is not self._link:
                return
            self._groups[name] = group
            if not self._reads_by_link:
                self._spawn(self._read(group.events(), life, membership))

    async def _join(self, link: Link, name: str) -> Group[bytes]:
        schedule = self._execution.schedule
        if not schedule.partitionable:
            return await link.join(name, schedule.stack, keep=schedule.keep)
        group = Group(link, name)
        with suppress(NoSuchGroup):
            return await group.join()
        with suppress(GroupExists):
            await group.create(schedule.stack, partitionable=True)
        return await group.join()

    async def _read(
        self, events: AsyncIterator[Message[bytes] | View], life: Life, of: Membership | None
    ) -> None:
        """Write down what is given in a group, or in all."""
        last = 0
        execution = self._execution
        with suppress(FlexGroupError):
            async for item in events:
                if item.position <= last:
                    text = f"{life.process} was given {item} after position {last}"
                    execution.problems.append(Problem("positions fall back", text))
                last = item.position
                if of is None and isinstance(item, View):
                    self._begin_membership(life, item)
                life.add(execution.now(), item)
        for membership in life.memberships if of is None else [of]:
            if membership.ended_at is None:
                membership.ended_at = execution.now()

    def _begin_membership(self, life: Life, view: View) -> None:
        open = [m for m in life.memberships if m.group == view.group and m.ended_at is None]
        if not open:
            life.memberships.append(Membership(life.process, view.group, self._execution.now()))

    # What the schedule makes it do.

    def act(self, what: str, groups: tuple[str, ...]) -> None:
        """Do what an action of the schedule says."""
        match what:
            case "send":
                self.send(groups)
            case "confirm":
                self.confirm(groups[0])
            case "join":
                self.join(groups[0])
            case "leave":
                self.leave(groups[0])
            case "drop":
                self.drop()
            case _:
                raise ValueError(f"{what} is nothing that a client does")

    def send(self, groups: tuple[str, ...]) -> None:
        self._spawn(self._send(groups))

    def confirm(self, group: str) -> None:
        if self._link is not None and group in self._groups:
            self._spawn(self._confirm(self._groups[group], self.lives[-1]))

    def join(self, group: str) -> None:
        self._wanted[group] = None
        if self._link is not None:
            self._spawn(self._enter(self._link, self.lives[-1], group))

    def leave(self, group: str) -> None:
        self._wanted.pop(group, None)
        self._spawn(self._leave(group))

    def drop(self) -> None:
        if self._link is not None:
            self._link.connection.abort()

    async def _send(self, names: tuple[str, ...]) -> None:
        link = self._link
        groups = [self._groups[name] for name in names if name in self._groups]
        if link is None or not groups:
            return
        life = self.lives[-1]
        name = f"{life.process}:{len(life.sent)}"
        sent = Sent(name, tuple(group.name for group in groups), self._execution.now())
        life.sent.append(sent)
        try:
            if len(groups) == 1:
                await groups[0].send(name.encode())
            else:
                await link.multicast(groups, name.encode())
        except FlexGroupError:
            sent.has_failed = True

    async def _confirm(self, group: Group[bytes], life: Life) -> None:
        sent = [one for one in life.sent if group.name in one.groups]
        with suppress(FlexGroupError):
            await group.confirm()
            for one in sent:
                one.is_confirmed = not one.has_failed

    async def _leave(self, name: str) -> None:
        group = self._groups.pop(name, None)
        if group is not None:
            for membership in self.lives[-1].memberships:
                if membership.group == name and membership.ended_at is None:
                    membership.ended_at = self._execution.now()
            with suppress(FlexGroupError):
                await group.leave()


def has_all_come(clients: Iterable[ScheduledClient]) -> bool:
    """Whether all who are in a group were given the last that each who is there has sent."""
    lives = [client.lives[-1] for client in clients if client.is_settled]
    last = [life.sent[-1] for life in lives if life.sent and not life.sent[-1].has_failed]
    return all(
        sent.name in given
        for life in lives
        for given in [life.given()]
        for sent in last
        if life.was_in(sent)
    )
