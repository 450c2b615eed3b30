"""What has to hold in every state of a cluster, and where nothing can happen any more."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.message import message_id
from flexgroup.membership.configuration import Configuration
from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.server import (
    Cast,
    Delivery,
    DeliveryAlone,
    Ended,
    Entry,
    Era,
    Failed,
    Installed,
    Marked,
    Restarted,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.machine import cast_entry, delivery_entry, is_cast
from flexgroup.worlds.explorer.property_checks import (
    AGREEMENT,
    CAUSAL,
    SAFETY,
    VALIDITY,
    PropertyChecks,
)
from flexgroup.worlds.network.faults import Faults

CONDUCT = "conduct"
ONE_CONFIGURATION = "agreement on configurations"
INTEGRITY = "integrity"
VIRTUAL_SYNCHRONY = "virtual synchrony"
PRIMARY_PARTITION = "primary partition"
PROGRESS = "progress"

Logs = Sequence[tuple[Entry, ...]]


class ClusterChecks:
    """Checks the logs of all servers, and remembers what it has checked."""

    def __init__(self, scope: ClusterScope) -> None:
        self._scope = scope
        promised = parse_stack(scope.stack).promises(Faults().channels())
        self._destinations: list[tuple[int, ...]] = []
        names: list[str] = [name for name in [*SAFETY, VALIDITY, AGREEMENT] if name in promised]
        causal = [name for name in names if name == CAUSAL]
        others = [name for name in names if name != CAUSAL]
        self._orders = PropertyChecks(others, self._destinations, {}, [])
        self._causal_order = PropertyChecks(causal, self._destinations, {}, [])
        self._checked: dict[tuple[object, ...], list[str]] = {}

    def broken(self, key: tuple[object, ...], logs: Logs, crashed: Sequence[bool]) -> list[str]:
        """The properties that a state breaks; `key` stands for these logs."""
        found = self._checked.get(key)
        if found is None:
            found = self._checked[key] = self._broken(logs, crashed)
        return found

    def _broken(self, logs: Logs, crashed: Sequence[bool]) -> list[str]:
        broken = []
        if any(isinstance(entry, Failed) for log in logs for entry in log):
            broken.append(CONDUCT)
        if any(isinstance(entry, DeliveryAlone) for log in logs for entry in log):
            broken.append(PRIMARY_PARTITION)
        if not _one_configuration(logs):
            broken.append(ONE_CONFIGURATION)
        if not _once_and_where_addressed(logs):
            broken.append(INTEGRITY)
        if not _virtual_synchrony(logs):
            broken.append(VIRTUAL_SYNCHRONY)
        histories, failed = self._histories(logs, crashed)
        going_on = [
            tuple([entry for entry in history if is_cast(entry)]) if failed[at] else history
            for at, history in enumerate(histories)
        ]
        key = (len(self._checked),)
        broken += self._orders.safety(key, going_on)
        # What a server had delivered that does not go on still precedes what it sent then.
        return broken + self._causal_order.safety(key, histories)

    def undelivered(self, logs: Logs, crashed: Sequence[bool]) -> list[str]:
        """What is broken if nothing happens after this."""
        histories, failed = self._histories(logs, crashed)
        return self._orders.completion(histories, failed, failed)

    def _histories(
        self, logs: Logs, crashed: Sequence[bool]
    ) -> tuple[list[tuple[int, ...]], list[bool]]:
        """What servers multicast and delivered, as the checks of the explorer have it.

        Agreement is among those that go on. What a server sent that does not may be lost, although
        something that it sent later, to others, is not: it only has to be in order where it is
        delivered. So it is with what was sent to a server that does not go on.
        """
        failed = [has_failed(logs, crashed, server) for server in range(1, len(logs) + 1)]
        casts = {
            entry.action: (server, entry)
            for server, log in enumerate(logs)
            for entry in log
            if isinstance(entry, Cast)
        }
        identities = {}
        counts = [0] * len(logs)
        for server, log in enumerate(logs):
            for entry in log:
                if isinstance(entry, Cast):
                    identities[entry.action] = message_id(server, counts[server])
                    counts[server] += 1
        delivered = [{entry.action for entry in log if isinstance(entry, Delivery)} for log in logs]
        histories = []
        for log in logs:
            history = []
            for entry in log:
                if isinstance(entry, Cast):
                    origin, _ = casts[entry.action]
                    destinations = tuple(
                        server - 1
                        for server in entry.destinations
                        if entry.action in delivered[server - 1]
                        or not (failed[origin] or failed[server - 1])
                    )
                    place = self._place(destinations)
                    history.append(cast_entry(identities[entry.action], place))
                elif isinstance(entry, Delivery):
                    history.append(delivery_entry(identities[entry.action]))
            histories.append(tuple(history))
        return histories, failed

    def _place(self, destinations: tuple[int, ...]) -> int:
        if destinations not in self._destinations:
            self._destinations.append(destinations)
        return self._destinations.index(destinations)


def has_failed(logs: Logs, crashed: Sequence[bool], server: int) -> bool:
    """Whether a server does not go on: it has crashed or ended, or others went on without it."""
    ends = Ended | Failed | Restarted
    if crashed[server - 1] or any(isinstance(entry, ends) for entry in logs[server - 1]):
        return True
    return any(
        isinstance(entry, Installed)
        and all(other.number != server for other in entry.configuration.servers)
        for log in logs
        for entry in log
    )


def _one_configuration(logs: Logs) -> bool:
    by_number: dict[int, Configuration] = {}
    for log in logs:
        number = 0
        for entry in log:
            if isinstance(entry, Restarted):
                number -= 1  # it has the same one once more
            elif isinstance(entry, Installed):
                configuration = entry.configuration
                if number and configuration.number != number + 1:
                    return False
                number = configuration.number
                if by_number.setdefault(number, configuration) != configuration:
                    return False
    return True


def _once_and_where_addressed(logs: Logs) -> bool:
    casts = {entry.action: entry for log in logs for entry in log if isinstance(entry, Cast)}
    for server, log in enumerate(logs, 1):
        had = set()
        for entry in log:
            if isinstance(entry, Delivery):
                if entry.action in had or entry.action not in casts:
                    return False
                if server not in casts[entry.action].destinations:
                    return False
                had.add(entry.action)
    return True


def _virtual_synchrony(logs: Logs) -> bool:
    """Whoever goes from one era of a group to the next has delivered the same in it."""
    left_by: dict[Era, set[int]] = {}
    for log in logs:
        delivered: dict[Era, set[int]] = {}
        eras: dict[int, Era] = {}
        for entry in log:
            if isinstance(entry, Delivery):
                for era in entry.eras:
                    delivered.setdefault(era, set()).add(entry.action)
            elif isinstance(entry, Restarted):
                eras = {}
            elif isinstance(entry, Installed | Marked):
                now = {era[0]: era for era in entry.eras}
                for group, era in eras.items():
                    if now.get(group) != era:
                        had = delivered.get(era, set())
                        if left_by.setdefault(era, had) != had:
                            return False
                eras = now
    return True
