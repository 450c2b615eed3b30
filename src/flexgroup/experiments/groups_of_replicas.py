"""Settings that experiments with groups of replicas have in common: sizes, runs, series."""

from __future__ import annotations

from collections.abc import Iterable

from flexgroup.experiments.experiment import Grid
from flexgroup.experiments.figure import Series, name_of
from flexgroup.experiments.findings import Findings, Point
from flexgroup.worlds.simulator.fault_plans import Faults

PLAIN = ("skeen", "df", "dcc")
"""Those that have one process where others have a group."""
CFT = ("leader paxos skeen-cft", "leader paxos df-cft", "leader paxos dcc-cft")
"""The same between groups of replicas of which some crash."""
PAXOS = "leader paxos"

UNIT = "unit"
REPLICAS = 3


def members(stack: str, groups: int, replicas: int = REPLICAS) -> int:
    """Return how many processes groups of this stack consist of."""
    return groups if stack in PLAIN else groups * replicas


def the(findings: Findings, stack: str, workload: str, processes: int, liars: str = "") -> Point:
    """Return the point with the most clients."""
    return findings.curve(stack, workload, processes, liars=liars)[-1]


def in_groups(
    stacks: Iterable[str],
    groups: int,
    workloads: tuple[str, ...],
    clients: tuple[int, ...],
    seeds: tuple[int, ...],
    duration: float,
    network: str = "lan",
    replicas: int = REPLICAS,
    faults: Faults | None = None,
    rate: float = 0.0,
    near: bool = False,
    drain: float = 10.0,
) -> list[Grid]:
    """Return runs of so many groups; protocols that know of none have a process for each."""
    return [
        Grid(
            (stack,),
            workloads,
            clients,
            seeds,
            duration,
            (members(stack, groups, replicas),),
            (network,),
            faults or Faults(),
            drain=drain,
            groups="" if stack in PLAIN else f"{groups}x{replicas}",
            links=near_links(groups, 1 if stack in PLAIN else replicas) if near else "",
            rate=rate,
        )
        for stack in stacks
    ]


def near_links(groups: int, replicas: int) -> str:
    """Return links that let each of as many clients be close to all members of one group."""
    processes = groups * replicas
    return " ".join(
        f"{processes + group}:{group * replicas + member}=1us"
        for group in range(groups)
        for member in range(replicas)
    )


def series(
    stacks: Iterable[str],
    groups: int,
    *workloads: str,
    network: str = "lan",
    replicas: int = REPLICAS,
    lost: str = "",
    liars: str = "",
    under: str = "",
) -> tuple[Series, ...]:
    return tuple(
        Series(
            name_of(stack), stack, workload, members(stack, groups, replicas), network, lost,
            liars, under,
        )
        for workload in workloads
        for stack in stacks
    )  # fmt: skip
