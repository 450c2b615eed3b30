"""A live cluster as the lab sees it: every server is looked at once a second, and members of the
lab send and receive. On a cluster that was started for the lab, servers can be killed, started
again and cut off.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flexgroup.client.connecting import connect
from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.lab.member import LabMember
from flexgroup.lab.watching import Watching
from flexgroup.load.local_cluster import LocalCluster, LocalServer
from flexgroup.load.observed import PATIENCE, Look, ObservedServer
from flexgroup.protocols.catalogue import parse_stack

INTERVAL = 1.0
"""The seconds between two looks at a server."""

SECONDS_KEPT = 120
FORGOTTEN_AFTER = 60
"""How many looks a server may leave unanswered that the others do not know any more."""

HAPPENINGS_KEPT = 40
MOST_MEMBERS = 24
MOST_A_SECOND = 200
"""How many messages a member of the lab sends in a second, at most, of the steady load."""

STEPS_A_SECOND = 20
"""How often in a second the steady load is sent."""

GROUP = "demo"
STACK = "RELIABLE ATOMIC"


@dataclass
class SeenServer:
    """One server, and how it was."""

    observed: ObservedServer
    name: str = ""
    local: LocalServer | None = None
    """Its process, if it was started for this lab."""
    look: Look | None = None
    """How it was at the last look; None: it did not answer."""
    was_seen: bool = False
    missed: int = 0
    """How often it did not answer, since it did."""
    deliveries: deque[float] = field(default_factory=lambda: deque(maxlen=SECONDS_KEPT))
    """How many there were in each of the last seconds."""

    @property
    def address(self) -> str:
        return self.observed.address

    @property
    def state(self) -> str:
        """How it is, in a word or two."""
        if self.local is not None and not self.local.is_running:
            return "has ended"
        if self.look is None:
            return "does not answer" if self.was_seen else "is asked"
        told = self.look.told
        is_cut = self.local is not None and self.local.is_cut
        if is_cut:
            return "cut off, stands still" if told["changing"] else "cut off"
        return "changing" if told["changing"] else "running"


class LiveCluster:
    """What is known of a cluster, and what can be done with it."""

    def __init__(
        self,
        addresses: Sequence[str],
        tls: Path | None = None,
        traces: Path | None = None,
        own: LocalCluster | None = None,
        stack: str = "",
        name: str = "",
    ) -> None:
        self.own = own
        self.servers: dict[str, SeenServer] = {}
        """All that were ever heard of, by address."""
        self.members: dict[int, LabMember] = {}
        """The members that are this lab, by number."""
        self.happenings: deque[tuple[float, str]] = deque(maxlen=HAPPENINGS_KEPT)
        """What has happened, the latest first, and when."""
        self.watching = None if traces is None else Watching(traces)
        self.steady = 0
        """How many messages each member sends in a second, again and again."""
        self.latency: deque[float] = deque(maxlen=SECONDS_KEPT)
        """The mean latency in each of the last seconds, in milliseconds; 0: no message came."""
        self._tls = tls
        self._name = name
        """The name on this lab's certificate, with TLS."""
        self._stack = stack
        """The stack of the group that is created at the beginning; empty: none is."""
        self._stacks: dict[str, str] = {}
        """The stacks of the groups that members of this lab have joined."""
        self._numbers = 0
        self._news = asyncio.Event()
        self._views: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._known: tuple[str, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []
        locals_ = {} if own is None else {server.address: server for server in own.servers}
        for address in addresses:
            self._meet(address, locals_.get(address))

    # Its life.

    async def begin(self) -> None:
        if self._stack:
            await self._begin_with_members()
        self._tasks = [asyncio.create_task(self._observe()), asyncio.create_task(self._send())]
        if self.watching is not None:
            self._tasks.append(asyncio.create_task(self.watching.follow(self.changed)))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in self.members.values():
            with suppress(FlexGroupError):
                await member.leave()
        for server in self.servers.values():
            await server.observed.close()

    async def _begin_with_members(self) -> None:
        """A group of replicas has one at each server; any other one is created by who joins."""
        try:
            await self.look()
            if parse_stack(self._stack).needs_replicas:
                link = await next(iter(self.servers.values())).observed.link()
                names = [server.name for server in self.servers.values()]
                await link.create_replicated(self._stack, {GROUP: names})
                await self.look()
            for server in list(self.servers.values()):
                await self.join(GROUP, self._stack, server.address)
        except FlexGroupError as error:
            self.note(f"{GROUP} was not created: {error}")

    def changed(self) -> None:
        """Somebody who waits for news is to look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self) -> None:
        """Wait until something has changed."""
        await self._news.wait()

    # Looking.

    def _meet(self, address: str, local: LocalServer | None = None) -> SeenServer:
        known = self.servers.get(address)
        if known is None:
            watcher = self._name if self._tls is not None else "lab-observer"
            known = SeenServer(ObservedServer(address, self._tls, watcher), local=local)
            known.name = "" if local is None else local.name
            self.servers[address] = known
        return known

    async def _observe(self) -> None:
        while True:
            begun = time.monotonic()
            await self.look()
            await asyncio.sleep(max(0.1, INTERVAL - (time.monotonic() - begun)))

    async def look(self) -> None:
        """Look at every server once."""
        seen = list(self.servers.values())
        looks = await asyncio.gather(*(self._look_at(server) for server in seen))
        for server, look in zip(seen, looks, strict=True):
            server.look = look
            server.missed = server.missed + 1 if look is None else 0
            server.deliveries.append(0.0 if look is None else look.deliveries)
            if look is not None:
                server.was_seen = True
                server.name = look.told["server"]
                for other in look.told["servers"]:
                    self._meet(other["address"]).name = other["name"]
        self._forget_those_gone()
        self._count_latencies()
        self._tell_changes()
        self.changed()

    def _forget_those_gone(self) -> None:
        """Whoever is no server any more need not be asked for ever."""
        document = self.document
        if document is None:
            return
        there = {other["address"] for other in document["servers"]}
        for address, server in list(self.servers.items()):
            if server.local is None and address not in there and server.missed > FORGOTTEN_AFTER:
                del self.servers[address]

    async def _look_at(self, server: SeenServer) -> Look | None:
        if server.local is not None and not server.local.is_running:
            return None
        return await server.observed.look()

    @property
    def document(self) -> dict[str, Any] | None:
        """What the server tells that knows the latest configuration, of those that answer."""
        told = [server.look.told for server in self.servers.values() if server.look is not None]
        return max(told, key=lambda each: each["configuration"] or 0, default=None)

    def _count_latencies(self) -> None:
        since = time.monotonic() - INTERVAL
        found = [
            seconds
            for member in self.members.values()
            for at, seconds in member.latencies
            if at >= since
        ]
        self.latency.append(1000 * sum(found) / len(found) if found else 0.0)

    def latencies(self) -> list[float]:
        """The latencies of the last ten seconds, in milliseconds, in ascending order."""
        since = time.monotonic() - 10 * INTERVAL
        return sorted(
            1000 * seconds
            for member in self.members.values()
            for at, seconds in member.latencies
            if at >= since
        )

    def _tell_changes(self) -> None:
        document = self.document
        if document is None:
            return
        servers = tuple(sorted(server["name"] for server in document["servers"]))
        if servers != self._known:
            gone = sorted(set(self._known) - set(servers))
            new = sorted(set(servers) - set(self._known)) if self._known else []
            words = [f"{_list(gone)} left"] * bool(gone) + [f"{_list(new)} joined"] * bool(new)
            why = f": {' and '.join(words)}" if words else ""
            number = document["configuration"]
            self.note(f"configuration {number} of {_list(servers)}{why}")
            self._known = servers
        views = {}
        for group in document["groups"]:
            members = tuple(member["process"] for member in group["members"])
            views[group["name"]] = group["view"], members
            before = self._views.get(group["name"])
            if before != (group["view"], members):
                gone = [name for name in before[1] if name not in members] if before else []
                why = f", without {_list(gone)}" if gone else ""
                self.note(f"{group['name']}: view {group['view']} of {_list(members)}{why}")
        for name in self._views.keys() - views.keys():
            self.note(f"{name}: the group is gone")
        self._views = views

    def note(self, words: str) -> None:
        self.happenings.appendleft((time.time(), words))

    # Members that are this lab.

    async def join(self, group: str, stack: str, address: str) -> LabMember:
        """Join a group at a server, and create it with the stack if need be."""
        if len(self.members) >= MOST_MEMBERS:
            raise UsageError(f"the lab has {len(self.members)} members; have one leave first")
        if address not in self.servers:
            raise UsageError(f"no server of this cluster is known at '{address}'")
        known = self.document
        if known is not None and any(group == each["name"] for each in known["groups"]):
            stack = ""  # it has one
        self._numbers += 1
        number = self._numbers
        name = self._name if self._tls is not None else f"lab-{number}"
        self.members[number] = member = await self._joined(group, stack, address, name)
        self.changed()
        return member

    async def join_again(self, number: int) -> None:
        """Have a member join its group again that was sent away, or whose server was gone."""
        before = self.member(number)
        with suppress(FlexGroupError):
            await before.leave()
        stack = self._stacks.get(before.group.name, "")
        self.members[number] = await self._joined(
            before.group.name, stack, before.address, before.name
        )
        self.changed()

    async def _joined(self, group: str, stack: str, address: str, name: str) -> LabMember:
        link = await connect(address, name=name, tls=self._tls, timeout=5 * PATIENCE)
        try:
            joined = await link.join(group, stack or None, open=True)
            self._stacks[group] = (await joined.info()).stack
        except BaseException:
            await link.close()
            raise
        return LabMember(link, joined, address, self.changed)

    def member(self, number: int) -> LabMember:
        if number not in self.members:
            raise UsageError("the lab has no such member any more; load the page anew")
        return self.members[number]

    async def leave(self, number: int) -> None:
        member = self.member(number)
        del self.members[number]
        with suppress(FlexGroupError):
            await member.leave()
        self.changed()

    def send_steadily(self, messages: int) -> None:
        if not 0 <= messages <= MOST_A_SECOND:
            raise UsageError(f"a member sends 0 to {MOST_A_SECOND} messages a second here")
        self.steady = messages
        self.changed()

    async def _send(self) -> None:
        """Send the steady load, a little at a time."""
        owed = 0.0
        while True:
            await asyncio.sleep(1 / STEPS_A_SECOND)
            owed += self.steady / STEPS_A_SECOND
            whole = int(owed)
            owed -= whole
            for member in list(self.members.values()):
                member.send_steadily(whole)

    # Servers that were started for this lab.

    def _local(self, name: str) -> tuple[int, LocalServer]:
        if self.own is None:
            raise UsageError("only servers that this lab has started can be stopped or cut off")
        for number, server in enumerate(self.own.servers):
            if server.name == name:
                return number, server
        raise UsageError(f"this lab has started no server '{name}'")

    async def kill(self, name: str) -> None:
        _, server = self._local(name)
        if not server.is_running:
            raise UsageError(f"{name} has ended already")
        self.note(f"you killed {name}")
        await asyncio.to_thread(server.kill)
        self.changed()

    async def start(self, name: str) -> None:
        number, _ = self._local(name)
        assert self.own is not None
        self.note(f"you started {name} again")
        started = await asyncio.to_thread(self.own.start_again, number)
        self._meet(started.address).local = started
        self.changed()

    async def cut(self, name: str, is_cut: bool) -> None:
        _, server = self._local(name)
        if not server.is_running:
            raise UsageError(f"{name} has ended; start it again first")
        self.note(f"you cut {name} off from the others" if is_cut else f"you mended {name}")
        server.cut(is_cut)
        self.changed()


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "nobody"
