"""The clients of a server, and which of them are members of which group."""

from __future__ import annotations

from typing import final

from flexgroup.membership.configuration import Configuration
from flexgroup.server.clients.contents import opened, packed
from flexgroup.server.clients.session import Seat, Session
from flexgroup.wire.requests import Join, Joined
from flexgroup.worlds.network.envelope import Envelope


@final
class LocalMembers:
    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}
        """All clients that are connected here, by number."""
        self._of_group: dict[int, list[tuple[Session, Seat]]] = {}

    def deliver(self, envelope: Envelope) -> None:
        """Deliver it once to each member, however many of its groups the member is in."""
        seen: set[int] = set()
        several = len(envelope.groups) > 1
        for group, _ in envelope.groups:
            for session, seat in self._of_group.get(group, ()):
                if several:
                    if session.number in seen:
                        continue
                    seen.add(session.number)
                if seat.own:
                    session.deliver(seat, envelope.count, envelope.contents)
                else:
                    self._deliver_others(session, seat, envelope)

    def _deliver_others(self, session: Session, seat: Seat, envelope: Envelope) -> None:
        """Deliver what others sent: the member does not want its own messages."""
        others = [m for m in opened(envelope.contents) if m[0] != seat.process]
        if others:
            session.deliver(seat, len(others), packed(others))

    def follow(self, before: Configuration, after: Configuration, me: int) -> None:
        """Tell members what has changed in their groups, each in its place."""
        old = {group.number: group for group in before.groups}
        of_group: dict[int, list[tuple[Session, Seat]]] = {}
        for group in after.groups:
            changed = group.number not in old or old[group.number].view != group.view
            names = [member.process for member in group.members]
            here: list[tuple[Session, Seat]] = []
            for member in group.members:
                session = self.sessions.get(member.client) if member.server == me else None
                if session is None:
                    continue
                seat = session.seats.get(group.number)
                if seat is None or not seat.member:
                    join = session.asking
                    assert isinstance(join, Join)
                    seat = Seat(group.number, group.name, member.process, True, join.own)
                    session.sit(
                        seat, Joined(join.request, group.number, group.view, names, group.stack)
                    )
                elif changed:
                    session.tell_view(seat, group.view, names)
                here.append((session, seat))
            if here:
                of_group[group.number] = here
        present = {group.number for group in after.groups}
        for number, members in self._of_group.items():
            seated = {id(seat) for _, seat in of_group.get(number, ())}
            for session, seat in members:
                if id(seat) not in seated:
                    if number not in present:
                        session.end_seat(seat, "the group was destroyed")
                    else:
                        session.leave_seat(number)
        self._of_group = of_group

    def remove(self, session: Session) -> None:
        """The connection to this client has ended."""
        self.sessions.pop(session.number, None)
        for seat in list(session.seats.values()):
            session.leave_seat(seat.group)
        for group, members in list(self._of_group.items()):
            left = [(other, seat) for other, seat in members if other is not session]
            if len(left) != len(members):
                self._of_group[group] = left
