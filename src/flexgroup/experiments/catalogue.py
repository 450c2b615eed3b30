"""The experiments by name; the demonstration, four protocols in under a minute, is one of them."""

from __future__ import annotations

from flexgroup.core.errors import UsageError
from flexgroup.experiments import dcc, liars, tolerance, vcube, vcube_beyond, vcube_detection, wan
from flexgroup.experiments.causal import CAUSAL
from flexgroup.experiments.dcc_choices import CHOICES
from flexgroup.experiments.dcc_published import BROKEN, FORMS
from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid
from flexgroup.experiments.sensitivity import SENSITIVITY
from flexgroup.experiments.vcube_instants import SOURCE_INSTANTS

EIGHT = ("random:8",)

DEMO = Experiment(
    "demo",
    "Four protocols under a growing number of clients",
    "after figure 7.1c of the DCC dissertation (Louzada 2024)",
    {
        SMALL: [Grid(dcc.COMPARED, EIGHT, (1, 4, 16, 64), (1,), 0.05)],
        PAPER: [Grid(dcc.COMPARED, EIGHT, dcc.PAPER_CLIENTS, dcc.PAPER_SEEDS, dcc.PAPER_DURATION)],
    },
    tuple(figure for figure in dcc.RANDOM_EXPERIMENT.figures if figure.id == "7.1c"),
)

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        DEMO,
        dcc.RANDOM_EXPERIMENT,
        dcc.TPCC_EXPERIMENT,
        dcc.GROUP_EXPERIMENT,
        dcc.METRIC_EXPERIMENT,
        dcc.CHAPTER,
        CHOICES,
        FORMS,
        BROKEN,
        SENSITIVITY,
        wan.EXPERIMENT,
        vcube.FAULT_FREE,
        vcube.SOURCE_FAILS,
        SOURCE_INSTANTS,
        vcube.BEFORE_DETECTION,
        vcube.AFTER_DETECTION_EXPERIMENT,
        vcube_beyond.THROUGHPUT,
        vcube_beyond.LOSSES,
        vcube_beyond.JITTER,
        vcube_detection.DETECTORS,
        vcube_detection.FALSE_SUSPICIONS,
        tolerance.DELAYS,
        tolerance.MANY_DESTINATIONS,
        tolerance.WIDE_AREA,
        tolerance.CONVOY,
        tolerance.PRICES,
        tolerance.AFTER_CRASHES,
        tolerance.TOLERANCE,
        liars.DELAYS,
        liars.SHAPES,
        liars.ATTACKS,
        liars.PRICES,
        liars.WIDE_AREA,
        liars.LIARS,
        CAUSAL,
    )
}


def find_experiment(name: str) -> Experiment:
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        known = ", ".join(EXPERIMENTS)
        raise UsageError(f"there is no experiment '{name}'; choose from: {known}")
    return experiment
