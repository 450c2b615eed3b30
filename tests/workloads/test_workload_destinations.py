"""What every workload promises, whatever its kind."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.workloads import Workload, parse_workload

# The first messages of client 3 among 16 processes, from a generator seeded with 7.
RECORDED = {
    "random:4": [(1, 2, 4, 9), (0, 5, 6, 8), (0, 1, 6, 15), (1, 3, 5, 11)],
    "random:N": [(0, 1, 5, 7, 13, 15), (0, 1, 3, 5, 9, 10, 12, 14, 15), tuple(range(16)), (3,)],
    "tpcc": [(3,), (3,), (3,), (3,)],
    "partitioned:2x8": [(4, 5), (2, 3), (10, 11), (0, 1)],
    "partitioned:4x4@0.05": [(0, 1, 2, 3), (0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)],
    "broadcast": [tuple(range(16))] * 4,
}

PRINT_MANY_MESSAGES = """
import sys
from random import Random
from flexgroup.workloads import parse_workload
for spec in sys.argv[1:]:
    workload, rng = parse_workload(spec, 16), Random(7)
    print(spec, [workload.next(client, rng) for client in range(500)])
"""


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    group_size = draw(st.integers(1, 12))
    groups = draw(st.integers(1, 12))
    processes = group_size * groups
    base = draw(
        st.sampled_from(
            [
                f"random:{draw(st.integers(1, processes))}",
                "random:N",
                "tpcc",
                f"partitioned:{group_size}x{groups}",
                "broadcast",
            ]
        )
    )
    share = draw(st.sampled_from(["", "@0", "@0.02", "@0.5", "@1"]))
    return parse_workload(base + share, processes)


def destinations(workload: Workload, seed: int, clients: int = 8) -> list[tuple[int, ...]]:
    rng = Random(seed)
    return [workload.next(client, rng) for client in range(clients) for _ in range(5)]


@given(workloads(), st.integers(0, 2**32))
def test_destinations_are_ascending_distinct_processes(workload: Workload, seed: int) -> None:
    for chosen in destinations(workload, seed):
        assert len(chosen) >= 1
        assert list(chosen) == sorted(set(chosen))
        assert set(chosen) <= set(range(workload.processes))


@given(workloads(), st.integers(0, 2**32))
def test_a_seed_gives_the_same_messages_again(workload: Workload, seed: int) -> None:
    again = parse_workload(workload.name, workload.processes)
    assert destinations(workload, seed) == destinations(again, seed)


@given(workloads())
def test_payloads_are_64_bytes(workload: Workload) -> None:
    assert workload.payload_bytes == 64


@pytest.mark.parametrize("spec", RECORDED)
def test_a_seed_names_the_same_run_in_every_release(spec: str) -> None:
    workload, rng = parse_workload(spec, 16), Random(7)
    assert [workload.next(3, rng) for _ in range(4)] == RECORDED[spec]


def test_the_hash_seed_of_the_interpreter_changes_nothing() -> None:
    def run(hash_seed: str) -> str:
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.check_output(
            [sys.executable, "-c", PRINT_MANY_MESSAGES, *RECORDED],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
            text=True,
        )

    assert run("1") == run("2")
