"""DCC as published, where it breaks: few processes, small overlapping sets, delays that vary much.

The corrected protocol runs the same seeds beside it.
"""

from __future__ import annotations

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.findings import Findings

PUBLISHED = "dcc-published"
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
