"""What clients ask for, and the answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.promises import UNIFORM
from flexgroup.membership.configuration import KEPT, GroupEntry
from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    CreateReplicated,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    RemoveClient,
    SendFrom,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.clients.intake import Intake
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.clients.replica_intake import ReplicaIntake
from flexgroup.server.clients.session import Seat, Session, not_kept
from flexgroup.server.clients.turns import REQUEST
from flexgroup.server.connection import Connection
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.settings import Settings
from flexgroup.wire import refusals, requests
from flexgroup.wire.requests import AnyFromClient

log = logging.getLogger("flexgroup.server")

READS = requests.Exists | requests.Info | requests.Attach
"""What this server answers from the configuration that it has installed."""


Propose = Callable[[AnyOperation, Callable[[tuple[str, str] | None], None]], None]
"""Have the servers agree on an operation; how that ended is told to the second argument."""


class RequestHandler:
    """Answers what this server knows, and proposes to the others what changes something."""

    def __init__(
        self,
        settings: Settings,
        deployment: Deployment,
        members: LocalMembers,
        intake: Intake,
        replicas: ReplicaIntake,
        *,
        propose: Propose,
        refused: Callable[[Connection, str], None],
        confirm: Callable[[Session, requests.Confirm], None],
        inspect: Callable[[], dict[str, object]],
    ) -> None:
        self._settings = settings
        self._deployment = deployment
        self._members = members
        self._intake = intake
        self._replicas = replicas
        self._propose = propose
        self._refused = refused
        self._confirm = confirm
        self._inspect = inspect
        self._waiting: dict[int, Session] = {}
        """Clients with requests that wait for another of theirs, or for the end of a change."""
        self._leaving: dict[int, Session] = {}
        """Clients that are gone, and of which something is still to be multicast."""
        self._attached: set[int] = set()
        """Groups to which processes connected here send without being members."""
        self._report: bytes | None = None
        intake.emptied = self._emptied

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
        self._attach_servers()
        if is_known:
            self._leaving[session.number] = session
            self._remove_if_done(session)

    def _remove_if_done(self, session: Session) -> None:
        """Have a client that is gone leave its groups, unless it has sent something that is still
        to be multicast before."""
        if session.number in self._leaving and not self._intake.holds(session):
            del self._leaving[session.number]
            self._propose(RemoveClient(session.number), lambda _: None)

    def _remove_again(self, session: Session, operation: AnyOperation) -> None:
        """What a client asked for that is gone was carried out, perhaps after its removal: a
        proposal that was lost on its way is repeated, and comes later than others."""
        if isinstance(operation, CreateGroup | JoinGroup):
            group = self._deployment.group(operation.group)
            if group is None:
                return
            clients = {group.owner_at, *((m.server, m.client) for m in group.members)}
            if (self._deployment.me, session.number) in clients:
                self._propose(RemoveClient(session.number), lambda _: None)

    def _emptied(self, session: Session) -> None:
        """What a client has sent is multicast. It may leave now, if it has asked for that."""
        self._attach_servers()
        self._remove_if_done(session)
        if session.number in self._waiting:
            self.go_on(session)

    def exclude(self, session: Session, reason: str) -> None:
        self._refused(session.connection, f"slow client: {reason}")
        session.say(requests.Closing(reason))
        session.flush()
        connection = session.connection
        self.session_lost(session, reason)
        connection.abort()

    def request(self, session: Session, request: AnyFromClient) -> None:
        if isinstance(request, requests.Goodbye):
            session.connection.close()
        elif isinstance(request, requests.Confirm):
            if not self._replicas.confirms(session, request):
                self._confirm(session, request)
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
        whoever asked for the change may have been told that it is made, and have told others. And
        nobody leaves a group before what it has sent there is multicast."""
        if session.asking is not None or self._deployment.is_alone:
            return True
        if isinstance(request, requests.Join) and request.since is not None:
            return self._deployment.is_changing or self._is_closed(request.group)
        if isinstance(request, READS):
            return not self._is_readable(request.group)
        if isinstance(request, requests.Leave):
            return self._intake.holds_to(session, request.handle)
        if isinstance(request, requests.Destroy):
            group = self._deployment.group(request.group)
            return group is not None and self._intake.holds_to(session, group.number)
        return False

    def _is_closed(self, name: str) -> bool:
        """Whether it is not known yet which messages of a group are kept."""
        group = self._deployment.group(name)
        hosted = self._deployment.domain_of.get(group.number) if group is not None else None
        if hosted is None or hosted.keeping is None:
            return False
        return hosted.is_closed and not hosted.keeping.is_stranded

    def _is_readable(self, name: str) -> bool:
        """Whether what is known of a group here is what holds now; in a side, that is so for
        partitionable groups, while the others stand still."""
        deployment = self._deployment
        if deployment.is_of_side:
            group = deployment.group(name)
            if group is not None and group.partitionable:
                return not deployment.is_moving
        return not deployment.is_changing

    def go_on(self, session: Session) -> None:
        """Carry out the requests of this client that have waited, as far as it is its turn."""
        while session.waiting and not self._has_to_wait(session, session.waiting[0]):
            if not session.has_turn(REQUEST):
                return
            self._carry_out(session, session.waiting.popleft())
        if not session.waiting:
            self._waiting.pop(session.number, None)

    def installed(self) -> None:
        """Go on with the requests that waited for a change, now that it is made."""
        self._attach_servers()
        for session in list(self._leaving.values()):
            self._remove_if_done(session)
        for session in list(self._waiting.values()):
            self.go_on(session)

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
            case requests.CreateReplicated():
                self._create_replicated(session, request)
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
        promises = parse_stack(group.stack).promises(self._settings.faults.channels())
        session.say(
            requests.Description(
                request.request,
                group.name,
                group.stack,
                group.owner,
                group.open,
                group.view,
                [member.process for member in group.members],
                [names[server] for server in group.servers] or self._replica_servers(group),
                list(promises),
                group.domain or None,
                group.keep,
                group.partitionable,
            )
        )

    def _replica_servers(self, group: GroupEntry) -> list[str]:
        """The names of the servers with replicas of a group, whether they run or not."""
        domain = self._deployment.configuration.replicated_numbered.get(group.replicated)
        return [] if domain is None else list(domain.group(group.number).servers)

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
            channels = self._settings.faults.channels()
            plan.check_replicas((), 0)
            plan.check_nothing_is_lost(channels)
            plan.check_seals(None)
            if request.partitionable and UNIFORM in plan.promises(channels):
                raise UsageError(
                    f"'{plan.name}' promises {UNIFORM}: nothing is delivered that others may never"
                    " deliver; a group that goes on in every component of a network cannot have"
                    " that. Leave out safe, or create the group without partitionable"
                )
        except UsageError as error:
            session.refuse(request.request, refusals.BAD_STACK, str(error))
            return
        if request.keep and not plan.gives_one_sequence(channels):
            session.refuse(
                request.request,
                refusals.BAD_STACK,
                f"the messages of '{request.group}' cannot be kept: by '{plan.name}' servers need "
                "not deliver the same messages in the same order if one of them fails; write SAFE "
                "on top of a stack with a total order, such as ABCAST SAFE",
            )
            return
        if request.domain is not None and (request.keep or request.domain.startswith(KEPT)):
            session.refuse(
                request.request,
                refusals.NOT_ALLOWED,
                "a group that keeps its messages has a domain for itself, which nobody can name "
                f"(and no other domain begins with '{KEPT}'): leave out domain=",
            )
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
                request.domain or "",
                request.keep,
                request.partitionable,
                flows=(
                    not (request.keep or request.partitionable) and plan.lets_views_flow(channels)
                ),
            ),
        )

    def _create_replicated(self, session: Session, request: requests.CreateReplicated) -> None:
        try:
            plan = parse_stack(request.stack)
            plan.check_nothing_is_lost(self._settings.faults.channels())
            if not plan.needs_replicas:
                raise UsageError(
                    f"'{plan.name}' knows no replicas, and does not survive a crash by itself; "
                    "create its groups with create(), and servers begin with a new stack when one "
                    "of them fails"
                )
            plan.check_survives()
            for _, servers in request.groups:
                self._settings.check_seals(plan, servers)
        except UsageError as error:
            session.refuse(request.request, refusals.BAD_STACK, str(error))
            return
        groups = tuple([(name, tuple(servers)) for name, servers in request.groups])
        self._ask(session, request, CreateReplicated(plan.name, groups))

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
        elif reason := self._why_stranded(group):
            session.refuse(request.request, refusals.NOT_KEPT, reason)
        elif reason := self._why_not_here(group.name, True):
            session.refuse(request.request, refusals.NOT_HERE, reason)
        elif (
            group.replicated
            or self._deployment.me in group.senders
            or group.number in session.seats
        ):
            self._sit_to_send(session, request, group)
        else:
            self._ask(session, request, SendFrom(group.name, True))

    def _sit_to_send(self, session: Session, request: requests.Attach, group: GroupEntry) -> None:
        members = [member.process for member in group.members]
        joined = requests.Joined(request.request, group.number, group.view, members, group.stack)
        if group.number in session.seats:
            session.say(joined)
        else:
            if not group.replicated:
                self._attached.add(group.number)
            session.sit(Seat(group.number, group.name, session.name, False, False), joined)

    def _attached_to(self, session: Session, request: requests.Attach) -> None:
        group = self._deployment.group(request.group)
        if group is None:
            self._refuse_missing(session, request.request, request.group)
        elif session.number in self._members.sessions:
            self._sit_to_send(session, request, group)
        else:
            self._attached.add(group.number)
            self._attach_servers()

    def _attach_servers(self) -> None:
        """Have this server take part in the domains of the groups that processes here send to, and
        in no others on their account."""
        if not self._deployment.number:
            return  # Nobody can be asked, until there is a configuration to look at.
        for number in list(self._attached):
            group = self._deployment.configuration.group_numbered.get(number)
            if group is None:
                self._attached.discard(number)
                continue
            seats = [session.seats.get(number) for session in self._members.sessions.values()]
            is_wanted = any(seat is not None and not seat.member for seat in seats)
            # What somebody who is gone has sent is still to be multicast.
            is_wanted = is_wanted or self._intake.holds_in(group.domain_key)
            if not is_wanted:
                self._attached.discard(number)
            if is_wanted != (self._deployment.me in group.senders):
                self._propose(SendFrom(group.name, is_wanted), lambda _: None)

    def _join_group(self, session: Session, request: requests.Join) -> None:
        if len(session.seats) >= self._settings.limits.groups_per_client:
            self._refuse_more(session, request.request)
        elif self._settings.tls_server is not None and request.process != session.name:
            session.refuse(
                request.request,
                refusals.NOT_ALLOWED,
                f"with certificates a process joins under its own name, '{session.name}'",
            )
        elif self._is_in(session, request.group):
            session.refuse(
                request.request,
                refusals.ALREADY_MEMBER,
                f"this connection is in '{request.group}' already; leave it first, or connect "
                "again to be in it twice",
            )
        elif reason := self._why_not_since(request):
            session.refuse(request.request, refusals.NOT_KEPT, reason)
        elif reason := self._why_not_here(request.group):
            session.refuse(request.request, refusals.NOT_HERE, reason)
        else:
            wants_kept = request.since is not None
            self._ask(
                session,
                request,
                JoinGroup(request.group, request.process, session.number, wants_kept),
            )

    def _why_stranded(self, group: GroupEntry) -> str:
        """Why nobody can be in a group now, if servers that are not here have its messages."""
        hosted = self._deployment.domain_of.get(group.number)
        if hosted is not None and hosted.keeping is not None and hosted.keeping.is_stranded:
            return (
                f"the servers that have all messages of '{group.name}' are not here; start them "
                "again, or destroy the group"
            )
        return ""

    def _why_not_since(self, request: requests.Join) -> str:
        """Why the messages that are asked for cannot be given."""
        group = self._deployment.group(request.group)
        if group is None:
            return ""
        hosted = self._deployment.domain_of.get(group.number)
        keeping = hosted.keeping if hosted is not None else None
        if (
            keeping is None
            or not request.since
            or keeping.first <= request.since <= keeping.last + 1
        ):
            return self._why_stranded(group)
        return not_kept(group.name, request.since, keeping.first, keeping.last)

    def _why_not_here(self, name: str, sends_only: bool = False) -> str:
        """Why this server lets nobody into a group, if only others have replicas of it."""
        group = self._deployment.group(name)
        return self._replicas.why_not_here(self._deployment.configuration, group, sends_only)

    def _is_in(self, session: Session, name: str) -> bool:
        group = self._deployment.group(name)
        seat = session.seats.get(group.number) if group is not None else None
        return seat is not None and seat.member

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
            self._attach_servers()
            session.say(requests.Done(request.request))
        else:
            self._ask(session, request, LeaveGroup(seat.name, seat.process, session.number))

    def _ask(self, session: Session, request: requests.Request, operation: AnyOperation) -> None:
        """Have the servers agree on an operation, and tell the client how that has ended."""

        def answer(error: tuple[str, str] | None) -> None:
            if error is None and isinstance(operation, JoinGroup | LeaveGroup):
                self._deployment.when_seen(operation.group, lambda: end(None))
            else:
                end(error)

        def end(error: tuple[str, str] | None) -> None:
            if error is not None:
                session.refuse(request.request, *error)
            elif isinstance(request, requests.Attach):
                self._attached_to(session, request)
            elif not isinstance(request, requests.Join):
                session.say(requests.Done(request.request))
            elif session.last_joined != request.request:
                # Its first view would have been the answer, but the group ended with the same
                # change.
                self._refuse_missing(session, request.request, request.group)
            session.asking = None
            if session.number in self._members.sessions:
                self.go_on(session)
            elif error is None:
                self._remove_again(session, operation)

        session.asking = request
        self._propose(operation, answer)
