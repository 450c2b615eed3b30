"""The intake: what clients send, until it is multicast."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from flexgroup.core.errors import UsageError
from flexgroup.server.limits import Limits
from flexgroup.server.packing import PACK_BYTES, Pack
from flexgroup.server.session import Session
from flexgroup.worlds.network import refusals
from flexgroup.worlds.network.requests import Send

if TYPE_CHECKING:
    from flexgroup.server.switchboard import Switchboard


class Intake:
    """Holds messages while the domains are frozen or have too much under way, and packs those that
    go to the same groups."""

    def __init__(self, board: Switchboard, limits: Limits) -> None:
        self._board = board
        self._limits = limits
        self._held: deque[tuple[Session, Send]] = deque()
        self._pack: Pack | None = None
        """The one that is being filled."""

    def cast(self, session: Session, send: Send) -> None:
        if self._held or self._is_full():
            self._held.append((session, send))
        else:
            self._cast(session, send)

    def _is_full(self) -> bool:
        return self._board.frozen or any(
            len(hosted.stability.own) > self._limits.under_way
            or hosted.stability.own_bytes > self._limits.under_way_bytes
            for hosted in self._board.domains
        )

    def cast_held(self) -> None:
        while self._held and not self._is_full():
            session, send = self._held.popleft()
            if session.connection.is_open:
                self._cast(session, send)

    def _cast(self, session: Session, send: Send) -> None:
        session.taken()
        groups = tuple(send.handles)
        seat = None
        domain = None
        for group in groups:
            seat = session.seats.get(group)
            if seat is None:
                session.refuse(
                    None,
                    refusals.NOT_MEMBER,
                    "a message to a group that this process has neither joined nor attached to; "
                    "call join() or attach() first",
                    group,
                )
                return
            of_group = self._board.domain_of.get(group)
            if of_group is None:
                session.refuse(
                    None, refusals.MISSING, f"group '{seat.name}' does not exist any more", group
                )
                return
            if domain is not None and of_group is not domain:
                session.refuse(
                    None,
                    refusals.MIXED_STACKS,
                    f"groups with different stacks ('{domain.stack}' and '{of_group.stack}') "
                    "have no order in common: send one message to each",
                    group,
                )
                return
            domain = of_group
        assert seat is not None
        assert domain is not None
        if len(groups) > 1:
            groups = tuple(sorted(set(groups)))
        session.sent += 1
        pack = self._pack
        if pack is None or pack.groups != groups:
            self.cast_pack()
            pack = self._pack = Pack(domain, groups)
        pack.add(session, seat.process, send.body)
        if len(pack.messages) >= self._limits.pack or pack.size >= PACK_BYTES:
            self.cast_pack()
        self._board.to_be_flushed_soon()

    def cast_pack(self) -> None:
        """When the event loop has made its round: so nothing waits for others to come."""
        pack, self._pack = self._pack, None
        if pack is None:
            return
        try:
            pack.domain.cast(self._board.now(), pack.groups, len(pack.messages), pack.contents())
        except UsageError as error:
            for session in dict.fromkeys(pack.sessions):
                session.refuse(None, refusals.BAD_STACK, str(error), pack.groups[0])
