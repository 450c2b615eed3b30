"""How the papers call stacks, and series of figures that compare them."""

from __future__ import annotations

from flexgroup.report.figure import Figure, Kind, Series

__all__ = ["Figure", "Kind", "Series", "compared", "name_of"]

NAMES = {
    "skeen": "Skeen",
    "df": "D&F",
    "dcc": "DCC",
    "dcc/rv": "DCC/RV",
    "dcc-published": "DCC as published",
    "dcc-wide": "DCC, wider rule",
    "vcube-atomic": "hierarchical",
    "vcube-atomic-published": "hierarchical, as published",
    "all2all-atomic": "All2All",
    "leader paxos": "Paxos",
    "leader paxos skeen-cft": "Skeen-cft",
    "leader paxos df-cft": "D&F-cft",
    "leader paxos dcc-cft": "DCC-cft",
    "leader paxos ft-abcast": "ft-abcast",
    "leader white-box": "White-Box",
    "leader primcast": "PrimCast",
    "leader protected-memory ramcast": "RamCast",
    "leader best-effort": "no order",
    "pbft": "PBFT",
    "pbft df-bft": "D&F-bft",
    "pbft dcc-bft": "DCC-bft",
    "best-effort pbft dcc-bft/sealed": "DCC-bft, certificates",
    "pbft byzcast": "ByzCast",
    "pbft byzcast/binary": "ByzCast, binary",
    "pbft byzcast/chain": "ByzCast, chain",
}
"""Stacks as the papers call them; others go by their own name."""


def name_of(stack: str) -> str:
    return NAMES.get(stack, stack)


def compared(stacks: tuple[str, ...], *workloads: str) -> tuple[Series, ...]:
    """Return each stack under each workload."""
    return tuple(
        Series(name_of(stack), stack, workload) for workload in workloads for stack in stacks
    )
