"""The workloads by name: what may be written on the command line, and what it means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from flexgroup.core.errors import UsageError
from flexgroup.workloads.fixed_sets import ALTERNATING, CONSECUTIVE, Broadcast, Partitioned
from flexgroup.workloads.random_sets import Mixed, RandomAny, RandomFixed
from flexgroup.workloads.tpcc import Tpcc
from flexgroup.workloads.workload import Workload


class WorkloadKind(NamedTuple):
    form: str
    example: str
    description: str


KINDS = (
    WorkloadKind("random:K", "random:4", "K processes, any K of them alike"),
    WorkloadKind("random:N", "random:N", "a random number of processes, from one to all"),
    WorkloadKind("tpcc", "tpcc", "the warehouses that TPC-C transactions touch, one a process"),
    WorkloadKind("partitioned:GxC", "partitioned:4x4", "one of C fixed groups of G processes"),
    WorkloadKind("alternating:GxC", "alternating:4x4", "the same, of every C-th process"),
    WorkloadKind("broadcast", "broadcast", "all processes"),
    WorkloadKind("KIND@P", "partitioned:4x4@0.02", "as KIND, but a share P goes to random sets"),
)

_WITHOUT_ARGUMENT: dict[str, Callable[[int], Workload]] = {"tpcc": Tpcc, "broadcast": Broadcast}

_COUNT = re.compile(r"[0-9]{1,9}")
_GROUPS = re.compile(r"([0-9]{1,9})x([0-9]{1,9})")
_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?")


def parse_workload(spec: str, processes: int) -> Workload:
    """The workload that a spec such as `partitioned:4x4@0.02` stands for."""
    if processes < 1:
        raise UsageError(f"{processes} processes have no workload: ask for at least one process")
    base, at, probability = spec.partition("@")
    kind, colon, argument = base.partition(":")
    if kind == "random":
        workload = _parse_random(spec, argument, processes)
    elif kind in (CONSECUTIVE, ALTERNATING):
        workload = _parse_groups(spec, kind, argument, processes)
    elif kind not in _WITHOUT_ARGUMENT:
        forms = ", ".join(known.form for known in KINDS)
        raise UsageError(f"there is no workload {spec!r}: write one of {forms}")
    elif colon:
        raise UsageError(
            f"workload {spec!r}: nothing may follow {kind} but @P: write {kind} or {kind}@0.02"
        )
    else:
        workload = _WITHOUT_ARGUMENT[kind](processes)
    if not at:
        return workload
    if not _DECIMAL.fullmatch(probability):
        raise UsageError(
            f"workload {spec!r}: {probability!r} is not a probability: "
            f"write a number from 0 to 1, such as {workload.name}@0.02 for 2% random sets"
        )
    return Mixed(workload, float(probability))


def _parse_random(spec: str, argument: str, processes: int) -> Workload:
    if argument == "N":
        return RandomAny(processes)
    if not _COUNT.fullmatch(argument):
        raise UsageError(
            f"workload {spec!r}: {argument!r} is not a number of destinations: "
            "write one, such as random:4, or random:N for any number"
        )
    return RandomFixed(processes, int(argument))


def _parse_groups(spec: str, layout: str, argument: str, processes: int) -> Workload:
    split = _GROUPS.fullmatch(argument)
    if split is None:
        raise UsageError(
            f"workload {spec!r}: {argument!r} does not split processes into groups: "
            f"write nodes per group, x, number of groups, such as {layout}:2x8"
        )
    return Partitioned(processes, int(split[1]), int(split[2]), layout)
