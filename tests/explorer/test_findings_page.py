"""docs/findings.md: every protocol has a row, and what the rows say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variants import published_mended

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"

CELLS = 6
ROWS = [
    [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| `[^|]+` \| (fifo|reordering) \|", line)
]


def scope_of(channels: str, text: str) -> Scope:
    """`3: {0,1} 1:{0,2}` is three processes, a message of a client, and one of process 1; views
    that they are told of may follow, as in `, views {0,1} {0}`, and sizes of groups of replicas, as
    in `, replicas 3`."""
    processes, _, rest = text.partition(": ")
    rest, _, sizes = rest.partition(", replicas ")
    messages, _, views = rest.partition(", views ")
    casts: list[PlannedCast] = []
    client = int(processes)
    for origin, members in re.findall(r"(?:(\d+):)?\{([\d,]+)\}", messages):
        destinations = tuple(map(int, members.split(",")))
        casts.append(PlannedCast(int(origin) if origin else client, destinations))
        client += not origin
    told = tuple(tuple(map(int, view.split(","))) for view in re.findall(r"\{([\d,]+)\}", views))
    replicas = replicas_of_sizes([int(size) for size in sizes.split(",") if size])
    fifo = channels == "fifo"
    return Scope(int(processes), tuple(casts), fifo=fifo, views=told, replicas=replicas)


def test_every_protocol_has_a_row() -> None:
    """A protocol that is added to the table of protocols is put on trial as well."""
    tried = {layer.partition("/")[0] for row in ROWS for layer in row[0].split()}
    assert set(PROTOCOLS) <= tried


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[2]}")
def test_the_row_is_true(row: list[str]) -> None:
    assert len(row) == CELLS
    stack, channels, text, states, ends, verdict = row
    scope = scope_of(channels, text)
    plan = parse_stack(stack)
    outcome = explore(plan, scope, keep_going=True)
    assert outcome.exhausted
    assert (f"{outcome.states:,}", f"{outcome.terminals:,}") == (states, ends)
    if verdict == "holds":
        assert not outcome.violations
        return
    what, _, steps = verdict.partition(" in ")
    name = "validity" if what == "deadlock" else what
    shortest = explore(plan, scope, SearchOptions(reduce=False, properties=(name,))).violations[0]
    assert shortest.shortest
    assert steps == f"{shortest.steps} steps"


FAULT_1 = from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))
FAULT_2 = from_clients(4, (0, 2), (2, 3), (0, 1, 3), (0, 1, 2, 3))
FAULTS_2_AND_3 = from_clients(5, (0, 3), (0, 1, 4), (0, 1, 3, 4))
FAULT_3 = from_clients(5, (0, 4), (0, 1, 3, 4), (0, 1, 3, 4))
FAULT_4 = from_clients(4, (0, 2), (0, 1, 3), (0, 1, 3), (2, 3))


@pytest.mark.parametrize(
    ("scope", "mended", "last_handled", "broken"),
    [
        (FAULT_1, (12, 25), True, "acyclic order"),
        (FAULT_1, (33,), False, ""),
        (FAULT_2, (33, 25), True, "acyclic order"),
        (FAULT_2, (12,), False, ""),
        (FAULTS_2_AND_3, (33,), True, "validity"),
        (FAULTS_2_AND_3, (12,), False, ""),
        (FAULTS_2_AND_3, (25,), False, ""),
        (FAULT_3, (12, 33), False, "validity"),
        (FAULT_3, (12, 33, 25), False, ""),
        (FAULT_4, (12, 33, 25), False, "acyclic order"),
        (FAULT_4, (12, 33, 25), True, ""),
    ],
)
def test_which_line_is_at_fault(
    scope: Scope, mended: tuple[int, ...], last_handled: bool, broken: str
) -> None:
    """A scope that still fails with all other lines mended shows the fault of the one left."""
    outcome = explore(published_mended(*mended, last_handled=last_handled), scope, keep_going=True)
    assert outcome.exhausted
    assert (broken in outcome.broken) if broken else not outcome.broken
