"""Predictions beside measurements: which count as right, and what the page says of them."""

from __future__ import annotations

import json
from pathlib import Path

from flexgroup.experiments.dcc import COMPARED
from flexgroup.experiments.dcc_claims import RANDOM
from flexgroup.experiments.dcc_network import chapter, is_predicted
from flexgroup.experiments.experiment import HERE, SMALL
from flexgroup.experiments.findings import Findings, Point
from flexgroup.experiments.real_runs import Counted, counted_file
from flexgroup.load.measurement import Load

ELSEWHERE = "machine"


def point(stack: str, workload: str, network: str, throughput: float) -> Point:
    return Point(
        stack=stack, workload=workload, processes=16, clients=64, network=network, lost="",
        latency=2.5, throughput=throughput, genuine=1.0, fast=1.0, steps=2.0, volume=4.0, busy=0.0,
        unanswered=0, crashed=0,
    )  # fmt: skip


def findings(*factors: float) -> Findings:
    """Every point is measured at 1,000 messages/s; predictions are off by these factors in turn."""
    where = [(stack, workload) for workload in RANDOM for stack in COMPARED]
    measured = [point(*each, HERE, 1_000.0) for each in where]
    foretold = [
        point(*each, ELSEWHERE, 1_000.0 * factors[number % len(factors)])
        for number, each in enumerate(where)
    ]
    return Findings([*measured, *foretold])


def test_three_quarters_of_the_points_have_to_be_near() -> None:
    assert is_predicted(findings(1.0, 0.76, 1.24, 3.0), ELSEWHERE) == (
        True, "within 25% at 12 of 16 points"
    )  # fmt: skip
    holds, told = is_predicted(findings(1.0, 0.7, 1.3), ELSEWHERE)
    assert (holds, told) == (False, "within 25% at 6 of 16 points")


def test_nothing_is_predicted_where_nothing_was_measured() -> None:
    assert is_predicted(Findings([]), ELSEWHERE) == (False, "within 25% at 0 of 0 points")


def test_the_page_has_every_error_and_what_a_message_has_cost(tmp_path: Path) -> None:
    experiment = chapter(None, tmp_path)
    run = next(
        run
        for run in experiment.real[SMALL]
        if (run.stack, run.workload, run.clients) == ("skeen", "random:2", 64)
    )
    counted = Counted(Load(), 1.0, 1_000, 0, 0.1, ({"cpu_seconds": 0.4}, {"cpu_seconds": 0.5}))
    file = counted_file(tmp_path, run.run)
    file.parent.mkdir()
    file.write_text(json.dumps(counted.to_json()), encoding="utf-8")
    told = experiment.conclusions["7.1d"](findings(1.5)).splitlines()
    assert told[0].startswith("Predicted within 25% at 0 of 16 points.")
    assert told[4] == (
        "| Skeen | random:2 | 64 | 1,000 | 1,500 | **+50%** | 2.50 | 2.50 | 900 | 100 |"
    )
    assert len(told) == 4 + 16
