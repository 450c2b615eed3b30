"""Every world writes the same journal: what one recorded, the bench records too if told the same.

A run is taken from a world, and all that its processes were told is told to the processes of a
bench, each packet in its turn. All columns must then be the same but those that only a clock knows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from random import Random
from typing import Any

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.message import Message, message_id
from flexgroup.core.state import fingerprint
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.trace import schema
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.rows import COLUMNS
from flexgroup.trace.writer import blocks_by_kind
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer.machine import is_cast, message_in
from flexgroup.worlds.explorer.paths import schedule_of
from flexgroup.worlds.explorer.schedule import stage
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search import Transition
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults as NoFaults
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

Row = dict[str, Any]

SIZE = 4
ASKED_FOR = (schema.SEND, schema.DELIVER)
STACKS = "best-effort,skeen,dcc,dcc-published/any,fifo dcc,reliable causal,atomic,abcast".split(",")


class Rows(Sink):
    """Keeps the rows of a run, with texts and destinations in place of their numbers."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        for kind, block in blocks_by_kind(columns):
            for values in zip(*(block[name].tolist() for name in COLUMNS), strict=True):
                row: Row = dict(zip(COLUMNS, values, strict=True))
                texts = destination_sets if kind == schema.MULTICAST else labels
                row |= {"kind": kind, "label": texts[row["label"]]}
                del row["time"], row["queued"]
                self._rows.append(row)

    def histories(self) -> dict[int, list[Row]]:
        """The rows of each process, in order."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(self._rows, key=lambda row: (row["process"], row["step"])):
            found[row["process"]].append(row)
        return found


def retold(plan: StackPlan, histories: dict[int, list[Row]]) -> dict[int, list[Row]]:
    """The histories of a bench that is told what these processes were told."""
    rows = Rows()
    recorder = Recorder(rows)
    bench = Bench(plan, SIZE, journal=recorder)
    left = {
        process: [row for row in history if row["kind"] not in ASKED_FOR]
        for process, history in histories.items()
    }
    moved = True
    while moved:
        moved = False
        for process, told in left.items():
            while told and tell(bench, process, told[0]):
                del told[0]
                moved = True
    assert not any(left.values())
    recorder.flush()
    return rows.histories()


def tell(bench: Bench, process: int, row: Row) -> bool:
    """Let it happen on the bench, unless a packet is not there yet."""
    kind, peer = row["kind"], row["peer"]
    if kind == schema.RECEIVE:
        steps = [sent.step for sent in bench.channels.get((peer, process), [])]
        if row["sent"] not in steps:
            return False
        place = steps.index(row["sent"])
        bench.duplicate(peer, process, place)  # it may arrive again
        bench.deliver(peer, process, place)
        return True
    detail = json.loads(row["label"][1] or "{}") if kind != schema.MULTICAST else {}
    if kind == schema.MULTICAST:
        m = Message(row["message"], row["label"], bytes(row["payload_bytes"]))
        if process >= SIZE:
            assert bench.cast(process, m.destinations, bytes(row["payload_bytes"])) == m
        else:  # the world gave it a number; it may have given one to a process that was down
            bench.hosts[process].cast(bench.now, m)
    elif kind == schema.TIMER:
        bench.end_timer(process, detail["level"], detail["name"])
    elif kind == schema.CHOICE:
        bench.choose(process, detail["chosen"])
    elif kind == schema.SUSPECT and detail["suspected"]:
        bench.suspect(process, peer)
    elif kind == schema.SUSPECT:
        bench.trust(process, peer)
    elif kind == schema.CRASH:
        bench.crash(process)
    else:
        assert kind == schema.RECOVER
        bench.recover(process)
    return True


def assert_the_bench_agrees(plan: StackPlan, rows: Rows) -> None:
    histories = rows.histories()
    assert sum(map(len, histories.values())) > 20
    assert {row["kind"] for history in histories.values() for row in history} >= {*ASKED_FOR}
    assert retold(plan, histories) == histories


@pytest.mark.parametrize("stack", STACKS)
def test_the_simulator(stack: str) -> None:
    rows = Rows()
    run_scenario(Scenario(stack, SIZE, 3, "random:2", "lan", duration=0.003), rows)
    assert_the_bench_agrees(parse_stack(stack), rows)


@pytest.mark.parametrize("stack", ["best-effort", "reliable causal", "vcube-reliable"])
def test_the_simulator_with_faults(stack: str) -> None:
    """Where handling takes no time, nobody crashes in the middle of it."""
    rows = Rows()
    faults = Faults(
        crashes=("1@5.5ms", "2@7.5ms"),
        recoveries=("1@9.5ms",),
        suspicions=("0:2@1ms-2.5ms",),
        detection="1ms",
    )
    network = "unit" if stack == "vcube-reliable" else "unit:loss=0.1,duplication=0.1"
    scenario = Scenario(stack, SIZE, 3, "random:2", network, 0.02, rate=500.0, faults=faults)
    run_scenario(scenario, rows)
    kinds = {row["kind"] for history in rows.histories().values() for row in history}
    assert kinds >= {schema.CRASH, schema.RECOVER, schema.SUSPECT}
    assert_the_bench_agrees(parse_stack(stack), rows)


@pytest.mark.parametrize("stack", STACKS)
def test_the_network(stack: str) -> None:
    plan = parse_stack(stack)
    rows = Rows()
    recorder = Recorder(rows)
    random = Random(1)
    domains = [
        Domain(plan.build(p, SIZE), Codec(plan.layers), SIZE, NoFaults(), recorder)
        for p in range(SIZE)
    ]
    for domain in domains:
        domain.start(0)
    for now in range(400):
        if now < 8:
            to = tuple(sorted(random.sample(range(SIZE), 2)))
            domains[now % SIZE].cast(now, Message(message_id(now % SIZE, now // SIZE), to, b"abc"))
        source, target = random.sample(domains, 2)
        data = bytes(source.outgoing[target.process])
        source.outgoing[target.process].clear()
        target.receive(now, source.process, data, 0)
        source.end_timers(now)
    recorder.flush()
    assert_the_bench_agrees(plan, rows)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("stack", "bounds"),
    [
        pytest.param("dcc-published/any", Bounds(), id="choices"),
        pytest.param("vcube-reliable", Bounds(crashes=1, suspicions=1), id="crashes"),
        pytest.param("reliable", Bounds(losses=2, duplicates=2, timers=4), id="losses"),
    ],
)
def test_the_explorer(stack: str, bounds: Bounds, seed: int) -> None:
    """It keeps no journal; so the state of each process is compared, after any walk."""
    plan = parse_stack(stack)
    casts = tuple(
        PlannedCast(origin, to) for origin, to in ((0, (0, 1)), (1, (0, 1, 2)), (2, (1, 2)))
    )
    scope = Scope(3, casts, bounds=bounds)
    search = new_search(plan, scope, SearchOptions(reduce=False, symmetry=False))
    random = Random(seed)
    state = search.first
    path: list[Transition] = []
    while len(path) < 40 and (following := search.transitions_from(state)):
        path.append(random.choice(following))
        state = path[-1].after
    assert len(path) > 5
    bench = stage(plan, scope, schedule_of(search, scope, path))
    for process in range(scope.processes):
        local = search.machine.locals[state[2 * process]]
        there, here = local.host, bench.hosts[process]
        assert fingerprint(there.stack) == fingerprint(here.stack)
        assert set(there.timers) == set(here.timers)
        assert (there.up, there.stored) == (here.up, here.stored)
        assert len(there.offers) == len(here.offers)
        delivered = [message_in(entry) for entry in local.history if not is_cast(entry)]
        assert delivered == [m.id for m in bench.delivered[process]]
