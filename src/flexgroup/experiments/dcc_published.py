"""DCC as published beside the corrected one: what the correction costs, and what it saves.

Published, it breaks where few processes send to small overlapping sets and delays vary much; the
corrected protocol runs the same seeds there.
"""

from __future__ import annotations

from flexgroup.experiments.dcc import PLAIN, SOURCE, against_load, grids
from flexgroup.experiments.dcc_claims import GROUPS, RANDOM
from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import compared
from flexgroup.experiments.findings import Findings, listed

PUBLISHED = "dcc-published"
STACKS = ("dcc", PUBLISHED)


def _ratios(findings: Findings, workloads: tuple[str, ...]) -> list[float]:
    return [findings.peak(PUBLISHED, load) / findings.peak("dcc", load) for load in workloads]


def as_fast_in_groups(findings: Findings) -> Judgement:
    ratios = _ratios(findings, GROUPS)
    return all(abs(ratio - 1) < 0.02 for ratio in ratios), (
        f"published / corrected: {listed(ratios, '.3f')}"
    )


def little_slower_elsewhere(findings: Findings) -> Judgement:
    ratios = _ratios(findings, (*RANDOM, "tpcc"))
    return all(0.95 < ratio < 1.25 for ratio in ratios), (
        f"published / corrected with 2, 4, 8, N, TPC-C: {listed(ratios, '.2f')}"
    )


FORMS = Experiment(
    "dcc-forms",
    "DCC as published and as corrected: what the correction costs",
    SOURCE,
    grids(STACKS, PLAIN),
    tuple(
        against_load(
            f"forms-{workload.replace(':', '-')}",
            f"{workload}: as published and corrected",
            compared(STACKS, workload),
            "ours",
            "The dissertation measured the algorithm as published.",
        )
        for workload in ("random:2", "random:8", "tpcc")
    ),
    (
        Claim("groups", "ours", "in fixed groups the correction costs nothing", as_fast_in_groups),
        Claim("elsewhere", "ours", "elsewhere it costs less than a fifth", little_slower_elsewhere),
    ),
)

CORRECTED = ("dcc", "dcc/rv")
NETWORK = "lan:jitter=1ms"
"""Delays vary by far more than their mean in `lan`, so that messages overtake each other."""

ORDER = "acyclic order"
VALIDITY = "validity"


def breaks(findings: Findings, name: str) -> Judgement:
    violated = findings.runs_violated(PUBLISHED, name)
    return (
        violated > 0,
        f"{name} violated in {violated} of {findings.runs_checked(PUBLISHED, name)} runs",
    )


def corrected_keeps(findings: Findings) -> Judgement:
    runs = sum(findings.runs_checked(stack, ORDER) for stack in CORRECTED)
    violated = sum(count for (stack, *_), count in findings.violated.items() if stack in CORRECTED)
    return violated == 0, f"{violated} violations of any promise in {runs} runs"


def _grids(seeds: int, sizes: tuple[int, ...]) -> list[Grid]:
    return [
        Grid(
            (PUBLISHED, *CORRECTED),
            ("random:2", "random:3"),
            (8, 16),
            tuple(range(1, seeds + 1)),
            0.05,
            sizes,
            (NETWORK,),
        )
    ]


BROKEN = Experiment(
    "dcc-published-broken",
    "DCC as published breaks what it promises",
    "Louzada 2024 (dissertation), algorithms 4.1 to 4.3, as printed",
    {SMALL: _grids(10, (4, 5, 6)), PAPER: _grids(200, (4, 5, 6, 8))},
    claims=(
        Claim(
            "order", "ours; 4.4 claims the opposite",
            "DCC as published delivers messages in a circle",
            lambda findings: breaks(findings, ORDER), NETWORK,
        ),
        Claim(
            "liveness", "ours; 4.4 claims the opposite",
            "DCC as published leaves messages waiting for each other for ever",
            lambda findings: breaks(findings, VALIDITY), NETWORK,
        ),
        Claim(
            "correction", "ours", "the corrected protocol keeps every promise", corrected_keeps,
            NETWORK,
        ),
    ),
)  # fmt: skip
