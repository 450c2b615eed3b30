"""Experiments among liars: claims on runs, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.experiments.experiment import PAPER, SMALL, Claim
from flexgroup.experiments.findings import Findings
from flexgroup.experiments.groups_of_replicas import UNIT
from flexgroup.experiments.liars import ATTACKS, DELAYS, LIARS, SHAPES
from flexgroup.experiments.liars_claims import (
    BACKUPS,
    BYZCAST,
    CERTIFIED,
    CHAIN,
    DCC_BFT,
    DELAY_CLAIMS,
    MEETING,
    OF_FOUR,
    PBFT,
    PRICED,
    PRIMARY,
    all_answered,
    attacked,
    delays_of,
    keeps,
    lying,
    nothing_broken,
    takes,
    verdicts,
)
from flexgroup.liars.named import KINDS
from flexgroup.worlds.simulator.fault_plans import Faults

from .measured_here import findings_of, points_of


@pytest.fixture(scope="module")
def delays() -> Findings:
    """What the small scale runs where a message is alone."""
    stacks = (PBFT, DCC_BFT, CERTIFIED, BYZCAST, CHAIN)
    return findings_of(
        run
        for run in DELAYS.scenarios(SMALL)
        if run.stack in stacks and run.processes != MEETING * OF_FOUR
    ).on(UNIT)


@pytest.mark.parametrize("claim", DELAY_CLAIMS[:-1], ids=lambda claim: claim.name)
def test_a_delays_are_those_that_were_counted(claim: Claim, delays: Findings) -> None:
    holds, evidence = claim.judge(delays)
    assert holds, evidence


def test_a_claim_that_is_not_met_is_refused(delays: Findings) -> None:
    assert delays_of(delays, BYZCAST, "random:3") == 8
    assert not takes("x", "y", BYZCAST, ["random:3"], [4]).judge(delays)[0]
    assert not takes("x", "y", DCC_BFT, ["random:1", "random:3"], [4, 8]).judge(delays)[0]


@pytest.fixture(scope="module")
def under_attack() -> Findings:
    """PBFT alone, while nobody lies, the primary is slow, and a backup is silent or a twin."""
    liars = ("", "0:slow", "3:silent", "3:twin")
    runs = [
        replace(run, duration=0.3)
        for run in ATTACKS.scenarios(SMALL)
        if run.stack == PBFT and " ".join(run.faults.liars) in liars
    ]
    assert len(runs) == len(liars)
    rows = points_of(runs)
    told = [{**row, "property": "acyclic order", "outcome": "holds"} for row in rows]
    return Findings.of_tables(rows, told).on(PRICED)


def test_d_goodput_is_what_correct_processes_deliver(under_attack: Findings) -> None:
    point = attacked(under_attack, PBFT, BACKUPS, "twin")
    assert point.shown("deliveries") == 3 * point.shown("messages")
    assert keeps(under_attack, PBFT, BACKUPS, "silent") > 0.5
    assert keeps(under_attack, PBFT, PRIMARY, "slow") < 0.2
    assert all_answered(under_attack)[0]


def test_d_verdicts_are_told_apart_by_who_lies(under_attack: Findings) -> None:
    """Those of runs without a liar do not count: they would hide that nothing was checked."""
    assert nothing_broken(under_attack) == (True, "0 violated of 3 promises in runs with liars")
    assert "| a backup, `twin` | 1 hold |" in verdicts(under_attack)
    honest = Findings([], {(PBFT, PRICED, "", "", "validity"): 1}, {}, PRICED)
    assert not nothing_broken(honest)[0]
    key = (PBFT, PRICED, "", "3:twin", "validity")
    broken = Findings([], {key: 1}, {key: 1}, PRICED)
    assert not nothing_broken(broken)[0]
    assert "| a backup, `twin` | **1 of 1 violated** |" in verdicts(broken)


def test_d_every_attacker_and_a_twin_attack_every_stack() -> None:
    for scale in (SMALL, PAPER):
        runs = ATTACKS.scenarios(scale)
        for stack in (PBFT, DCC_BFT, CERTIFIED, BYZCAST):
            found = {run.faults for run in runs if run.stack == stack}
            assert len(found) == 1 + 2 * len(KINDS)
            assert Faults() in found
    assert lying(PRIMARY, "skip") == "0:skip"
    assert lying(BACKUPS, "skip") == "3:skip 7:skip 11:skip"


def test_b_trees_have_every_shape_and_size() -> None:
    sizes = {(run.stack, run.groups) for run in SHAPES.scenarios(PAPER)}
    shapes = [BYZCAST, f"{BYZCAST}/binary", CHAIN]
    assert {(shape, f"{n}x4") for shape in shapes for n in (2, 4, 8, 16)} <= sizes


def test_the_whole_page_has_every_part() -> None:
    assert {claim.section for claim in LIARS.claims} == set("abcdef")
    assert {figure.section for figure in LIARS.figures} == set("abcdef")
    assert LIARS.introduction.startswith("What does it take")
