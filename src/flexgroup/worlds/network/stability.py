"""What has been delivered where: which messages may be forgotten, and which are still under way.

Within a configuration every message of a server to a group goes to the same servers, so it is
enough to count: of the messages of each server to each group, how many have been delivered here
without a gap. Servers tell each other these counts. A message that all have delivered is stable:
it will never be needed again, not even when a server fails.
"""

from __future__ import annotations

from collections import deque
from typing import final

from flexgroup.core.message import Message, MessageId

Line = tuple[int, int]
"""The messages of one server (its process number) to one group: (group, process)."""


@final
class Stability:
    def __init__(self, process: int, processes_of: dict[int, tuple[int, ...]]) -> None:
        self.process = process
        self.kept: dict[MessageId, tuple[Message, tuple[tuple[int, int], ...]]] = {}
        """Delivered here, not known to be delivered everywhere, in the order of delivery."""
        self.own: dict[MessageId, tuple[Message, tuple[tuple[int, int], ...]]] = {}
        """Sent from here and not known to be delivered everywhere, in the order of sending."""
        self.own_bytes = 0
        """How much payload `own` holds."""
        self.low: dict[Line, int] = {}
        """Of each line, how many have been delivered here without a gap."""
        self.changed: set[Line] = set()
        """Lines whose count others have not been told yet."""
        self._above: dict[Line, set[int]] = {}
        self._processes_of = processes_of
        self._told: dict[tuple[int, int, int], int] = {}
        """(group, process, who told) -> count."""
        self._stable: dict[Line, int] = {}
        self._waiting: dict[Line, deque[tuple[int, MessageId]]] = {}
        self._own_waiting: dict[Line, deque[tuple[int, MessageId]]] = {}
        self._groups_left: dict[tuple[bool, MessageId], int] = {}
        """Of messages to several groups: in how many they are not stable yet."""

    def sent(self, m: Message, groups: tuple[tuple[int, int], ...]) -> None:
        self.own[m.id] = (m, groups)
        self.own_bytes += len(m.payload) if isinstance(m.payload, bytes) else 0
        self._wait(self._own_waiting, True, self.process, m.id, groups)

    def deliver(self, origin: int, m: Message, groups: tuple[tuple[int, int], ...]) -> None:
        self.kept[m.id] = (m, groups)
        for group, position in groups:
            if self.process in self._processes_of.get(group, ()):
                self._count((group, origin), position)
        self._wait(self._waiting, False, origin, m.id, groups)

    def is_delivered(self, origin: int, groups: tuple[tuple[int, int], ...]) -> bool:
        """Here, as far as the lines of this server's own groups tell."""
        for group, position in groups:
            line = (group, origin)
            if self.process in self._processes_of.get(group, ()):
                return position < self.low.get(line, 0) or position in self._above.get(line, ())
        return False

    def told(self, teller: int, group: int, origin: int, count: int) -> None:
        """Another server has delivered so many of a line without a gap."""
        processes = self._processes_of.get(group)
        if processes is None or teller not in processes:
            return
        key = (group, origin, teller)
        if count <= self._told.get(key, 0):
            return
        self._told[key] = count
        self.settle((group, origin))

    def settle(self, line: Line) -> None:
        """Forget the messages of a line that have become stable."""
        group, origin = line
        stable = self.low.get(line, 0)
        first = True
        for process in self._processes_of.get(group, ()):
            if process == self.process:
                continue
            count = self._told.get((group, origin, process), 0)
            if count < stable or (first and self.process not in self._processes_of[group]):
                stable = count
            first = False
        if stable <= self._stable.get(line, 0):
            return
        self._stable[line] = stable
        self._release(self._waiting, False, line, stable)
        if origin == self.process:
            self._release(self._own_waiting, True, line, stable)

    def _count(self, line: Line, position: int) -> None:
        low = self.low.get(line, 0)
        if position != low:
            self._above.setdefault(line, set()).add(position)
            return
        low += 1
        above = self._above.get(line)
        if above:
            while low in above:
                above.remove(low)
                low += 1
        self.low[line] = low
        self.changed.add(line)

    def _wait(
        self,
        waiting: dict[Line, deque[tuple[int, MessageId]]],
        own: bool,
        origin: int,
        identity: MessageId,
        groups: tuple[tuple[int, int], ...],
    ) -> None:
        if len(groups) > 1:
            self._groups_left[own, identity] = len(groups)
        for group, position in groups:
            line = (group, origin)
            queue = waiting.get(line)
            if queue is None:
                queue = waiting[line] = deque()
            queue.append((position, identity))
            if position < self._stable.get(line, 0):
                self._release(waiting, own, line, self._stable[line])

    def _release(
        self,
        waiting: dict[Line, deque[tuple[int, MessageId]]],
        own: bool,
        line: Line,
        stable: int,
    ) -> None:
        queue = waiting.get(line)
        if queue is None:
            return
        store = self.own if own else self.kept
        while queue and queue[0][0] < stable:
            _, identity = queue.popleft()
            left = self._groups_left.get((own, identity))
            if left is not None and left > 1:
                self._groups_left[own, identity] = left - 1
                continue
            if left is not None:
                del self._groups_left[own, identity]
            gone = store.pop(identity, None)
            if own and gone is not None and isinstance(gone[0].payload, bytes):
                self.own_bytes -= len(gone[0].payload)
