"""Who multicast and delivered what, in the formats of two other kinds of checkers.

*Elle* (Kingsbury and Alvaro 2020) looks for cycles among transactions on lists, and reads histories
in JSON through elle-cli. Each set of destinations is a list, each multicast appends to that of its
destinations, and after each delivery its process reads all lists that it is a destination of. In a
total order, these reads are states of one sequence; so a history is serializable for Elle if the
order is acyclic and has no gaps, and a cycle of deliveries is one of reads and appends.

*CS-451*, a course of EPFL on distributed algorithms, has a file for each process: `b 3` for its
third broadcast, `d 2 3` for a delivery of the third of process 2. Many checkers of broadcasts read
that. Processes, and messages of one process, count from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from flexgroup.core.errors import UsageError
from flexgroup.diagram.events import TraceEvent
from flexgroup.export.told import in_order
from flexgroup.trace.schema import DELIVER, MULTICAST

MOST_DELIVERIES = 5_000
"""Elle is told all that a process has delivered, at each delivery."""


def elle_history(events: Iterable[TraceEvent]) -> Iterator[str]:
    """Yield the lines of a history that elle-cli reads, as its model `list-append`."""
    ordered = [event for event in in_order(events) if event.kind in (MULTICAST, DELIVER)]
    deliveries = sum(event.kind == DELIVER for event in ordered)
    if deliveries > MOST_DELIVERIES:
        raise UsageError(
            f"the run has {deliveries} deliveries, and a history for Elle grows with their square; "
            f"simulate a run with up to {MOST_DELIVERIES}"
        )
    numbers: dict[str, int] = {}
    lists: dict[tuple[int, ...], int] = {}
    list_of: dict[str, int] = {}
    for event in ordered:
        if event.kind == MULTICAST and event.message is not None:
            numbers.setdefault(event.message, len(numbers) + 1)
            list_of[event.message] = lists.setdefault(event.destinations, len(lists) + 1)
    read: dict[int, dict[int, list[int]]] = {}
    index = 0
    for event in ordered:
        message = event.message
        if message not in numbers:
            continue
        if event.kind == MULTICAST:
            done: list[list[object]] = [["append", list_of[message], numbers[message]]]
            begun = done
        else:
            mine = [key for members, key in lists.items() if event.process in members]
            state = read.setdefault(event.process, {key: [] for key in mine})
            state.setdefault(list_of[message], []).append(numbers[message])
            done = [["r", key, values] for key, values in state.items()]
            begun = [["r", key, None] for key in state]
        for kind, value in (("invoke", begun), ("ok", done)):
            told = {"index": index, "process": event.process, "type": kind, "value": value}
            yield f"{',' if index else '['}{json.dumps(told, separators=(',', ':'))}"
            index += 1
    yield "]" if index else "[]"


def cs451_logs(events: Iterable[TraceEvent], processes: int) -> dict[str, Sequence[str]]:
    """Return the lines of each file of a run in which all multicast to all."""
    everybody = tuple(range(processes))
    logs: dict[int, list[str]] = {process: [] for process in everybody}
    for event in in_order(events):
        if event.message is None or event.kind not in (MULTICAST, DELIVER):
            continue
        origin, _, number = event.message.partition(".")
        if event.kind == DELIVER:
            logs[event.process].append(f"d {int(origin) + 1} {int(number) + 1}")
            continue
        if event.destinations != everybody or event.process >= processes:
            raise UsageError(
                f"message {event.message} is from {origin} to {event.destinations}, and logs of "
                "CS-451 are of broadcasts by processes to all: simulate with --workload broadcast, "
                "--clients 0 and --cast all@0s"
            )
        logs[event.process].append(f"b {int(number) + 1}")
    return {f"{process + 1}.output": lines for process, lines in logs.items()}
