"""A stand-in for a server: speaks `requests.py`, in the process of the test, with groups that are
as simple as possible. What it was told is kept, and what it says can be scripted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec.msgpack import Decoder, Encoder

from flexgroup import Group
from flexgroup.wire import requests as r
from flexgroup.wire.frames import FrameReader, FrameWriter

SESSION = 4_000_000_000
"""Close to where the numbers of frames begin again."""

_decode = Decoder(list[r.AnyFromClient]).decode
_encode = Encoder().encode


class Seat:
    """A place in a group: of a member, or of a process that may only send."""

    def __init__(self, client: Client, process: str, own: bool, is_member: bool) -> None:
        self.client = client
        self.process = process
        self.own = own
        self.is_member = is_member
        self.credit = client.server.window
        self.waiting: deque[r.Delivered | r.ViewChange | r.Destroyed] = deque()


class GroupHere:
    def __init__(self, handle: int, create: r.Create) -> None:
        self.handle = handle
        self.create = create
        self.view = 0
        self.seats: list[Seat] = []

    @property
    def members(self) -> list[str]:
        return [seat.process for seat in self.seats if seat.is_member]


class Client(asyncio.Protocol):
    """The server's end of a connection."""

    def __init__(self, server: StandIn) -> None:
        self.server = server
        self.name = ""
        self.told: list[r.AnyFromClient] = []
        """All that the client said."""
        self.frames = 0
        self.position = 0
        """The place of what was said last that has one."""
        self.seats: dict[int, Seat] = {}
        """By handle; of groups that were destroyed, too, for what is still to be delivered."""
        self.ungranted = 0
        self.is_gone = asyncio.Event()
        self._news = asyncio.Event()
        self._reader = FrameReader()
        self._writer = FrameWriter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.server.clients.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone.set()
        self._news.set()
        self.server.forget(self)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (content := self._reader.next_frame()) is not None:
            self.frames += 1
            for request in _decode(content):
                for one in each_message_alone(request):
                    self.told.append(one)
                    self._do(one)
        self._news.set()

    def say(self, *messages: r.AnyFromServer) -> None:
        self.transport.write(self.framed(*messages))

    def framed(self, *messages: r.AnyFromServer) -> bytes:
        """A frame with these messages, in their places, unless they have one."""
        for message in messages:
            if isinstance(message, r.Delivered | r.ViewChange | r.Joined) and not message.position:
                message.position = self.position + 1
            if isinstance(message, r.Delivered):
                self.position = (
                    message.position + sum(len(sent.bodies) for sent in message.sent) - 1
                )
            elif isinstance(message, r.ViewChange | r.Joined):
                self.position = message.position
        return self._writer.frame(_encode(list(messages)))

    async def until_told(self, kind: type[r.FromClient], count: int = 1) -> None:
        """Wait until the client has said so many things of a kind."""
        while sum(isinstance(request, kind) for request in self.told) < count:
            self._news.clear()
            await self._news.wait()

    def _do(self, request: r.AnyFromClient) -> None:
        if isinstance(request, r.Hello):
            self.name = request.name
            self._reader.begin_at(SESSION)
            if self.server.is_polite:
                self.say(self.server.welcome())
        elif type(request) in self.server.deaf_to:
            pass
        elif isinstance(request, r.Goodbye):
            self.transport.close()
        else:
            self.server.do(self, request)


def each_message_alone(request: r.AnyFromClient) -> list[r.AnyFromClient]:
    """A request to send many is as many requests to send one."""
    if not isinstance(request, r.Send):
        return [request]
    return [r.Send(request.handles, [body]) for body in request.bodies]


class StandIn:
    """One server with groups that deliver in the order of arrival."""

    def __init__(self, window: int = 64, sends: int = 1024) -> None:
        self.window = window
        self.sends = sends
        self.is_polite = True
        """It welcomes clients."""
        self.deaf_to: set[type[r.FromClient]] = set()
        """Requests that it does not answer."""
        self.is_granting = True
        self.clients: list[Client] = []
        self.groups: dict[str, GroupHere] = {}
        self.address = ""
        self._handles = 0

    @property
    def client(self) -> Client:
        """The last one that came."""
        return self.clients[-1]

    def welcome(self) -> r.Welcome:
        return r.Welcome("stand-in", SESSION, self.window, 1 << 20, self.sends)

    def do(self, client: Client, request: r.AnyFromClient) -> None:
        match request:
            case r.Send():
                self._send(client, request)
            case r.Credit():
                seat = client.seats[request.handle]
                seat.credit += request.messages
                self._advance(seat)
            case r.Exists():
                client.say(r.Done(request.request, request.group in self.groups))
            case r.Create():
                self._create(client, request)
            case r.Join() | r.Attach() | r.Info() | r.Destroy():
                found = self.groups.get(request.group)
                if found is None:
                    client.say(r.Refused(request.request, "missing", "there is no such group"))
                else:
                    self._do_with(client, found, request)
            case r.Leave():
                self._leave(client, request)
            case r.Confirm():
                client.say(r.Done(request.request))
            case r.Inspect():
                client.say(r.Inspection(request.request, b'{"name": "stand-in"}'))

    def _create(self, client: Client, request: r.Create) -> None:
        if request.group in self.groups:
            client.say(r.Refused(request.request, "exists", "there is one"))
        elif "nonsense" in request.stack:
            client.say(r.Refused(request.request, "bad-stack", "no protocol 'nonsense'"))
        else:
            self._handles += 1
            self.groups[request.group] = GroupHere(self._handles, request)
            client.say(r.Done(request.request))

    def _do_with(
        self, client: Client, group: GroupHere, request: r.Join | r.Attach | r.Info | r.Destroy
    ) -> None:
        create = group.create
        match request:
            case r.Join(process=process):
                if process in group.members:
                    client.say(r.Refused(request.request, "already-member", "a member already"))
                elif create.allow is not None and process not in create.allow:
                    client.say(r.Refused(request.request, "not-allowed", "not on the list"))
                else:
                    self._sit(
                        client, group, request.request, Seat(client, process, request.own, True)
                    )
            case r.Attach():
                if create.open:
                    self._sit(
                        client, group, request.request, Seat(client, client.name, False, False)
                    )
                else:
                    client.say(r.Refused(request.request, "not-allowed", "not open"))
            case r.Info():
                client.say(
                    r.Description(
                        request.request,
                        request.group,
                        create.stack,
                        create.owner,
                        create.open,
                        group.view,
                        group.members,
                        ["stand-in"],
                        ["integrity"],
                    )
                )
            case r.Destroy():
                if create.owner not in (None, client.name):
                    client.say(r.Refused(request.request, "not-owner", "not yours"))
                else:
                    self.destroy(request.group)
                    client.say(r.Done(request.request))

    def _sit(self, client: Client, group: GroupHere, request: int, seat: Seat) -> None:
        group.seats.append(seat)
        client.seats[group.handle] = seat
        group.view += seat.is_member
        stack = group.create.stack
        client.say(r.Joined(request, group.handle, group.view, group.members, stack))
        if seat.is_member:
            self._tell_view(group, but=seat)

    def _tell_view(self, group: GroupHere, but: Seat | None = None) -> None:
        for seat in group.seats:
            if seat.is_member and seat is not but:
                seat.waiting.append(r.ViewChange(group.handle, 0, group.view, group.members))
                self._advance(seat)

    def destroy(self, name: str) -> None:
        group = self.groups.pop(name)
        for seat in group.seats:
            seat.waiting.append(r.Destroyed(group.handle, "it was destroyed"))
            self._advance(seat)

    def _leave(self, client: Client, request: r.Leave) -> None:
        for group in self.groups.values():
            if group.handle == request.handle:
                self._remove(group, client)
                client.say(r.Done(request.request))
                return
        client.say(r.Refused(request.request, "not-member", "not a member"))

    def _remove(self, group: GroupHere, client: Client) -> None:
        before = group.members
        group.seats = [seat for seat in group.seats if seat.client is not client]
        if group.members != before:
            group.view += 1
            self._tell_view(group)

    def forget(self, client: Client) -> None:
        for group in self.groups.values():
            self._remove(group, client)

    def _send(self, client: Client, send: r.Send) -> None:
        client.ungranted += 1
        assert client.ungranted <= self.sends, "more messages than the client may send"
        if self.is_granting and client.ungranted * 4 >= self.sends:
            self.grant(client)
        for group in self.groups.values():
            if group.handle in send.handles:
                sender = next(seat.process for seat in group.seats if seat.client is client)
                self.deliver(group, sender, send.bodies[0])

    def grant(self, client: Client) -> None:
        client.say(r.Granted(client.ungranted))
        client.ungranted = 0

    def deliver(self, group: GroupHere, sender: str, body: bytes) -> None:
        for seat in group.seats:
            if seat.is_member and (seat.own or seat.process != sender):
                seat.waiting.append(r.Delivered([group.handle], 1, 0, [r.Sent(sender, [body])]))
                self._advance(seat)

    def _advance(self, seat: Seat) -> None:
        out: list[r.AnyFromServer] = []
        while seat.waiting and (seat.credit or not isinstance(seat.waiting[0], r.Delivered)):
            item = seat.waiting.popleft()
            seat.credit -= isinstance(item, r.Delivered)
            out.append(item)
        if out and not seat.client.is_gone.is_set():
            seat.client.say(*out)


@asynccontextmanager
async def stand_in(window: int = 64, sends: int = 1024) -> AsyncIterator[StandIn]:
    """A running stand-in, at `address`."""
    server = StandIn(window, sends)
    listener = await asyncio.get_running_loop().create_server(
        lambda: Client(server), "127.0.0.1", 0
    )
    server.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for client in server.clients:
            client.transport.abort()
        for client in server.clients:
            await client.is_gone.wait()


async def settled(group: Group[Any]) -> None:
    """All that was said before has been dealt with: answers come in order."""
    await group.exists()
