"""Experiments with protocols that tolerate crashes: claims on runs, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexgroup.experiments.directory import Directory
from flexgroup.experiments.experiment import PAPER, SMALL
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.findings import Findings
from flexgroup.experiments.groups_of_replicas import UNIT, near_links
from flexgroup.experiments.page import page
from flexgroup.experiments.tolerance import (
    AFTER_CRASHES,
    DELAYS,
    TOLERANCE,
    crashes,
    wide,
)
from flexgroup.experiments.tolerance_claims import (
    DELAY_CLAIMS,
    FOLLOWER,
    IN_ONE_REGION,
    LEADER,
    PRIMCAST,
    RAMCAST,
    SKEEN_CFT,
    SPREAD,
    TWO,
    WHITE_BOX,
    ranked,
    struck,
    takes,
    undisturbed,
)
from flexgroup.metrics.catalogue import METRICS

from .measured_here import findings_of

BOUND = {"skeen": (2, 4), WHITE_BOX: (3, 5), PRIMCAST: (3, 5), RAMCAST: (3, 5)}
"""Delays alone and in the worst case: Gotsman and others 2019, Pacheco and others 2023."""


@pytest.fixture(scope="module")
def delays() -> Findings:
    """What the small scale runs, of protocols that have a bound."""
    return findings_of(run for run in DELAYS.scenarios(SMALL) if run.stack in BOUND)


@pytest.mark.parametrize("stack", BOUND)
def test_a_delays_are_those_that_were_published(stack: str, delays: Findings) -> None:
    holds, evidence = takes(stack, *BOUND[stack]).judge(delays)
    assert holds, evidence


def test_a_claim_that_is_not_met_is_refused(delays: Findings) -> None:
    assert not takes(WHITE_BOX, 2, 5).judge(delays)[0]
    assert not takes(WHITE_BOX, 3, 4).judge(delays)[0]
    assert not takes(WHITE_BOX, 3, 6).judge(delays)[0]
    assert len(DELAY_CLAIMS) == len(BOUND) + 3
    assert {claim.network for claim in DELAY_CLAIMS} == {UNIT}


def test_a_every_client_is_near_to_the_members_of_one_group() -> None:
    assert near_links(2, 1) == "2:0=1us 3:1=1us"
    assert near_links(2, 2) == "4:0=1us 4:1=1us 5:2=1us 5:3=1us"


@pytest.fixture(scope="module")
def crashed() -> Findings:
    """One protocol with a log and one without, of which members of one group crash."""
    grids = crashes((1,), 0.25, ("30ms",))
    return findings_of(
        run
        for grid in grids
        if grid.stacks[0] in (WHITE_BOX, SKEEN_CFT)
        for run in grid.scenarios()
    )


@pytest.mark.parametrize("stack", [WHITE_BOX, SKEEN_CFT])
def test_f_a_group_stands_still_until_a_crash_of_its_leader_is_detected(
    crashed: Findings, stack: str
) -> None:
    usual = undisturbed(crashed, stack)
    assert usual < 15
    for lost in (LEADER, TWO):
        (point,) = struck(crashed, stack, lost)
        assert point.shown("detection") == 30
        assert 30 <= point.shown("gap_same") < 45 + usual
        assert point.unanswered == 0
    (point,) = struck(crashed, stack, FOLLOWER)
    assert point.shown("gap_same") < 15 + usual
    assert point.unanswered == 0


def test_f_every_crash_is_run_with_every_detection() -> None:
    for scale in (SMALL, PAPER):
        planned = {
            (run.faults.crashes, run.faults.detection)
            for run in AFTER_CRASHES.scenarios(scale)
            if run.stack == WHITE_BOX
        }
        assert len(planned) == 1 + 4 * 3


def test_c_members_of_a_group_are_in_one_region_or_in_several() -> None:
    grids = wide(SMALL, 1.0, (1,))
    networks = {(grid.stacks[0], grid.networks[0], grid.processes[0]) for grid in grids}
    assert {(WHITE_BOX, IN_ONE_REGION, 24), (WHITE_BOX, SPREAD, 24)} <= networks
    assert ("dcc", SPREAD, 8) in networks


def invented(**throughputs: float) -> list[dict[str, Any]]:
    known = {**dict.fromkeys(METRICS, 1.0), "faults": None, "processes": 16, "network": "lan"}
    return [
        {**known, "stack": stack, "workload": "tpcc", "clients": clients, "throughput": value}
        for stack, value in throughputs.items()
        for clients in (1, 64)
    ]


def test_a_conclusion_names_the_first_the_second_and_the_last() -> None:
    shown = tuple(Series(name, name, "tpcc") for name in ("df", "dcc", "skeen"))
    figure = Figure("x", "Some", Kind.BARS, shown, ("throughput",))
    findings = Findings.of_tables(invented(df=1.0, dcc=2000.0, skeen=30.0), [])
    assert ranked(figure, "throughput", most_is_best=True)(findings) == (
        "**Who wins.** The highest throughput (messages/s), with the most clients: `tpcc` dcc "
        "(2,000), then skeen (30), and last df (1)."
    )
    assert "df (1), then skeen (30)" in ranked(figure, "throughput", False)(findings)


def test_what_was_measured_elsewhere_is_read_and_not_typed(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    untold = replace(AFTER_CRASHES, conclusions={})
    bare = page(untold, SMALL, [], [], Findings([]), directory.measured_elsewhere())
    assert "## Measured elsewhere" in bare
    assert "there is no `elsewhere.csv`" in bare
    directory.elsewhere.write_text("stack,gap in ms\nleader white-box,31\n", encoding="utf-8")
    told = page(untold, SMALL, [], [], Findings([]), directory.measured_elsewhere())
    assert "| stack | gap in ms |\n| --- | --- |\n| leader white-box | 31 |" in told


def test_the_whole_page_has_every_part() -> None:
    assert {claim.section for claim in TOLERANCE.claims} == set("abcdef")
    assert {figure.section for figure in TOLERANCE.figures} == set("abcdef")
    assert TOLERANCE.introduction.startswith("What does it take")
