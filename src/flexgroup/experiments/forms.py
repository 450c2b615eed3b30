"""DCC as published beside the corrected one: what the correction costs."""

from __future__ import annotations

from flexgroup.experiments.dcc import PLAIN, SOURCE, against_load, grids
from flexgroup.experiments.dcc_claims import GROUPS, RANDOM
from flexgroup.experiments.experiment import Claim, Experiment, Judgement
from flexgroup.experiments.figure import compared
from flexgroup.experiments.findings import Findings

STACKS = ("dcc", "dcc-published")


def _ratios(findings: Findings, workloads: tuple[str, ...]) -> list[float]:
    return [findings.peak(STACKS[1], load) / findings.peak(STACKS[0], load) for load in workloads]


def as_fast_in_groups(findings: Findings) -> Judgement:
    ratios = _ratios(findings, GROUPS)
    told = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    return all(abs(ratio - 1) < 0.02 for ratio in ratios), f"published / corrected: {told}"


def little_slower_elsewhere(findings: Findings) -> Judgement:
    ratios = _ratios(findings, (*RANDOM, "tpcc"))
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return all(0.95 < ratio < 1.25 for ratio in ratios), (
        f"published / corrected with 2, 4, 8, N, TPC-C: {told}"
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
