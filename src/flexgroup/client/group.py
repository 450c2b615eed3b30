"""Links and groups as applications use them.

A link is the connection of a process to its server, over which it is in any number of groups. A
group is shown as its members see it: who is in it, what they send, and what is delivered in which
order. What is delivered can be received by group, or by link: of all groups, in one order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar, cast, overload

import msgspec

from flexgroup.client.connection import ClientConnection
from flexgroup.client.errors import (
    BadStack,
    ConnectionLost,
    GroupDestroyed,
    GroupExists,
    LinkClosed,
    MixedStacks,
    NoSuchGroup,
    NotMember,
    Refusal,
)
from flexgroup.client.inbox import Inbox, Item
from flexgroup.client.message import GroupInfo, Listener, Message, View
from flexgroup.client.naming_replicas import named_replicas
from flexgroup.client.order import DeliveryOrder
from flexgroup.client.receiving import Events, R, arrival, check_listener
from flexgroup.client.values import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests
from flexgroup.wire.names import name_of

T = TypeVar("T")

ANYWHERE = "in any group of the link"

MOST_KEPT = (1 << 32) - 1
LAST_NUMBER = (1 << 62) - 1

CREATIONS = 10
"""How often to try while others create and destroy the same group."""


class Group(Generic[T]):
    """One group, over one link. The object lives on when its process leaves the group.

    A process receives in the order that the stack of the group gives. Iterating over the group
    gives messages, and ends when the group is destroyed or left.
    """

    @overload
    def __init__(self: Group[bytes], link: Link, name: str, *, codec: None = None) -> None: ...
    @overload
    def __init__(self, link: Link, name: str, *, codec: Codec[T]) -> None: ...
    def __init__(self, link: Link, name: str, *, codec: Codec[Any] | None = None) -> None:
        self.link = link
        self.name = name_of("the name of a group", name)
        self.process = link.name
        """The name under which this process is in the group."""
        self._codec = codec
        self._connection = link.connection
        self._outgoing = link.connection.outgoing
        self._inbox: Inbox | None = None
        self._is_member = False

    def __repr__(self) -> str:
        return f"<Group {self.name!r}{f' as {self.process!r}' if self._is_member else ''}>"

    # Coming and going.

    async def exists(self) -> bool:
        """Return whether there is a group of this name."""
        answer = await self._connection.ask(
            lambda number: requests.Exists(number, self.name), requests.Done
        )
        return answer.value

    async def create(
        self,
        stack: str,
        owner: str | None = None,
        open: bool = False,
        allow: Iterable[str] | None = None,
        domain: str | None = None,
        keep: int = 0,
        partitionable: bool = False,
    ) -> Self:
        """Create the group, without members.

        owner: the only process that may destroy the group, as long as it is a member.
        open: whether processes that are not members may send.
        allow: the processes that may join; None lets all join.
        domain: only groups of the same stack that name the same domain have an order in common, and
            one message can go to several of them; None is one of these domains, too.
        keep: how many of the last messages all servers that keep data keep on disk, at least, for
            those who `join` with `since`; such a group has a domain for itself.
        partitionable: whether members go on in every component of a network that parts, with views
            of their own which merge when components meet; otherwise at most one component goes on.
        """
        if not isinstance(partitionable, bool):
            raise UsageError(f"partitionable={partitionable!r}; give True or False")
        if isinstance(allow, str):
            raise UsageError(f"allow={allow!r} is one text; give a list of the names that may join")
        name_of("a stack", stack)
        if owner is not None:
            name_of("the name of an owner", owner)
        if domain is not None:
            name_of("the name of a domain", domain)
        number_of("keep", keep, MOST_KEPT)
        allowed = None
        if allow is not None:
            allowed = [name_of("the name of a process", name) for name in allow]
        await self._connection.ask(
            lambda number: requests.Create(
                number, self.name, stack, owner, open, allowed, domain, keep, partitionable
            ),
            requests.Done,
        )
        return self

    async def destroy(self) -> None:
        """End the group for all; members receive what is deliverable, and then GroupDestroyed."""
        await self._connection.ask(
            lambda number: requests.Destroy(number, self.name), requests.Done
        )

    async def join(
        self, process: str | None = None, own: bool = True, since: int | None = None
    ) -> Self:
        """Become a member, as `process` (the link's name, if not given).

        own: whether this member receives its own messages, too, in their place in the order.
        since: the `number` of the first message to receive, of a group that keeps its messages;
            those that were sent later follow without a gap. 0 is the first one that is kept.
        """
        name = self.link.name if process is None else name_of("the name of a process", process)
        if since is not None:
            number_of("since", since, LAST_NUMBER)
        await self._enter(lambda number: requests.Join(number, self.name, name, own, since))
        self._is_member = True
        self.process = name
        return self

    async def attach(self) -> Self:
        """Become able to send to an open group without being a member."""
        await self._enter(lambda number: requests.Attach(number, self.name))
        self._is_member = False
        return self

    async def _enter(self, request: Callable[[int], requests.Join | requests.Attach]) -> None:
        inbox = await self._connection.new_inbox(self.name)
        inbox.decoded = None if self._codec is None else self.decoded
        await self._connection.ask(request, requests.Joined, inbox=inbox)
        self._inbox = inbox

    async def leave(self) -> None:
        """Stop being a member; the group goes on, and what was not received yet is lost."""
        inbox = self._entered_inbox()
        if inbox.ended is not None:
            raise inbox.ended.with_traceback(None)
        inbox.drop(NotMember(f"this process has left the group '{self.name}'; join it again"))
        self._connection.notify_listeners()
        # If the group ends meanwhile, so does the membership.
        with suppress(GroupDestroyed, NoSuchGroup, NotMember):
            await self._connection.ask(
                lambda number: requests.Leave(number, inbox.handle), requests.Done, leaving=inbox
            )

    async def info(self) -> GroupInfo:
        """Return what the server knows about the group."""
        found = await self._connection.ask(
            lambda number: requests.Info(number, self.name), requests.Description
        )
        return GroupInfo(
            name=found.group,
            stack=found.stack,
            owner=found.owner,
            open=found.open,
            view=found.view,
            members=tuple(found.members),
            servers=tuple(found.servers),
            promises=tuple(found.promises),
            domain=found.domain,
            keep=found.keep,
            partitionable=found.partitionable,
        )

    @property
    def view(self) -> View:
        """The members of the group, at the place in the order that this process has come to."""
        return self._entered_inbox().current_view()

    @property
    def members(self) -> tuple[str, ...]:
        return self.view.members

    # Sending and receiving.

    async def send(self, body: T) -> None:
        """Send to all members; waits only for room in the connection, not for delivery."""
        data = [self.encoded(body)]
        if not self._outgoing.send_many(self.inbox(), data, 0):
            await self.send_encoded(data)

    async def send_all(self, bodies: Iterable[T]) -> None:
        """Send each body as a message of its own, in this order, for less than as many `send`.

        If one of them cannot be sent at all, because it is too large, say, none is. A task that is
        cancelled while it waits here has sent some of them, from the first on.
        """
        data = self.all_encoded(bodies)
        sent = self._outgoing.send_many(self.inbox(), data, 0)
        if sent < len(data):
            await self.send_encoded(data, sent)

    def send_now(self, bodies: Iterable[T]) -> bool:
        """Send all, or none if there is no room, and return whether they were sent.

        This is `send_all` for functions that cannot wait; `room` waits until there is room.
        """
        encode = None if self._codec is None else self._codec.encode
        return self._outgoing.send_now(self._entered_inbox(), bodies, encode)

    async def confirm(self) -> None:
        """Wait until every server with members of the group has what this process has sent to it.

        What is confirmed is lost only if all of these servers fail. NoAnswer is raised if it takes
        longer than the link's timeout, and the refusal if something that was sent was refused.
        """
        if self._inbox is not None:
            self._inbox.check_sent()
        inbox = self.inbox()
        await self._connection.ask(
            lambda number: requests.Confirm(number, inbox.handle), requests.Done
        )
        inbox.check_sent()
        self.inbox()

    async def room(self, messages: int = 1) -> None:
        """Wait until there is room to send so many at once, and let others run in any case."""
        self.inbox()
        await self._outgoing.room_for(messages)

    def listen(self, listener: Listener[T] | None) -> None:
        """Call the functions of the listener from now on, instead of receiving.

        What is here already comes first, at once. None ends listening, and so does the end of the
        membership.
        """
        inbox = self._joined_inbox()
        if listener is None:
            inbox.stop_listening()
        else:
            check_listener(listener)
            inbox.listen(listener)
            self._connection.notify_listeners()

    async def receive(self, timeout: float | None = None) -> Message[T]:
        """Return the next message, or raise NoMessage if none comes in `timeout` seconds."""
        inbox = self._received_inbox()
        delivery = inbox.take_delivery() or await self.arrival(inbox, inbox.take_delivery, timeout)
        return self.decoded(delivery)

    async def receive_all(self, timeout: float | None = None) -> list[Message[T]]:
        """Return the next message, and those after it that are here already.

        This costs less than as many `receive`. It raises NoMessage if none comes in `timeout`
        seconds.
        """
        inbox = self._received_inbox()
        return inbox.take_messages() or await self.arrival(inbox, inbox.take_messages, timeout)

    def __aiter__(self) -> AsyncIterator[Message[T]]:
        return self

    async def __anext__(self) -> Message[T]:
        inbox = self._received_inbox()
        try:
            delivery = inbox.take_delivery() or await self.arrival(inbox, inbox.take_delivery)
        except (GroupDestroyed, NotMember, LinkClosed):
            raise StopAsyncIteration from None
        return self.decoded(delivery)

    def events(self) -> AsyncIterator[Message[T] | View]:
        """Iterate over messages and changes of the view, beginning with the current view."""
        inbox = self._received_inbox()
        return Events(
            inbox, self._connection.order, inbox.take_event, [self.begin_events()], self.where
        )

    async def __aenter__(self) -> Self:
        return await self.join()

    async def __aexit__(self, *error: object) -> None:
        if self._inbox is None or self._inbox.ended is not None:
            return
        # Refused or not, this process is then outside of the group.
        with suppress(Refusal, ConnectionLost):
            await self.leave()

    # Parts of the above that the blocking form uses, too.

    def encoded(self, body: T) -> bytes:
        """Return the bytes that are sent for a body."""
        return self._outgoing.sendable(body if self._codec is None else self._codec.encode(body))

    def all_encoded(self, bodies: Iterable[T]) -> list[bytes]:
        """Return what is sent for the bodies, each of which is a message of its own."""
        codec = self._codec
        return self._outgoing.all_sendable(bodies if codec is None else map(codec.encode, bodies))

    async def send_encoded(self, data: list[bytes], sent: int = 0) -> None:
        """Send the rest of the data, of which the first ones were sent already."""
        inbox = self.inbox()
        outgoing = self._outgoing
        while sent < len(data):
            if outgoing.busy:
                await outgoing.room()
                inbox.check()
            sent = outgoing.send_many(inbox, data, sent)

    def begin_events(self) -> View:
        """Return the current view; from now on, the application is given every later one."""
        inbox = self._received_inbox()
        view = inbox.current_view()
        inbox.keeps_views = True
        return view

    async def take(self, most: int | None, timeout: float | None) -> list[Item]:
        """Return at least one delivery or view, and more if they are here, not decoded yet.

        With None, these are all. Otherwise, a message that another group may give as well is taken
        only as the last one: whoever takes ahead may leave the group before looking at it.
        """
        inbox = self._received_inbox()
        items = [cast(Item, inbox.take() or await self.arrival(inbox, inbox.take, timeout))]
        while inbox.items and (most is None or (len(items) < most and not inbox.shares)):
            items.append(cast(Item, inbox.take()))
        return items

    def put_back(self, items: list[Item]) -> None:
        """Have what was taken received again, by whoever asks first."""
        self._entered_inbox().put_back(items)

    def inbox(self) -> Inbox:
        """Return the inbox of a group that can be sent to."""
        inbox = self._inbox
        if inbox is None:
            raise self._not_inside()
        if inbox.ended is not None or inbox.refused:
            inbox.check()
        return inbox

    def decoded(self, delivery: Message[bytes]) -> Message[T]:
        """Return the message that was delivered, with the value in place of the bytes."""
        if self._codec is None:
            return cast(Message[T], delivery)
        try:
            body = self._codec.decode(delivery.body)
        except PeerError as error:
            where = f"from '{delivery.sender}' in the group '{self.name}'"
            raise PeerError(f"{where}: {error}") from None
        return Message(
            delivery.sender, body, self.name, delivery.position, delivery.groups, delivery.number
        )

    @property
    def where(self) -> str:
        return f"in the group '{self.name}'"

    async def arrival(
        self, inbox: Inbox, take: Callable[[], R | None], timeout: float | None = None
    ) -> R:
        return await arrival(inbox, take, self.where, timeout)

    def _entered_inbox(self) -> Inbox:
        if self._inbox is None:
            raise self._not_inside()
        return self._inbox

    def _joined_inbox(self) -> Inbox:
        inbox = self._inbox
        if inbox is None or not self._is_member:
            raise self._not_inside()
        return inbox

    def _received_inbox(self) -> Inbox:
        inbox = self._joined_inbox()
        inbox.check_nobody_listens()
        self._connection.order.check_nobody_listens()
        return inbox

    def _not_inside(self) -> NotMember:
        return NotMember(
            f"this process is not in the group '{self.name}'; await group.join() first"
            + (" (it is only attached, to send)" if self._inbox is not None else "")
        )


class Link:
    """A connection to a server, shared by all groups of this process.

    What is delivered in any group stands in one queue, in the order in which the server delivered
    it. `Group.receive` takes the first of its group; `Link.receive` takes the first of all. So
    nothing is given twice, and iterating over the link gives the messages of all groups.
    """

    def __init__(self, connection: ClientConnection, name: str, welcome: requests.Welcome) -> None:
        self.connection = connection
        self.name = name
        """The name of this process, in every group that it does not join under another one."""
        self.server = welcome.server
        """The name of the server."""
        self.address = connection.where

    def __repr__(self) -> str:
        return f"<Link of {self.name!r} to {self.address}>"

    @overload
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: None = None,
    ) -> Group[bytes]: ...
    @overload
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: Codec[T],
    ) -> Group[T]: ...
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: Codec[Any] | None = None,
    ) -> Group[Any]:
        """Join a group. If it does not exist and a stack is given, create it first.

        If it exists with another stack than the given one, that is an error. `open` lets processes
        send that are not members, and `keep` has servers keep messages; both count only for a group
        that is created here. The other arguments are those of `Group.join` and `Group`.
        """
        joined: Group[Any] = Group(self, group, codec=codec)
        await self.enter(joined, stack, process=process, own=own, open=open, keep=keep, since=since)
        return joined

    async def enter(
        self,
        group: Group[Any],
        stack: str | None,
        *,
        process: str | None,
        own: bool,
        open: bool,
        keep: int = 0,
        since: int | None = None,
    ) -> None:
        """Join a group, and create it first if need be; see `join`."""
        for _ in range(CREATIONS):
            try:
                await group.join(process, own, since)
                break
            except NoSuchGroup:
                if stack is None:
                    raise
            with suppress(GroupExists):  # another process was quicker
                await group.create(stack, open=open, keep=keep)
        else:
            raise NoSuchGroup(
                f"the group '{group.name}' is destroyed as often as it is created; find out by whom"
            )
        if stack is not None:
            await self._check_stack(group, stack)

    async def _check_stack(self, group: Group[Any], stack: str) -> None:
        has = group.inbox().stack
        if has and has.lower().split() != stack.lower().split():
            await group.leave()
            raise BadStack(
                f"the group '{group.name}' has the stack '{has}', not '{stack}'; join it without"
                " naming a stack, or create another group"
            )

    @overload
    async def attach(self, group: str, *, codec: None = None) -> Group[bytes]: ...
    @overload
    async def attach(self, group: str, *, codec: Codec[T]) -> Group[T]: ...
    async def attach(self, group: str, *, codec: Codec[Any] | None = None) -> Group[Any]:
        """Return a group to send to without being a member; it must have been created open."""
        attached: Group[Any] = Group(self, group, codec=codec)
        return await attached.attach()

    async def multicast(self, groups: Sequence[Group[T]], body: T) -> None:
        """Send one message, with one place in the order, to several groups with the same stack."""
        handles = self.handles_of(groups)
        data = groups[0].encoded(body)
        outgoing = self.connection.outgoing
        if outgoing.busy:
            await outgoing.room()
            handles = self.handles_of(groups)
        outgoing.send(groups[0].inbox(), handles, data)

    # Receiving, of all groups in one order.

    async def receive(self, timeout: float | None = None) -> Message[Any]:
        """Return the next message of any group, or raise NoMessage if none comes in `timeout`
        seconds."""
        order = self._received_order()
        return order.take_message() or await self._arrival(order.take_message, timeout)

    async def receive_all(self, timeout: float | None = None) -> list[Message[Any]]:
        """Return the next message of any group, and those after it that are here already."""
        order = self._received_order()
        return order.take_messages() or await self._arrival(order.take_messages, timeout)

    def __aiter__(self) -> AsyncIterator[Message[Any]]:
        return self

    async def __anext__(self) -> Message[Any]:
        try:
            return await self.receive()
        except LinkClosed:
            raise StopAsyncIteration from None

    def events(self) -> AsyncIterator[Message[Any] | View]:
        """Iterate over messages and changes of the views of all groups, beginning with the current
        views; when another group is joined, its first view comes in its place."""
        order = self._received_order()
        return Events(order, order, order.take, self.begin_events(), ANYWHERE)

    def listen(self, listener: Listener[Any] | None) -> None:
        """Call the functions of the listener from now on, instead of receiving.

        What is here already comes first, at once. None ends listening, and so does the end of the
        link. A group that has a listener of its own is not concerned.
        """
        connection = self.connection
        if listener is None:
            connection.order.listener = None
        else:
            check_listener(listener)
            for inbox in connection.memberships():
                inbox.check_nobody_waits()
            connection.order.listen(listener)
            connection.keep_views()
            connection.notify_listeners()

    async def next_event(self, timeout: float | None) -> Message[Any] | View:
        """Return the next message or view, of any group."""
        order = self._received_order()
        event = order.take() or await self._arrival(order.take, timeout)
        return cast(Message[Any] | View, event)

    def begin_events(self) -> list[View]:
        """Return the current views; from now on, the application is given every later one."""
        views = [inbox.current_view() for inbox in self.connection.memberships()]
        self.connection.keep_views()
        return sorted(views, key=lambda view: view.position)

    def _received_order(self) -> DeliveryOrder:
        order = self.connection.order
        order.check_nobody_listens()
        return order

    async def _arrival(self, take: Callable[[], R | None], timeout: float | None) -> R:
        return await arrival(self.connection.order, take, ANYWHERE, timeout)

    def handles_of(self, groups: Sequence[Group[Any]]) -> list[int]:
        """Return the handles of groups, provided that one message can go to all of them."""
        if not 1 <= len(groups) <= requests.MOST_GROUPS_OF_A_MESSAGE:
            raise UsageError(
                f"a message to {len(groups)} groups; 1 to {requests.MOST_GROUPS_OF_A_MESSAGE}"
                " are possible"
            )
        check_groups(groups, Group)
        first = groups[0]
        stack = first.inbox().stack
        handles: list[int] = []
        for group in groups:
            inbox = group.inbox()
            if group.link is not self:
                raise UsageError("a message to groups of different links; use one link for all")
            if inbox.handle in handles:
                raise UsageError(f"the group '{group.name}' twice in one message; name it once")
            if inbox.stack != stack:
                raise MixedStacks(
                    f"'{first.name}' has the stack '{stack}', '{group.name}' has '{inbox.stack}':"
                    " an order spans only groups that were created with the same one"
                )
            handles.append(inbox.handle)
        return handles

    async def create_replicated(self, stack: str, groups: Mapping[str, Sequence[str]]) -> None:
        """Create groups of replicas, without members, of a stack that survives crashes itself.

        groups: the name of each group, and the names of the servers that have its replicas. A
            server has one replica of one group. A group goes on while more than half of its
            servers do; its members are connected to these.
        """
        named = named_replicas(groups)
        name_of("a stack", stack)
        await self.connection.ask(
            lambda number: requests.CreateReplicated(number, stack, named), requests.Done
        )

    async def inspect(self) -> dict[str, Any]:
        """Return what the server says about itself."""
        answer = await self.connection.ask(requests.Inspect, requests.Inspection)
        return msgspec.json.decode(answer.report, type=dict[str, Any])

    async def close(self) -> None:
        """Leave all groups and disconnect, after all that was sent."""
        self.connection.end(requests.Goodbye())
        try:
            async with asyncio.timeout(self.connection.timeout):
                await asyncio.shield(self.connection.closed)
        except TimeoutError:
            self.connection.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def number_of(what: str, value: int, most: int) -> int:
    """Return the value, provided that it is a number that servers understand."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise UsageError(f"{what} is a whole number from 0 to {most}, not {value!r:.50}")
    return value


def check_groups(groups: Sequence[object], kind: type) -> None:
    """Refuse to send a message to anything but groups."""
    for group in groups:
        if not isinstance(group, kind):
            raise UsageError(f"a message to {group!r}, which is no Group; give what join returned")
