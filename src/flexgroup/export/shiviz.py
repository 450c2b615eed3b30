"""A run for ShiViz, which draws space-time diagrams from vector clocks.

The first line is the expression by which ShiViz reads the rest, the second would part several runs.
Each event is a line of words, and a line with the process and its clock. The clock of a process
counts its events; a receive takes over what the send knew. So the happened-before relation that
ShiViz draws is that of the packets, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from flexgroup.diagram.events import Place, TraceEvent
from flexgroup.export.told import in_order, name_of_process, words_of
from flexgroup.trace.names import Names
from flexgroup.trace.schema import RECEIVE, SEND

HEAD = (r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})", "")


def shiviz_log(events: Iterable[TraceEvent], names: Names) -> Iterator[str]:
    """Yield the lines of a log that ShiViz reads."""
    yield from HEAD
    clocks: dict[int, dict[int, int]] = {}
    at_send: dict[Place, dict[int, int]] = {}
    for event in in_order(events):
        clock = clocks.setdefault(event.process, {})
        clock[event.process] = clock.get(event.process, 0) + 1
        if event.kind == RECEIVE and event.peer is not None and event.sent is not None:
            for process, count in at_send.get((event.peer, event.sent), {}).items():
                clock[process] = max(clock.get(process, 0), count)
        if event.kind == SEND:
            at_send[event.place] = dict(clock)
        told = {name_of_process(process, names): clock[process] for process in sorted(clock)}
        yield words_of(event, names)
        yield f"{name_of_process(event.process, names)} {json.dumps(told)}"
