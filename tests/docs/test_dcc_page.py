"""What docs/protocols/dcc.md claims of both forms of DCC, tried on every schedule."""

from __future__ import annotations

from typing import Any

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.layer import Context
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.schedules import CYCLE, STUCK, System
from flexgroup.worlds.bench import Bench

from ..explorer.variant_parts import loaded_anew, plan_of
from .every_schedule import every_run, outcomes, systems
from .fences import ROOT, tables

PAGE = ROOT / "docs" / "protocols" / "dcc.md"

PUBLISHED = parse_stack("dcc-published")
REPAIRED = parse_stack("dcc")

FAULTS = [
    (System(4, ((0, 2), (0, 2), (0, 3), (2, 3))), CYCLE),
    (System(4, ((0, 2), (2, 3), (0, 1, 3), (0, 1, 2, 3))), CYCLE),
    (System(5, ((0, 3), (0, 1, 4), (0, 1, 3, 4))), STUCK),
]

# Systems in which a message that came slow must not go fast.
CAME_SLOW = [
    (System(5, ((0, 3), (0, 3), (1, 2, 4), (0, 1), (1, 2, 4), (3, 4))), CYCLE),
    (System(6, ((0, 3, 5), (0, 3, 5), (1, 2, 4, 5), (0, 1), (1, 2, 4, 5))), STUCK),
    (System(6, ((0, 3, 5), (0, 3, 5), (0, 3, 5), (1, 2, 4), (0, 1), (1, 2, 4))), STUCK),
]


def named(system: System) -> str:
    return " ".join("{" + ",".join(map(str, to)) + "}" for to in system.messages)


def names_of(cases: list[tuple[System, str]]) -> list[str]:
    return [named(system) for system, _ in cases]


def published_with_lines_12_and_33_mended() -> StackPlan:
    """Every edge into an intermediate node counts; fast is who has the last one's destinations."""
    module = loaded_anew("dcc_published")

    class Mended(module.DccPublished):  # type: ignore[misc, name-defined]
        __slots__ = ("last_dst",)

        def __init__(self, context: Context) -> None:
            super().__init__(context)
            self.last_dst: tuple[int, ...] = ()

        def can_forward(self, m: Any) -> bool:
            its_for_me = self.process in m.m.destinations
            return all(
                m.evc[edge] <= self.EVC[edge] or (s == m.src and its_for_me)
                for s, edge in enumerate(self.incoming)
            )

        def deliver_and_forward(self, m: Any, external: bool) -> None:
            self.deliver(m.m)
            self.update_compare_evc(m, external)
            same = m.m.destinations == self.last_dst
            self.last_dst = m.m.destinations
            self.fast_or_slow(m.m, m.src, module.FAST if same else module.SLOW)

    return plan_of(Mended)


def repaired_but_fast_after_coming_slow() -> StackPlan:
    module = loaded_anew("dcc")
    careful = module.Dcc.deliver_and_forward

    def deliver_and_forward(self: Any, m: Any, src: int, came: int) -> None:
        careful(self, m, src, module.FAST)

    module.Dcc.deliver_and_forward = deliver_and_forward
    return plan_of(module.Dcc)


@pytest.mark.parametrize(("system", "kind"), FAULTS, ids=names_of(FAULTS))
def test_the_published_algorithm_fails_in_this_way_only(system: System, kind: str) -> None:
    assert outcomes(PUBLISHED, system) == {kind}


@pytest.mark.parametrize(("processes", "messages"), [(3, 4), (4, 3), (5, 2)])
def test_nothing_smaller_breaks_the_published_algorithm(processes: int, messages: int) -> None:
    tried = list(systems(processes, messages))
    assert [named(system) for system in tried if outcomes(PUBLISHED, system)] == []
    counted = {
        (row["processes"], row["messages"]): row["systems"]
        for table in tables(PAGE)
        for row in table
        if "systems" in row
    }
    if (str(processes), str(messages)) in counted:
        assert counted[str(processes), str(messages)] == f"{len(tried):,}"


def test_the_third_fault_does_harm_alone() -> None:
    mended = published_with_lines_12_and_33_mended()
    for system, _ in FAULTS:
        assert outcomes(mended, system) == set()
    stuck = System(5, ((0, 4), (0, 1, 3, 4), (0, 1, 3, 4)))
    assert outcomes(mended, stuck) == {STUCK}
    cyclic = System(4, ((0, 2), (0, 1, 3), (0, 1, 3), (2, 3)))
    assert outcomes(mended, cyclic) == {CYCLE}


@pytest.mark.parametrize(("system", "kind"), CAME_SLOW, ids=names_of(CAME_SLOW))
def test_the_first_half_of_the_rule_for_fast_is_not_enough(system: System, kind: str) -> None:
    assert outcomes(repaired_but_fast_after_coming_slow(), system) == {kind}


@pytest.mark.parametrize(
    "system", [system for system, _ in FAULTS + CAME_SLOW], ids=names_of(FAULTS + CAME_SLOW)
)
def test_no_schedule_breaks_the_repaired_algorithm(system: System) -> None:
    assert outcomes(REPAIRED, system) == set()
    assert len(list(every_run(REPAIRED, system))) > 5


@pytest.mark.parametrize(("processes", "messages"), [(3, 4), (4, 3)])
def test_no_schedule_of_any_small_system_breaks_the_repaired_algorithm(
    processes: int, messages: int
) -> None:
    for system in systems(processes, messages):
        assert outcomes(REPAIRED, system) == set()


def header_bytes(stack: str, n: int) -> list[str]:
    """Of the last packet of each of two messages to {0, n-1}."""
    plan = parse_stack(stack)
    codec = Codec(plan.layers)
    bench = Bench(plan, n)
    last = []
    for _ in range(2):
        bench.cast(n, (0, n - 1))
        while bench.channels:
            packet = bench.deliver(*next(iter(bench.channels)))
        last.append(str(codec.measure(packet).header_bytes))
    return last


def test_the_table_of_headers() -> None:
    (table,) = [table for table in tables(PAGE) if "slow, reduced" in table[0]]
    assert [int(row["n"]) for row in table] == list(range(2, 17))
    for row in table:
        n = int(row["n"])
        assert row["counters"] == str(n * (n - 1) // 2)
        assert [row["slow"], row["fast"]] == header_bytes("dcc", n)
        assert [row["slow, reduced"], row["fast, reduced"]] == header_bytes("dcc/rv", n)
        published = header_bytes("dcc-published", n)
        assert [int(row["slow"]) - 1, int(row["fast"]) - 1] == [int(size) for size in published]
