"""How much a server lets be under way in a domain: what its links carry in a moment.

Whatever is under way has to be exchanged when a server fails, and what comes later waits behind
it. So there is to be enough of it to keep the links busy, and no more.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.message import MessageId

FIRST_BYTES: Final = 256 << 10
LEAST_BYTES: Final = 64 << 10
MOST_BYTES: Final = 1 << 30

LONGEST_WAIT: Final = 250
"""How many milliseconds longer than usual a message may take until all have delivered it."""


@final
class SendWindow:
    """Grows while messages are delivered everywhere about as soon as ever, and shrinks while they
    take longer."""

    def __init__(self) -> None:
        self.bytes = FIRST_BYTES
        """The most that is to be under way."""
        self.was_full = False
        """Something has waited for less to be under way."""
        self.watched: MessageId | None = None
        """A message that is under way."""
        self._watched_since = 0
        self._quickest = MOST_BYTES

    def watch(self, now: int, identity: MessageId) -> None:
        """A message was sent. See how long this one takes."""
        self.watched = identity
        self._watched_since = now
        self.was_full = False

    def arrived(self, now: int) -> None:
        """All have delivered the message that is watched."""
        self.watched = None
        took = now - self._watched_since
        self._quickest = min(self._quickest, took)
        waited = took - self._quickest
        if waited > LONGEST_WAIT:
            less = max(self.bytes // 2, self.bytes * LONGEST_WAIT // waited)
            self.bytes = max(LEAST_BYTES, less)
        elif self.was_full and 2 * waited < LONGEST_WAIT:
            self.bytes = min(MOST_BYTES, 2 * self.bytes)
