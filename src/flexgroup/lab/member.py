"""A member of a group that is this lab: it receives, and sends what is written on the page."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable

from flexgroup.client.group import Group, Link
from flexgroup.client.message import Listener, Message, View
from flexgroup.core.errors import FlexGroupError

SHOWN = 12
"""So many of the last messages are kept, of those that somebody has written."""

STEADY = "steady "
"""How messages of the steady load begin, which are counted and not shown."""

LONGEST = 2_000
"""The most characters of a message that are shown."""

MOST_LATENCIES = 5_000


class LabMember(Listener[bytes]):
    """One member, at one server."""

    def __init__(
        self, link: Link, group: Group[bytes], address: str, changed: Callable[[], None]
    ) -> None:
        self.group = group
        self.address = address
        self.server = link.server
        self.received: deque[tuple[int, str, str]] = deque(maxlen=SHOWN)
        """The last messages: which of all that came here, its sender, and its text."""
        self.count = 0
        self.view = group.view
        self.reason = ""
        """Why nothing comes any more; empty while it is a member."""
        self.latencies: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)
        """When messages of its own came back to it, and after how many seconds."""
        self._link = link
        self._changed = changed
        self._sent: dict[bytes, deque[float]] = defaultdict(deque)
        self._steady = 0
        group.listen(self)

    @property
    def name(self) -> str:
        return self.group.process

    # What the group tells.

    def delivered(self, messages: list[Message[bytes]]) -> None:
        now = time.monotonic()
        for message in messages:
            self.count += 1
            if message.sender == self.name and (times := self._sent.get(message.body)):
                self.latencies.append((now, now - times.popleft()))
                if not times:
                    del self._sent[message.body]
            text = message.body[:LONGEST].decode("utf-8", "replace")
            if not text.startswith(STEADY):
                self.received.append((self.count, message.sender, text))
                self._changed()

    def changed(self, view: View) -> None:
        self.view = view
        self._changed()

    def refused(self, error: FlexGroupError) -> None:
        self.reason = str(error)
        self._changed()

    def ended(self, error: FlexGroupError) -> None:
        self.reason = str(error)
        self._changed()

    # What the page wants.

    async def send(self, text: str) -> None:
        body = text.encode()
        self._sent[body].append(time.monotonic())
        await self.group.send(body)

    def send_steadily(self, messages: int) -> None:
        """Send so many messages of the steady load, if there is room for them."""
        if self.reason or not messages:
            return
        bodies = [f"{STEADY}{self._steady + number}".encode() for number in range(messages)]
        try:
            sent = self.group.send_now(bodies)
        except FlexGroupError as error:
            self.reason = str(error)
            return
        if sent:
            now = time.monotonic()
            self._steady += messages
            for body in bodies:
                self._sent[body].append(now)

    async def leave(self) -> None:
        """Leave the group, if it can, and disconnect."""
        await self._link.close()
