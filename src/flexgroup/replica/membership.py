"""What keeps a replica in its group: one connection after the other, and what goes over them."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from flexgroup.client.connecting import Tls, connect
from flexgroup.client.errors import (
    AlreadyMember,
    BadStack,
    ConnectionLost,
    GroupDestroyed,
    LinkClosed,
    NoAnswer,
    NotAllowed,
    OutcomeUnknown,
    Refusal,
    ServerBusy,
    VersionMismatch,
)
from flexgroup.client.group import Group, Link
from flexgroup.client.message import Listener, Message, View
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError
from flexgroup.replica.machine import Answer, Begin, Forget, GiveUp, ReplicaMachine, Send, Tell
from flexgroup.replica.packets import Call, Packet, Part, Refused, encode
from flexgroup.replica.replicated import Replicated
from flexgroup.replica.state import ObjectState

R = TypeVar("R")

Servers = str | Sequence[str] | None
"""Addresses, also in one text with commas between them."""

STACK = "ABCAST SAFE"
"""What a call has returned is then not lost as long as any server with a replica lives."""

STACK_OF_STATES = "RELIABLE FIFO"

BYTES_OF_A_PART = 32 << 10
AGAIN = 0.05
"""So many seconds pass before something is tried again."""

NEEDED = {
    "agreement": "messages reach all replicas or none",
    "fifo order": "what one member sends stays in order",
    "prefix order": "all replicas apply the same calls in the same order",
}
"""Properties that the stack has to promise, and what for."""


class Membership:
    def __init__(
        self,
        replica: Replicated,
        group: str,
        servers: Servers,
        name: str | None,
        stack: str,
        tls: Tls | None,
        timeout: float,
    ) -> None:
        if replica.is_member:
            raise UsageError("this object is a replica already: leave, or make another one")
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise UsageError(f"timeout={timeout!r} is not possible; give seconds above 0")
        if isinstance(servers, str):
            servers = servers.split(",")
        addresses: list[str | None] = [address.strip() for address in servers or ()]
        self._addresses = addresses or [None]
        self._group_name = group
        self._stack = stack
        self._tls = tls
        self._timeout = timeout
        session = secrets.token_hex(8)
        self.process = f"{type(replica).__name__}-{session}" if name is None else name
        self.machine = ReplicaMachine(ObjectState(replica, report), session)
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._link: Link | None = None
        self._group: Group[bytes] | None = None
        self._told: Group[bytes] | None = None
        """The group in which newcomers are told the state, while this is one."""
        self._telling: Group[bytes] | None = None
        """The same group, since this has told somebody the state."""
        self._unsent: deque[Packet] = deque()
        """What there was no room for yet."""
        self._over: FlexGroupError | None = None
        """Why there is no membership any more."""
        self._is_suitable = False
        """Whether the stack of the group promises what replicas need."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._tells: dict[str, asyncio.Task[None]] = {}
        """What tells newcomers the state."""
        self._states = asyncio.Lock()
        """Held by who comes to the group of states or goes from it."""
        self._heard_at = 0.0
        """When there was a connection, or a part of the state, for the last time."""

    # For the object.

    @property
    def members(self) -> tuple[str, ...]:
        return self.machine.members

    async def begin(self) -> None:
        """Become a member and have the state; what cannot work is raised."""
        loop = asyncio.get_running_loop()
        self._began: asyncio.Future[None] = loop.create_future()
        self._changed: asyncio.Future[None] = loop.create_future()
        self._heard_at = loop.time()
        self._running = loop.create_task(self._run_until_over())
        try:
            await asyncio.shield(self._began)
        except (Exception, asyncio.CancelledError):
            await self.end()
            raise

    async def call(self, method: str, arguments: bytes) -> bytes:
        """Have the call applied everywhere, and return its outcome."""
        if self._over is not None:
            raise self._over.with_traceback(None)
        number = self.machine.call(method, arguments)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[number] = future
        try:
            self._act()
            return await future
        finally:
            self._calls.pop(number, None)
            self.machine.withdraw(number)

    async def until(self, condition: Callable[[], R]) -> R:
        """Wait until the condition holds of the state here, and return what it returned."""
        while not (found := condition()):
            if self._over is not None:
                raise self._over.with_traceback(None)
            if self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)
        return found

    async def end(self) -> None:
        """Leave for good."""
        link = self._link
        if link is not None and self._over is None:
            self.machine.leave()
            self._act()
            await link.close()
        self._running.cancel()
        await asyncio.wait([self._running])
        self._finish(LinkClosed("this replica has left its group; join again to go on"))

    # One connection after the other.

    async def _run_until_over(self) -> None:
        try:
            await self._run()
        except Exception as error:  # or all that is waited for here would never come
            what = f"{type(error).__name__}: {error}"
            self._finish(ConnectionLost(f"this replica has no connection any more ({what})"))
            report("the connection of a replica", error)

    async def _run(self) -> None:
        attempts = 0
        loop = asyncio.get_running_loop()
        while True:
            address = self._addresses[attempts % len(self._addresses)]
            attempts += 1
            try:
                await self._stay_connected(address)
                error: FlexGroupError = ConnectionLost("the connection was lost")
            except (GroupDestroyed, BadStack, NotAllowed, VersionMismatch, UsageError) as final:
                self._finish(final)
                return
            except FlexGroupError as passing:
                error = passing
            self._forget_connection()
            never = not self._began.done() and self._link is None
            is_late = loop.time() > self._heard_at + self._timeout
            if is_late or (never and attempts == len(self._addresses)):
                self._finish(error)
                return
            await asyncio.sleep(AGAIN)

    async def _stay_connected(self, address: str | None) -> None:
        """Be a member over one connection, until that ends."""
        link = await connect(address, name=self.process, tls=self._tls, timeout=self._timeout)
        try:
            self._link = link
            states = f"{self._group_name}/state"
            told = await self._joined(lambda: link.join(states, STACK_OF_STATES, open=True))
            self.machine.entering(self.process)
            told.listen(_Told(self))
            self._told = told
            link.begin_events()  # so that no view is passed over, from the first one on
            group = await self._joined(lambda: link.join(self._group_name, self._stack))
            self._group = group
            self.changed(group.view)
            listener = _Delivered(self)
            group.listen(listener)
            self._heard()
            if not self._began.done():
                await self._check(group)
                self._is_suitable = True
                self._begin_if_ready()
            self._spawn(self._probe(group, listener.ended_with))
            await self._watch(listener.ended_with)
        finally:
            self._group = None
            link.connection.abort()

    async def _joined(self, join: Callable[[], Awaitable[Group[bytes]]]) -> Group[bytes]:
        """Join as soon as the servers know that this replica's last connection is gone."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._timeout
        while True:
            try:
                return await join()
            except (AlreadyMember, ServerBusy):
                if loop.time() > until:
                    raise
            await asyncio.sleep(AGAIN)

    async def _check(self, group: Group[bytes]) -> None:
        promises = (await group.info()).promises
        missing = [f"{name} ({why})" for name, why in NEEDED.items() if name not in promises]
        if missing:
            raise BadStack(
                f"'{self._stack}' does not promise {' and '.join(missing)}, which replicas need;"
                " take ABCAST SAFE"
            )

    async def _probe(self, group: Group[bytes], ended: asyncio.Future[FlexGroupError]) -> None:
        """End the connection if the server does not answer, though nobody has closed it."""
        try:
            while not ended.done():
                await asyncio.sleep(self._timeout / 4)
                await group.info()
        except FlexGroupError as error:
            if not ended.done():
                ended.set_result(error)

    async def _watch(self, ended: asyncio.Future[FlexGroupError]) -> None:
        """Wait until the connection ends, or nobody tells this replica the state."""
        loop = asyncio.get_running_loop()
        while not ended.done():
            if self.machine.is_ready:
                self._heard()
            elif loop.time() > self._heard_at + self._timeout:
                raise NoAnswer(
                    f"no member of '{self._group_name}' has told its state for"
                    f" {self._timeout:g} s; see whether those in the group are replicas"
                )
            await asyncio.wait([ended], timeout=self._timeout / 10)
        raise ended.result().with_traceback(None)

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    def _forget_connection(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        self._unsent.clear()
        self._told = self._telling = None
        self.machine.lost()

    def _finish(self, error: FlexGroupError) -> None:
        """There is no membership any more: all calls fail, those under way and later ones."""
        if self._over is not None:
            return
        self._over = error
        self._forget_connection()
        if not self._changed.done():
            self._changed.set_result(None)
        for number, future in self._calls.items():
            if not future.done():
                future.set_exception(unknown(error) if self.machine.has_sent(number) else error)
        if not self._began.done():
            self._began.set_exception(error)
            self._began.exception()  # whoever waits has been told; nobody may wait any more

    # What comes, and what is to be done.

    def delivered(self, messages: list[Message[bytes]]) -> None:
        for message in messages:
            try:
                self.machine.delivered(message.sender, message.body)
            except PeerError as error:
                report(f"a message of {message.sender}", error)
        self._act()

    def changed(self, view: View) -> None:
        for newcomer in [name for name in self._tells if name not in view.members]:
            self._tells.pop(newcomer).cancel()
        self.machine.viewed(view.number, view.members)
        self._act()

    def told(self, messages: list[Message[bytes]]) -> None:
        self._heard()
        for message in messages:
            try:
                self.machine.told(message.sender, message.body)
            except PeerError as error:
                report(f"a message of {message.sender}", error)
        self._act()

    def _act(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)
        for effect in self.machine.effects():
            match effect:
                case Send():
                    self._send(effect.packet)
                case Answer():
                    self._answer(effect.number, effect.outcome)
                case Forget():
                    self._fail(effect.number, unknown("all who had the state then are gone"))
                case Tell():
                    task = self._spawn(self._tell(effect))
                    self._tells[effect.newcomer] = task
                case Begin():
                    if self._told is not None:
                        self._spawn(self._leave_states(self._told))
                    self._begin_if_ready()
                case GiveUp():
                    self._finish(PeerError(effect.reason))

    def _begin_if_ready(self) -> None:
        if self.machine.is_ready and self._is_suitable and not self._began.done():
            self._began.set_result(None)

    def _answer(self, number: int, outcome: bytes) -> None:
        future = self._calls.get(number)
        if future is not None and not future.done():
            future.set_result(outcome)

    def _fail(self, number: int, error: Exception) -> None:
        future = self._calls.get(number)
        if future is not None and not future.done():
            future.set_exception(error)

    def _send(self, packet: Packet) -> None:
        group = self._group
        if group is None:
            return  # the machine sends calls again, when this is a member again
        if self._unsent or not self._has_room_for(group, packet):
            self._unsent.append(packet)
            if len(self._unsent) == 1:
                self._spawn(self._send_later(group))

    def _has_room_for(self, group: Group[bytes], packet: Packet) -> bool:
        """Send the packet, and return whether that is done with: what cannot be sent at all must
        not hold up what follows."""
        try:
            return group.send_now([encode(packet)])
        except ConnectionLost:
            pass
        except FlexGroupError as error:
            # Nobody waits for other packets; if the group is destroyed, that is told soon.
            if isinstance(packet, Call):
                self._fail(packet.number, error)
        return True

    async def _send_later(self, group: Group[bytes]) -> None:
        with suppress(ConnectionLost, Refusal):
            while self._unsent:
                await group.room()
                while self._unsent and self._has_room_for(group, self._unsent[0]):
                    self._unsent.popleft()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The group in which states are told.

    async def _leave_states(self, told: Group[bytes]) -> None:
        async with self._states:
            with suppress(ConnectionLost, NoAnswer, Refusal):
                await told.leave()

    async def _tell(self, tell: Tell) -> None:
        link = self._link
        assert link is not None
        # If somebody has destroyed the group of states, newcomers give up when their time is over.
        with suppress(ConnectionLost, NoAnswer, Refusal):
            async with self._states:
                if self._telling is None:
                    self._telling = await link.attach(f"{self._group_name}/state")
                group = self._telling
            try:
                for number, (data, ends_piece, ends_state) in enumerate(parts_of(tell.pieces)):
                    part = Part(tell.newcomer, tell.view, number, data, ends_piece, ends_state)
                    await group.send(encode(part))
                    await asyncio.sleep(0)
            except ConnectionLost:
                raise
            except Exception as error:
                report("the snapshot for a newcomer", error)
                await group.send(encode(Refused(tell.newcomer, str(error)[:1_000])))


def member_of(replica: Replicated) -> Membership:
    """Return the membership of an object that is in a group."""
    membership = replica.membership
    assert isinstance(membership, Membership)
    return membership


class _Delivered(Listener[bytes]):
    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.ended_with: asyncio.Future[FlexGroupError] = asyncio.Future()

    def delivered(self, messages: list[Message[bytes]]) -> None:
        self._membership.delivered(messages)

    def changed(self, view: View) -> None:
        self._membership.changed(view)

    def ended(self, error: FlexGroupError) -> None:
        if not self.ended_with.done():
            self.ended_with.set_result(error)


class _Told(Listener[bytes]):
    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def delivered(self, messages: list[Message[bytes]]) -> None:
        self._membership.told(messages)


def parts_of(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool, bool]]:
    """Return parts that fit into a message; whether a piece ends there, and whether all do."""
    piece: bytes | None = next(pieces)
    while piece is not None:
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise UsageError(f"a snapshot is made of bytes, not of {piece!r:.60}")
        following = next(pieces, None)
        for start in range(0, max(len(piece), 1), BYTES_OF_A_PART):
            end = start + BYTES_OF_A_PART
            is_end = end >= len(piece)
            yield piece[start:end], is_end, is_end and following is None
        piece = following


def unknown(why: object) -> OutcomeUnknown:
    return OutcomeUnknown(f"nobody can tell whether this call was applied ({why})")


def report(what: str, error: Exception) -> None:
    """Tell of an error that nobody waits for."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"flexgroup: {what} raised {type(error).__name__}", "exception": error}
    )
