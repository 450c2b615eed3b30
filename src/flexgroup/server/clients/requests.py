"""What clients ask for, and the answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.stack import guarantees_above
from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    RemoveClient,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.clients.session import Seat, Session
from flexgroup.server.connection import Connection
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.settings import Settings
from flexgroup.wire import refusals, requests
from flexgroup.wire.requests import AnyFromClient

log = logging.getLogger("flexgroup.server")

READS = requests.Exists | requests.Info | requests.Attach
"""What this server answers from the configuration that it has installed."""

MOST_UNREAD = 16 << 20
"""Bytes of answers that a client may ask for without reading them."""


Propose = Callable[[AnyOperation, Callable[[tuple[str, str] | None], None]], None]
"""Have the servers agree on an operation; how that ended is told to the second argument."""


class RequestHandler:
    """Answers what this server knows, and proposes to the others what changes something."""

    def __init__(
        self,
        settings: Settings,
        deployment: Deployment,
        members: LocalMembers,
        *,
        propose: Propose,
        refused: Callable[[Connection, str], None],
        inspect: Callable[[], dict[str, object]],
    ) -> None:
        self._settings = settings
        self._deployment = deployment
        self._members = members
        self._propose = propose
        self._refused = refused
        self._inspect = inspect
        self._waiting: dict[int, Session] = {}
        """Clients with requests that wait for another of theirs, or for the end of a change."""
        self._report: bytes | None = None

    def session_lost(self, session: Session, reason: str) -> None:
        if session.number not in self._members.sessions:
            return
        log.info("client left", extra={"data": {"client": session.name, "reason": reason}})
        is_known = (
            session.asking is not None
            or any(seat.member for seat in session.seats.values())
            or self._deployment.is_owner(session.number)
        )
        session.waiting.clear()
        self._waiting.pop(session.number, None)
        self._members.remove(session)
        if is_known:
            self._propose(RemoveClient(session.number), lambda _: None)

    def exclude(self, session: Session, reason: str) -> None:
        self._refused(session.connection, f"slow client: {reason}")
        session.say(requests.Closing(reason))
        session.flush()
        connection = session.connection
        self.session_lost(session, reason)
        connection.abort()

    def request(self, session: Session, request: AnyFromClient) -> None:
        if session.connection.transport.get_write_buffer_size() > MOST_UNREAD:
            raise PeerError("unread: a client that asks on and does not read the answers")
        if isinstance(request, requests.Goodbye):
            session.connection.close()
        elif isinstance(request, requests.Inspect):
            session.say(requests.Inspection(request.request, self._inspection()))
        elif session.waiting or self._has_to_wait(session, request):
            if len(session.waiting) >= self._settings.limits.requests:
                raise PeerError(f"more than {len(session.waiting)} requests without an answer")
            session.waiting.append(request)
            self._waiting[session.number] = session
        else:
            self._carry_out(session, request)

    def _inspection(self) -> bytes:
        """Made once in a round of the event loop, however many ask: it takes a while."""
        if self._report is None:
            self._report = json.dumps(self._inspect()).encode()
            asyncio.get_running_loop().call_soon(self._forget_report)
        return self._report

    def _forget_report(self) -> None:
        self._report = None

    def _has_to_wait(self, session: Session, request: AnyFromClient) -> bool:
        """A client's requests are carried out one after another. During a change nothing is read:
        whoever asked for the change may have been told that it is made, and have told others."""
        frozen = self._deployment.frozen
        return session.asking is not None or (frozen and isinstance(request, READS))

    def _go_on(self, session: Session) -> None:
        while session.waiting and not self._has_to_wait(session, session.waiting[0]):
            self._carry_out(session, session.waiting.popleft())
        if not session.waiting:
            self._waiting.pop(session.number, None)

    def installed(self) -> None:
        """Go on with the requests that waited for a change, now that it is made."""
        for session in list(self._waiting.values()):
            self._go_on(session)

    def _carry_out(self, session: Session, request: AnyFromClient) -> None:
        match request:
            case requests.Exists():
                there = self._deployment.group(request.group) is not None
                session.say(requests.Done(request.request, there))
            case requests.Info():
                self._tell_about(session, request)
            case requests.Attach():
                self._attach(session, request)
            case requests.Create():
                self._create(session, request)
            case requests.Destroy():
                group = self._deployment.group(request.group)
                seat = session.seats.get(group.number) if group is not None else None
                process = seat.process if seat is not None and seat.member else session.name
                self._ask(session, request, DestroyGroup(request.group, process))
            case requests.Join():
                self._join_group(session, request)
            case requests.Leave():
                self._leave_group(session, request)

    def _tell_about(self, session: Session, request: requests.Info) -> None:
        group = self._deployment.group(request.group)
        if group is None:
            self._refuse_missing(session, request.request, request.group)
            return
        servers = self._deployment.configuration.servers
        names = {server.number: server.name for server in servers}
        session.say(
            requests.Description(
                request.request,
                group.name,
                group.stack,
                group.owner,
                group.open,
                group.view,
                [member.process for member in group.members],
                [names[server] for server in group.servers()],
            )
        )

    def _refuse_missing(self, session: Session, request: int, group: str) -> None:
        session.refuse(
            request, refusals.MISSING, f"there is no group '{group}'; create it first, with a stack"
        )

    def _refuse_more(self, session: Session, request: int) -> None:
        most = self._settings.limits.groups_per_client
        session.refuse(
            request, refusals.TOO_MANY, f"a process may be in {most} groups; leave one first"
        )

    def _create(self, session: Session, request: requests.Create) -> None:
        try:
            plan = parse_stack(request.stack)
            guarantees_above(plan.layers, self._settings.faults.channels())
        except UsageError as error:
            session.refuse(request.request, refusals.BAD_STACK, str(error))
            return
        allow = tuple(request.allow) if request.allow is not None else None
        self._ask(
            session,
            request,
            CreateGroup(
                request.group,
                plan.name,
                request.owner,
                request.open,
                allow,
                session.number if request.owner == session.name else None,
            ),
        )

    def _attach(self, session: Session, request: requests.Attach) -> None:
        group = self._deployment.group(request.group)
        if group is None:
            self._refuse_missing(session, request.request, request.group)
        elif len(session.seats) >= self._settings.limits.groups_per_client:
            self._refuse_more(session, request.request)
        elif not group.open and group.number not in session.seats:
            session.refuse(
                request.request,
                refusals.NOT_ALLOWED,
                f"only members may send to '{group.name}'; join it, or create it with open=True",
            )
        else:
            members = [member.process for member in group.members]
            joined = requests.Joined(
                request.request, group.number, group.view, members, group.stack
            )
            if group.number in session.seats:
                session.say(joined)
            else:
                seat = Seat(group.number, group.name, session.name, False, False)
                session.sit(seat, joined)

    def _join_group(self, session: Session, request: requests.Join) -> None:
        if len(session.seats) >= self._settings.limits.groups_per_client:
            self._refuse_more(session, request.request)
        elif self._settings.tls_server is not None and request.process != session.name:
            session.refuse(
                request.request,
                refusals.NOT_ALLOWED,
                f"with certificates a process joins under its own name, '{session.name}'",
            )
        elif any(seat.member and seat.name == request.group for seat in session.seats.values()):
            session.refuse(
                request.request,
                refusals.ALREADY_MEMBER,
                f"this connection is in '{request.group}' already; leave it first, or connect "
                "again to be in it twice",
            )
        else:
            self._ask(session, request, JoinGroup(request.group, request.process, session.number))

    def _leave_group(self, session: Session, request: requests.Leave) -> None:
        seat = session.seats.get(request.handle)
        if seat is None:
            session.refuse(
                request.request,
                refusals.NOT_MEMBER,
                "this process is not in that group: nothing to leave",
            )
        elif not seat.member:
            session.leave_seat(seat.group)
            session.say(requests.Done(request.request))
        else:
            self._ask(session, request, LeaveGroup(seat.name, seat.process, session.number))

    def _ask(self, session: Session, request: requests.Request, operation: AnyOperation) -> None:
        """Have the servers agree on an operation, and tell the client how that has ended."""

        def answer(error: tuple[str, str] | None) -> None:
            if error is not None:
                session.refuse(request.request, *error)
            elif not isinstance(request, requests.Join):  # it was answered with the first view
                session.say(requests.Done(request.request))
            session.asking = None
            self._go_on(session)

        session.asking = request
        self._propose(operation, answer)
