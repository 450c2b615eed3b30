"""Back-pressure: what cannot be taken here slows down those who send it, wherever they are.

A group that is held up keeps back the word that its messages were delivered here, so the servers
that send to the group stop taking messages from their clients after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import final

from flexgroup.server.clients.session import Seat, Session
from flexgroup.server.settings import Limits


@final
class Backpressure:
    def __init__(
        self,
        limits: Limits,
        sessions: dict[int, Session],
        released: Callable[[], None],
        excluded: Callable[[Session, str], None],
    ) -> None:
        self._limits = limits
        self._sessions = sessions
        self._released = released
        self._excluded = excluded
        self._full: dict[int, int] = {}
        """How many queues of each group are full here."""
        self._holds_all_up = False
        self._loop = asyncio.get_running_loop()

    def held_up(self, groups: Iterable[int]) -> set[int]:
        """The groups that are held up; all of these, while everything is."""
        return set(groups) if self._holds_all_up else set(self._full)

    def hold_all_up(self, wanted: bool) -> None:
        """Hold up all groups while this server cannot keep up with what it delivers."""
        was_wanted, self._holds_all_up = self._holds_all_up, wanted
        if was_wanted and not wanted:
            self._released()

    def queue_changed(self, session: Session, seat: Seat) -> None:
        """The queue of a seat has become full, or is no longer."""
        group = seat.group
        if seat.full:
            self._full[group] = self._full.get(group, 0) + 1
            if session.full_since is None:
                session.full_since = self._loop.time()
                self._loop.call_later(
                    self._limits.slow_seconds, self._exclude_if_still_full, session
                )
        else:
            self._full[group] -= 1
            if self._full[group] == 0:
                del self._full[group]
                self._released()
            if not any(other.full for other in session.seats.values()):
                session.full_since = None

    def _exclude_if_still_full(self, session: Session) -> None:
        since = session.full_since
        if since is None or session.number not in self._sessions:
            return
        remaining = since + self._limits.slow_seconds - self._loop.time()
        if remaining > 0:
            self._loop.call_later(remaining, self._exclude_if_still_full, session)
            return
        self._excluded(
            session,
            f"this process did not take its messages: more than {self._limits.queue} "
            f"(or {self._limits.queue_bytes} bytes) waited for {self._limits.slow_seconds:g} s",
        )
