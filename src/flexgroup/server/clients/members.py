"""The clients of a server, and which of them are members of which group."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from flexgroup.membership.configuration import (
    Configuration,
    GroupEntry,
    changed_groups,
    is_flowing,
)
from flexgroup.server.clients.contents import opened, packed_one_by_one
from flexgroup.server.clients.session import Seat, Session
from flexgroup.wire.requests import Join, Joined, Leave, ViewChange
from flexgroup.worlds.network.envelope import Envelope


@final
class LocalMembers:
    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}
        """All clients that are connected here, by number."""
        self._of_group: dict[int, list[tuple[Session, Seat]]] = {}

    def deliver(self, envelope: Envelope) -> None:
        """Deliver it to each member, once for all those of its groups that the member is in."""
        if len(envelope.groups) > 1:
            self._deliver_to_several(envelope)
            return
        group, _ = envelope.groups[0]
        if envelope.number:
            self._deliver_kept(group, envelope)
            return
        for session, seat in self._of_group.get(group, ()):
            self._deliver(session, seat, envelope)

    def _deliver_kept(self, group: int, envelope: Envelope) -> None:
        for session, seat in self._of_group.get(group, ()):
            if seat.unread:
                continue  # it comes to that where it is kept
            if seat.own:
                session.deliver_kept(seat, envelope.number, envelope.count, envelope.contents)
            else:
                session.deliver_others(seat, envelope.number, opened(envelope.contents))

    def read_from(self, group: int, number: int) -> None:
        """Messages from this number on are given to members from where they are kept."""
        for session, seat in self._of_group.get(group, ()):
            if not seat.unread:
                session.read_from(seat, number)

    def read_on(self, group: int) -> None:
        """What is kept of a group can be read from now on."""
        for session, seat in self._of_group.get(group, ()):
            if seat.unread:
                session.read_on(seat)

    def _deliver(self, session: Session, seat: Seat, envelope: Envelope) -> None:
        if seat.own:
            session.deliver(seat, envelope.count, envelope.contents)
        else:
            others = [m for m in opened(envelope.contents) if m[0] != seat.process]
            if others:
                session.deliver(seat, len(others), packed_one_by_one(others))

    def _deliver_to_several(self, envelope: Envelope) -> None:
        sessions: dict[int, Session] = {}
        seats_of: dict[int, list[Seat]] = {}
        for group, _ in envelope.groups:
            for session, seat in self._of_group.get(group, ()):
                sessions[session.number] = session
                seats_of.setdefault(session.number, []).append(seat)
        for number, session in sessions.items():
            seats = seats_of[number]
            if len(seats) == 1:
                self._deliver(session, seats[0], envelope)
            elif all(seat.own for seat in seats):
                session.deliver_to_several(seats, envelope.count, envelope.contents)
            else:
                # Whoever does not want its own messages in one group may want them in another.
                for m in opened(envelope.contents):
                    wanting = [seat for seat in seats if seat.own or m[0] != seat.process]
                    if wanting:
                        session.deliver_to_several(wanting, 1, packed_one_by_one([m]))

    def follow(
        self,
        before: Configuration,
        after: Configuration,
        me: int,
        reason: str = "the group was destroyed",
    ) -> None:
        """Tell members what has changed in their groups; the reason is that for which groups
        end."""
        for known, group in changed_groups(before, after):
            if group is not None:
                is_changed = known is None or known.view != group.view
                # Members learn of a view that flows where its mark is delivered, and of none here
                # that came with an earlier configuration.
                is_told_later = is_flowing(before, known, after, group)
                if not (is_told_later or (group.flows and not is_changed)):
                    self._follow(group, is_changed, me)
            elif known is not None:
                for session, seat in self._of_group.pop(known.number, ()):
                    session.end_seat(seat, reason)

    def show(self, group: GroupEntry, me: int) -> None:
        """Tell members that this is their group now."""
        self._follow(group, True, me)

    def _follow(self, group: GroupEntry, is_changed: bool, me: int) -> None:
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
                seat.read_since(join.since)
                joined = Joined(join.request, group.number, group.view, names, group.stack)
                joined.side = group.side
                session.sit(seat, joined)
            elif is_changed:
                parts = [list(part) for part in group.merged]
                session.tell_view(
                    seat, ViewChange(group.number, 0, group.view, names, parts, group.side)
                )
            here.append((session, seat))
        seated = {id(seat) for _, seat in here}
        for session, seat in self._of_group.pop(group.number, ()):
            if id(seat) in seated:
                continue
            if group.partitionable and not isinstance(session.asking, Leave):
                session.end_seat(
                    seat,
                    f"the parts of the group have met, and another process {seat.process!r} is in"
                    " it; join under another name",
                )
            else:
                session.leave_seat(group.number)
        if here:
            self._of_group[group.number] = here

    def send_away(self, groups: Collection[int]) -> None:
        """Nobody can be in these groups over this server any more."""
        for session in list(self.sessions.values()):
            if not session.seats.keys().isdisjoint(groups):
                session.close("this server has lost its replica of a group; connect to another")

    def remove(self, session: Session) -> None:
        """The connection to this client has ended."""
        self.sessions.pop(session.number, None)
        for group in list(session.seats):
            session.leave_seat(group)
            members = self._of_group.get(group)
            if members is not None:
                self._of_group[group] = [one for one in members if one[0] is not session]
