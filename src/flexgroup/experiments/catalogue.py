"""The experiments by name."""

from __future__ import annotations

from flexgroup.core.errors import UsageError
from flexgroup.experiments import dcc, vcube, vcube_beyond, vcube_detection
from flexgroup.experiments.broken import BROKEN
from flexgroup.experiments.demo import DEMO
from flexgroup.experiments.experiment import Experiment
from flexgroup.experiments.forms import FORMS
from flexgroup.experiments.sensitivity import SENSITIVITY

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        DEMO,
        dcc.RANDOM_EXPERIMENT,
        dcc.TPCC_EXPERIMENT,
        dcc.GROUP_EXPERIMENT,
        dcc.METRIC_EXPERIMENT,
        dcc.CHAPTER,
        FORMS,
        BROKEN,
        SENSITIVITY,
        vcube.FAULT_FREE,
        vcube.SOURCE_FAILS,
        vcube.BEFORE_DETECTION,
        vcube.AFTER_DETECTION_EXPERIMENT,
        vcube_beyond.THROUGHPUT,
        vcube_beyond.LOSSES,
        vcube_beyond.JITTER,
        vcube_detection.DETECTORS,
        vcube_detection.FALSE_SUSPICIONS,
    )
}


def find_experiment(name: str) -> Experiment:
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        known = ", ".join(EXPERIMENTS)
        raise UsageError(f"there is no experiment '{name}'; choose from: {known}")
    return experiment
