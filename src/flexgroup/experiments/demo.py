"""The demonstration: four protocols under growing load, in under a minute."""

from __future__ import annotations

from flexgroup.experiments.dcc import (
    COMPARED,
    PAPER_CLIENTS,
    PAPER_DURATION,
    PAPER_SEEDS,
    RANDOM_EXPERIMENT,
)
from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid

EIGHT = ("random:8",)

DEMO = Experiment(
    "demo",
    "Four protocols under a growing number of clients",
    "after figure 7.1c of the DCC dissertation (Louzada 2024)",
    {
        SMALL: [Grid(COMPARED, EIGHT, (1, 4, 16, 64), (1,), 0.05)],
        PAPER: [Grid(COMPARED, EIGHT, PAPER_CLIENTS, PAPER_SEEDS, PAPER_DURATION)],
    },
    tuple(figure for figure in RANDOM_EXPERIMENT.figures if figure.id == "7.1c"),
)
