"""Experiments are data: what each runs is possible, and suffices for its figures and claims."""

from __future__ import annotations

from typing import Any

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.experiments.catalogue import EXPERIMENTS, find_experiment
from flexgroup.experiments.dcc import CHAPTER
from flexgroup.experiments.experiment import PAPER, SCALES, SMALL, Experiment
from flexgroup.experiments.findings import Findings
from flexgroup.metrics.catalogue import METRICS
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.workloads.catalogue import parse_workload
from flexgroup.worlds.simulator.networks import parse_network
from flexgroup.worlds.simulator.scenario import parse_groups

DESCRIPTION = ("stack", "workload", "processes", "clients", "network")

every_experiment = pytest.mark.parametrize(
    "experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name
)


def invented(experiment: Experiment, scale: str) -> list[dict[str, Any]]:
    """A value for everything that the experiment runs at this scale, and for nothing else."""
    measured = dict.fromkeys(("latency_last_mean", *METRICS), 1.0)
    return [
        {
            **measured,
            **{name: getattr(run, name) for name in DESCRIPTION},
            "faults": run.faults.text,
            "crashed": len(run.faults.crashes),
        }
        for run in experiment.scenarios(scale)
    ]


def all_holds(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A verdict on every property of these runs."""
    return [{**row, "property": name, "outcome": "holds"} for row in points for name in PROPERTIES]


@every_experiment
def test_what_it_runs_can_be_run(experiment: Experiment) -> None:
    for scale in SCALES:
        scenarios = experiment.scenarios(scale)
        assert scenarios
        assert len({scenario.run for scenario in scenarios}) == len(scenarios)
        for stack in {scenario.stack for scenario in scenarios}:
            parse_stack(stack)
        for network in {scenario.network for scenario in scenarios}:
            parse_network(network)
        for workload, processes, groups in {(s.workload, s.processes, s.groups) for s in scenarios}:
            replicas = parse_groups(groups)
            assert sum(map(len, replicas)) in (0, processes)
            parse_workload(workload, len(replicas) or processes)


@every_experiment
def test_what_it_runs_suffices_for_its_figures_and_claims(experiment: Experiment) -> None:
    for scale in SCALES:
        points = list({tuple(row.items()): row for row in invented(experiment, scale)}.values())
        findings = Findings.of_tables(points, all_holds(points))
        for figure in experiment.figures:
            assert figure.paper
            for series in figure.series:
                assert figure.points_of(series, points), (figure.id, series)
        for claim in experiment.claims_at(scale):
            _, evidence = claim.judge(findings)
            assert evidence
        drawn = {figure.id for figure in experiment.figures}
        for figure_id, words in experiment.conclusions.items():
            assert figure_id in drawn
            assert words(findings)
    assert experiment.claims_at(PAPER) == list(experiment.claims)


def test_every_figure_of_the_dcc_documents_is_there() -> None:
    assert [figure.id for figure in CHAPTER.figures] == [
        *("7.1a", "7.1b", "7.1c", "7.1d"),
        *("7.2a", "7.2b"),
        *("7.3a", "7.3b", "7.3c", "7.3d", "7.3e", "7.3f"),
        *("7.4a", "7.4b", "7.5a", "7.5b", "table-7.1"),
    ]


def test_6_1_4_the_scale_of_the_paper_is_16_nodes_1_to_64_clients_and_three_repetitions() -> None:
    runs = CHAPTER.scenarios(PAPER)
    curve = [run for run in runs if (run.stack, run.workload, run.processes) == ("df", "tpcc", 16)]
    assert sorted({run.clients for run in curve}) == [1, 2, 4, 8, 16, 32, 64]
    assert {run.seed for run in curve} == {1, 2, 3}
    assert len(curve) == 21
    assert {run.processes for run in runs if run.workload == "random:8"} == {16}


def test_parts_of_the_chapter_share_their_runs() -> None:
    parts = [EXPERIMENTS[f"dcc-7.{number}"] for number in (1, 2, 3, 4)]
    together = {run for part in parts for run in part.scenarios(SMALL)}
    assert set(CHAPTER.scenarios(SMALL)) == together
    assert len(together) < sum(len(part.scenarios(SMALL)) for part in parts)


def test_a_name_that_is_none_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no experiment 'dc'; choose from: demo, dcc-7\.1"):
        find_experiment("dc")
