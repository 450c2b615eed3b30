"""The desk: what clients ask for, and the answers."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.stack import guarantees_above
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.control import (
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    RemoveClient,
)
from flexgroup.server.inspection import inspection
from flexgroup.server.session import Seat, Session
from flexgroup.worlds.network import refusals, requests
from flexgroup.worlds.network.requests import AnyFromClient

if TYPE_CHECKING:
    from flexgroup.server.server import GroupServer

log = logging.getLogger("flexgroup.server")


class Desk:
    def __init__(self, server: GroupServer) -> None:
        self._server = server

    def cast(self, session: Session, send: requests.Send) -> None:
        self._server.switchboard.intake.cast(session, send)

    def to_be_flushed(self, session: Session) -> None:
        self._server.switchboard.to_be_flushed(session)

    def queue_changed(self, session: Session, seat: Seat) -> None:
        self._server.switchboard.queue_changed(session, seat)

    def session_lost(self, session: Session, reason: str) -> None:
        if session.number not in self._server.switchboard.sessions:
            return
        log.info("client left", extra={"data": {"client": session.name, "reason": reason}})
        is_member = session.asking or any(seat.member for seat in session.seats.values())
        session.waiting.clear()
        self._server.switchboard.session_ended(session)
        if is_member:
            self._server.ask_servers(RemoveClient(session.number), lambda _: None)

    def exclude(self, session: Session, reason: str) -> None:
        self._server.refused(session.connection, f"slow client: {reason}")
        session.say(requests.Closing(reason))
        session.flush()
        connection = session.connection
        self.session_lost(session, reason)
        connection.abort()

    def request(self, session: Session, request: AnyFromClient) -> None:
        if isinstance(request, requests.Goodbye):
            session.connection.close()
        elif isinstance(request, requests.Exists):
            there = self._server.switchboard.group(request.group) is not None
            session.say(requests.Done(request.request, there))
        elif isinstance(request, requests.Info):
            self._tell_about(session, request)
        elif isinstance(request, requests.Inspect):
            report = json.dumps(inspection(self._server)).encode()
            session.say(requests.Inspection(request.request, report))
        elif isinstance(request, requests.Attach):
            self._attach(session, request)
        elif session.asking:
            if len(session.waiting) >= self._server.settings.limits.requests:
                raise PeerError(f"more than {len(session.waiting)} requests without an answer")
            session.waiting.append(request)
        else:
            self._change(session, request)

    def _change(self, session: Session, request: AnyFromClient) -> None:
        """A request that takes the agreement of all servers; of each client one at a time, so
        that nobody keeps the servers busy for all."""
        if isinstance(request, requests.Create):
            self._create(session, request)
        elif isinstance(request, requests.Destroy):
            process = session.name
            group = self._server.switchboard.group(request.group)
            seat = session.seats.get(group.number) if group is not None else None
            if seat is not None and seat.member:
                process = seat.process
            self._ask(session, request.request, DestroyGroup(request.group, process))
        elif isinstance(request, requests.Join):
            self._join_group(session, request)
        elif isinstance(request, requests.Leave):
            self._leave_group(session, request)

    def _answered(self, session: Session) -> None:
        session.asking = False
        while session.waiting and not session.asking:
            self._change(session, session.waiting.popleft())

    def _tell_about(self, session: Session, request: requests.Info) -> None:
        group = self._server.switchboard.group(request.group)
        if group is None:
            self._refuse_missing(session, request.request, request.group)
            return
        assert self._server.switchboard.configuration is not None
        names = {
            server.number: server.name for server in self._server.switchboard.configuration.servers
        }
        session.say(
            requests.GroupInfo(
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

    def _create(self, session: Session, request: requests.Create) -> None:
        try:
            plan = parse_stack(request.stack)
            guarantees_above(plan.layers, self._server.settings.faults.channels())
        except UsageError as error:
            session.refuse(request.request, refusals.BAD_STACK, str(error))
            return
        allow = tuple(request.allow) if request.allow is not None else None
        self._ask(
            session,
            request.request,
            CreateGroup(request.group, plan.name, request.owner, request.open, allow),
        )

    def _attach(self, session: Session, request: requests.Attach) -> None:
        group = self._server.switchboard.group(request.group)
        if group is None:
            self._refuse_missing(session, request.request, request.group)
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
        if len(session.seats) >= self._server.settings.limits.groups_per_client:
            session.refuse(
                request.request,
                refusals.TOO_MANY,
                f"a process may be in {self._server.settings.limits.groups_per_client} groups",
            )
            return
        if self._server.settings.tls_server is not None and request.process != session.name:
            session.refuse(
                request.request,
                refusals.NOT_ALLOWED,
                f"with certificates a process joins under its own name, '{session.name}'",
            )
            return
        if any(seat.member and seat.name == request.group for seat in session.seats.values()):
            session.refuse(
                request.request,
                refusals.ALREADY_MEMBER,
                f"this connection is in '{request.group}' already; connect again to be in it twice",
            )
            return
        session.joining[request.group] = (request.request, request.process, request.own)

        def answer(error: tuple[str, str] | None) -> None:
            if error is not None:
                session.joining.pop(request.group, None)
                session.refuse(request.request, error[0], error[1])
            self._answered(session)

        session.asking = True
        self._server.ask_servers(JoinGroup(request.group, request.process, session.number), answer)

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
            self._ask(
                session,
                request.request,
                LeaveGroup(seat.name, seat.process, session.number),
            )

    def _ask(self, session: Session, request: int, operation: AnyOperation) -> None:
        def answer(error: tuple[str, str] | None) -> None:
            if error is None:
                session.say(requests.Done(request))
            else:
                session.refuse(request, error[0], error[1])
            self._answered(session)

        session.asking = True
        self._server.ask_servers(operation, answer)
