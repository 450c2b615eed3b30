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

Groups = tuple[tuple[int, int], ...]
"""The groups that a message goes to, with its position in the line of each."""


@final
class _Waiting:
    """The messages of a line that are not known to be stable, in the order in which they came."""

    __slots__ = ("identities", "positions")

    def __init__(self) -> None:
        self.identities: list[MessageId] = []
        self.positions: list[int] = []

    def add(self, identity: MessageId, position: int) -> None:
        self.identities.append(identity)
        self.positions.append(position)


@final
class _Known:
    """What is known of a line."""

    __slots__ = ("above", "kept", "line", "low", "own", "stable", "told")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.low = 0
        """How many have been delivered here without a gap."""
        self.above: set[int] = set()
        """What has been delivered here beyond a gap."""
        self.told: dict[int, int] = {}
        """How many other servers have delivered, by who told."""
        self.stable = 0
        """How many all servers have delivered."""
        self.kept = _Waiting()
        self.own = _Waiting()


@final
class Stability:
    def __init__(self, process: int, processes_of: dict[int, tuple[int, ...]]) -> None:
        self.process = process
        self.kept: dict[MessageId, tuple[Message, Groups]] = {}
        """Delivered here, not known to be delivered everywhere, in the order of delivery."""
        self.own: dict[MessageId, tuple[Message, Groups]] = {}
        """Sent from here and not known to be delivered everywhere, in the order of sending."""
        self.log: deque[tuple[MessageId, Groups]] = deque()
        """What was delivered here, in this order, from the first message on that is kept: those
        that are stable show where the others stand."""
        self._before_log = 0
        """How much was delivered before that."""
        self._delivered_when_sent: dict[MessageId, int] = {}
        """How much had been delivered here when each of `own` was sent."""
        self.own_bytes = 0
        """How much payload `own` holds."""
        self.changed: set[Line] = set()
        """Lines whose count others have not been told yet."""
        self._processes_of = processes_of
        self._mine = {group for group in processes_of if process in processes_of[group]}
        """The groups whose messages are delivered here."""
        self._known: dict[int, dict[int, _Known]] = {}
        """What is known of each line, by group and then by process."""
        self._groups_left: dict[tuple[bool, MessageId], int] = {}
        """How many groups of a message to several are left in which it is not stable yet."""

    def low(self, line: Line) -> int:
        """How many of a line have been delivered here without a gap."""
        group, origin = line
        return self._of(group, origin).low

    def lows(self) -> list[tuple[Line, int]]:
        """The same, of all lines of which some have been delivered here."""
        known = [one for lines in self._known.values() for one in lines.values()]
        return sorted([(one.line, one.low) for one in known if one.low])

    def sent(self, m: Message, groups: Groups) -> None:
        self.own[m.id] = (m, groups)
        self._delivered_when_sent[m.id] = self._before_log + len(self.log)
        self.own_bytes += len(m.payload) if isinstance(m.payload, bytes) else 0
        if len(groups) > 1:
            self._groups_left[True, m.id] = len(groups)
        for group, position in groups:
            known = self._of(group, self.process)
            known.own.add(m.id, position)
            if position < known.stable:
                self._release(known.own, True, known.stable)

    def deliver(self, origin: int, m: Message, groups: Groups) -> None:
        self.kept[m.id] = (m, groups)
        self.log.append((m.id, groups))
        if len(groups) > 1:
            self._groups_left[False, m.id] = len(groups)
        for group, position in groups:
            known = self._of(group, origin)
            if group in self._mine:
                self._count(known, position)
            known.kept.add(m.id, position)
            if position < known.stable:
                self._release(known.kept, False, known.stable)

    def logged_when_sent(self, identity: MessageId) -> int:
        """How much of the log had been delivered when this message of `own` was sent."""
        return max(0, self._delivered_when_sent[identity] - self._before_log)

    def is_delivered(self, origin: int, groups: Groups) -> bool:
        """Here, as far as the lines of this server's own groups tell."""
        for group, position in groups:
            if group in self._mine:
                known = self._of(group, origin)
                return position < known.low or position in known.above
        return False

    def told(self, teller: int, group: int, origin: int, count: int) -> None:
        """Another server has delivered so many of a line without a gap."""
        processes = self._processes_of.get(group)
        if processes is None or teller not in processes:
            return
        known = self._of(group, origin)
        if count > known.told.get(teller, 0):
            known.told[teller] = count
            self._settle(known)

    def settle(self, line: Line) -> None:
        """Forget the messages of a line that have become stable."""
        group, origin = line
        self._settle(self._of(group, origin))

    def _of(self, group: int, origin: int) -> _Known:
        lines = self._known.get(group)
        if lines is None:
            lines = self._known[group] = {}
        known = lines.get(origin)
        if known is None:
            known = lines[origin] = _Known((group, origin))
        return known

    def _count(self, known: _Known, position: int) -> None:
        low = known.low
        if position != low:
            known.above.add(position)
            return
        low += 1
        above = known.above
        if above:
            while low in above:
                above.remove(low)
                low += 1
        known.low = low
        self.changed.add(known.line)

    def _settle(self, known: _Known) -> None:
        group, origin = known.line
        stable = -1
        for process in self._processes_of.get(group, ()):
            count = known.low if process == self.process else known.told.get(process, 0)
            if stable < 0 or count < stable:
                stable = count
        if stable <= known.stable:
            return
        known.stable = stable
        self._release(known.kept, False, stable)
        if origin == self.process:
            self._release(known.own, True, stable)

    def _release(self, waiting: _Waiting, own: bool, stable: int) -> None:
        """Forget messages of a line until one comes that is not stable."""
        count = 0
        while count < len(waiting.positions) and waiting.positions[count] < stable:
            identity = waiting.identities[count]
            count += 1
            if self._groups_left and self._is_awaited_elsewhere(own, identity):
                continue
            if not own:
                self.kept.pop(identity, None)
                continue
            gone = self.own.pop(identity, None)
            if gone is not None:
                del self._delivered_when_sent[identity]
                if isinstance(gone[0].payload, bytes):
                    self.own_bytes -= len(gone[0].payload)
        if count:
            del waiting.identities[:count]
            del waiting.positions[:count]
        if not own:
            log = self.log
            while log and log[0][0] not in self.kept:
                log.popleft()
                self._before_log += 1

    def _is_awaited_elsewhere(self, own: bool, identity: MessageId) -> bool:
        """A message that has become stable in one of its groups is not yet so in another."""
        left = self._groups_left.get((own, identity), 0)
        if left > 1:
            self._groups_left[own, identity] = left - 1
            return True
        self._groups_left.pop((own, identity), None)
        return False
