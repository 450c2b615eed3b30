"""When the source crashes in figure 4 of the paper on atomic broadcast over VCube: two readings.

The source sends at 0 and crashes right afterwards; the paper does not say when that is. It may be
as soon as its own copies have left, which takes All2All a copy for each process and the other a
copy for each cluster; or at one instant in both, while All2All is still sending. That decides from
which size on All2All is the slower one. The text says 512, the conclusion more than 256.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.findings import Findings
from flexgroup.experiments.vcube import AT_ONCE, SOURCE, FaultsOf, source_after_its_copies
from flexgroup.experiments.vcube_claims import (
    ALL2ALL,
    AS_IN_THE_PAPER,
    CROSSING_WITH_FAULTS,
    HIERARCHICAL,
    PUBLISHED,
    SOURCE_LOST,
    crosses,
)
from flexgroup.worlds.simulator.fault_plans import Faults

STACKS = (HIERARCHICAL, PUBLISHED, ALL2ALL)
SIZES = {SMALL: (64, 32, 16, 8), PAPER: (512, 256, 128, 64, 32, 16, 8)}


def with_the_trees(stack: str, size: int) -> Faults:
    """Process 0 crashes in both when the last copy of the hierarchical algorithm has left."""
    return source_after_its_copies(HIERARCHICAL, size)


INSTANTS: Mapping[str, FaultsOf] = {
    "each after its own copies": source_after_its_copies,
    "both at the same instant": with_the_trees,
}


def crossing(findings: Findings, instant: str, stack: str, size: int) -> Judgement:
    """Tell where the two cross, of the runs in which the source crashes at that instant."""
    faults_of = INSTANTS[instant]
    chosen = [
        point
        for point in findings.points
        if point.row["faults"] == faults_of(point.stack, point.processes).text
    ]
    return crosses(replace(findings, points=chosen), size, SOURCE_LOST, stack)


def _grids(sizes: tuple[int, ...]) -> list[Grid]:
    return [
        Grid(
            (stack,), ("broadcast",), (0,), (1,), 1.0, (size,), (AS_IN_THE_PAPER,),
            faults_of(stack, size), AT_ONCE,
        )
        for size in sizes
        for stack in STACKS
        for faults_of in INSTANTS.values()
    ]  # fmt: skip


SOURCE_INSTANTS = Experiment(
    "vcube-source-instant",
    "Atomic broadcast over VCube: when the source crashes, and where the two cross",
    SOURCE,
    {scale: _grids(sizes) for scale, sizes in SIZES.items()},
    claims=tuple(
        Claim(
            f"crossing at {size}, {instant}{form}",
            section,
            f"All2All takes longer from {size} processes on: the source crashes, {instant}{form}",
            partial(crossing, instant=instant, stack=stack, size=size),
            AS_IN_THE_PAPER,
            size,
        )
        for stack, form in ((HIERARCHICAL, ""), (PUBLISHED, ", as published"))
        for instant in INSTANTS
        for size, section in (
            (CROSSING_WITH_FAULTS, "5.2, figure 4b"),
            (CROSSING_WITH_FAULTS // 2, "6"),
        )
    ),
)
