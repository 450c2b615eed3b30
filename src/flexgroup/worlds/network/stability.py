"""What has been delivered where: which messages may be forgotten, and which are still under way.

Within a configuration every message of a server to a group goes to the same servers, so it is
enough to count: of the messages of each server to each group, how many have been delivered here
without a gap. Servers tell each other these counts. A message that all have delivered is stable:
it will never be needed again, not even when a server fails.
"""

from __future__ import annotations

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

    __slots__ = (
        "above",
        "is_mine",
        "kept",
        "line",
        "low",
        "own",
        "processes",
        "stable",
        "told",
        "waits_for_me",
    )

    def __init__(self, line: Line, processes: tuple[int, ...], is_mine: bool) -> None:
        self.line = line
        self.processes = processes
        """Who delivers messages to the group."""
        self.is_mine = is_mine
        """Whether this server does."""
        self.low = 0
        """How many have been delivered here without a gap."""
        self.above: set[int] = set()
        """What has been delivered here beyond a gap."""
        self.told: dict[int, int] = {}
        """How many other servers have delivered, by who told."""
        self.stable = 0
        """How many all servers have delivered."""
        self.waits_for_me = True
        """When that was found out, this server was among those that had delivered fewest."""
        self.kept = _Waiting()
        self.own = _Waiting()


def _size(m: Message) -> int:
    return len(m.payload) if isinstance(m.payload, bytes) else 0


@final
class Stability:
    def __init__(self, process: int, processes_of: dict[int, tuple[int, ...]]) -> None:
        self.process = process
        self.kept: dict[MessageId, tuple[Message, Groups]] = {}
        """Delivered here, not known to be delivered everywhere, in the order of delivery."""
        self.own: dict[MessageId, tuple[Message, Groups]] = {}
        """Sent from here and not known to be delivered everywhere, in the order of sending."""
        self.log: list[tuple[MessageId, Groups]] = []
        """What was delivered here, in this order, from the first message on that is kept: those
        that are stable show where the others stand."""
        self._own_in: dict[int, tuple[int, int]] = {}
        """How many of `own` go to each group that has some, and how many bytes they are."""
        self.changed: set[Line] = set()
        """Lines whose count others have not been told yet."""
        self._processes_of = processes_of
        self._known: dict[int, dict[int, _Known]] = {}
        """What is known of each line, by group and then by process."""
        self._groups_left: dict[tuple[bool, MessageId], int] = {}
        """How many groups of a message to several are left in which it is not stable yet."""

    def low(self, line: Line) -> int:
        """How many of a line have been delivered here without a gap."""
        group, origin = line
        return self._of(group, origin).low

    def stable(self, line: Line) -> int:
        """How many of a line all servers are known to have delivered."""
        group, origin = line
        return self._of(group, origin).stable

    def lows(self) -> list[tuple[Line, int]]:
        """The same, of all lines of which some have been delivered here."""
        known = [one for lines in self._known.values() for one in lines.values()]
        return sorted([(one.line, one.low) for one in known if one.low])

    def sent(self, m: Message, groups: Groups) -> None:
        self.own[m.id] = (m, groups)
        size = _size(m)
        if len(groups) > 1:
            self._groups_left[True, m.id] = len(groups)
        for group, position in groups:
            count, total = self._own_in.get(group, (0, 0))
            self._own_in[group] = (count + 1, total + size)
            known = self._of(group, self.process)
            known.own.add(m.id, position)
            self._count_for_nobody(known, position)
            if position < known.stable:
                self._release(known, True, known.stable)

    def deliver(self, origin: int, m: Message, groups: Groups) -> None:
        self.kept[m.id] = (m, groups)
        self.log.append((m.id, groups))
        if len(groups) > 1:
            self._groups_left[False, m.id] = len(groups)
        for group, position in groups:
            known = self._of(group, origin)
            if known.is_mine:
                self._count(known, position)
            known.kept.add(m.id, position)
            self._count_for_nobody(known, position)
            if position < known.stable:
                self._release(known, False, known.stable)

    def under_way(self, group: int) -> tuple[int, int, int]:
        """How many messages of `own` go to the group, how many bytes they are, and how many groups
        have some."""
        count, size = self._own_in.get(group, (0, 0))
        return count, size, len(self._own_in)

    def is_delivered(self, origin: int, groups: Groups) -> bool:
        """Here, as far as the lines of this server's own groups tell."""
        is_delivered = False
        for group, position in groups:
            known = self._of(group, origin)
            if known.is_mine:
                is_delivered = position < known.low or position in known.above
                if not is_delivered:
                    break  # before it came to another of the groups
        return is_delivered

    def told(self, teller: int, group: int, origin: int, count: int) -> None:
        """Another server has delivered so many of a line without a gap."""
        processes = self._processes_of.get(group)
        if processes is None or teller not in processes:
            return
        known = self._of(group, origin)
        before = known.told.get(teller, 0)
        if count > before:
            known.told[teller] = count
            # Who had delivered more than others makes nothing stable, and most have.
            if before <= known.stable or known.waits_for_me:
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
            processes = self._processes_of.get(group, ())
            known = lines[origin] = _Known((group, origin), processes, self.process in processes)
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

    def _count_for_nobody(self, known: _Known, position: int) -> None:
        """If a message to several groups finds one of them without members, nobody will tell of it
        there: as far as that group goes, it is stable at once."""
        if not known.processes:
            known.stable = max(known.stable, position + 1)

    def _settle(self, known: _Known) -> None:
        stable = -1
        for process in known.processes:
            count = known.low if process == self.process else known.told.get(process, 0)
            if stable < 0 or count < stable:
                stable = count
        known.waits_for_me = known.low == stable
        if stable <= known.stable:
            return
        known.stable = stable
        self._release(known, False, stable)
        if known.line[1] == self.process:
            self._release(known, True, stable)

    def regroup(
        self, group: int, processes: tuple[int, ...] | None, counts: dict[int, int]
    ) -> None:
        """Other processes have members of a group from now on; None: the group is no more.

        All that was multicast to it, so many messages of each origin, is delivered.
        """
        known_here = self._known.get(group, {})
        for origin in sorted({*known_here, *counts}):
            known = self._of(group, origin)
            known.processes = processes or ()
            known.is_mine = self.process in known.processes
            known.low = known.stable = counts.get(origin, 0)
            known.above.clear()
            known.told = dict.fromkeys(processes or (), known.low)
            self._release(known, False, known.stable)
            self._release(known, True, known.stable)
            self.changed.discard(known.line)
        if processes is None:
            self._processes_of.pop(group, None)
            self._known.pop(group, None)
            self._own_in.pop(group, None)
        else:
            self._processes_of[group] = processes

    def _release(self, known: _Known, own: bool, stable: int) -> None:
        """Forget messages of a line until one comes that is not stable."""
        waiting = known.own if own else known.kept
        messages = self.own if own else self.kept
        count = 0
        size = 0
        while count < len(waiting.positions) and waiting.positions[count] < stable:
            identity = waiting.identities[count]
            count += 1
            if own:
                size += _size(messages[identity][0])
            if self._groups_left and self._is_awaited_elsewhere(own, identity):
                continue
            if identity in messages:
                del messages[identity]
        if not count:
            return
        del waiting.identities[:count]
        del waiting.positions[:count]
        if own:
            group = known.line[0]
            number, total = self._own_in.pop(group)
            if number > count:
                self._own_in[group] = (number - count, total - size)
        else:
            self._forget_in_log()

    def _forget_in_log(self) -> None:
        log = self.log
        count = 0
        while count < len(log) and log[count][0] not in self.kept:
            count += 1
        if count:
            del log[:count]

    def _is_awaited_elsewhere(self, own: bool, identity: MessageId) -> bool:
        """A message that has become stable in one of its groups is not yet so in another."""
        left = self._groups_left.get((own, identity), 0)
        if left > 1:
            self._groups_left[own, identity] = left - 1
            return True
        self._groups_left.pop((own, identity), None)
        return False
