"""A counterexample is short, small, and means the same to all who read it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from flexgroup.cli.counterexamples import diagram_of
from flexgroup.cli.main import main
from flexgroup.core.codec import Codec
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome as Verdict
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.script import Script, parse, rewrite
from flexgroup.testing.script import check as check_script
from flexgroup.trace.reader import load_history, read_run
from flexgroup.trace.replay import replay
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.minimise import minimise, smaller_scopes
from flexgroup.worlds.explorer.result import Violation
from flexgroup.worlds.explorer.schedule import script, stage, write_trace
from flexgroup.worlds.explorer.scope import Bounds, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variants_paxos import paxos_that_chooses_with_one_vote_too_few, replicated

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"

CYCLE = ("dcc-published", from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3)))
DEADLOCK = ("dcc-published", from_clients(5, (0, 3), (0, 1, 4), (0, 1, 3, 4)))
CHOICE = (
    "dcc-published/any",
    from_clients(4, (0, 2), (0, 2), (1, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
)
NO_ORDER = ("best-effort", from_clients(2, (0, 1), (0, 1), fifo=False))

CASES = [
    pytest.param(*CYCLE, "acyclic order", id="cycle"),
    pytest.param(*DEADLOCK, "validity", id="deadlock"),
    pytest.param(*CHOICE, "validity", id="choice"),
    pytest.param(*NO_ORDER, "acyclic order", id="reordering"),
]


def counterexample(stack: str, scope: Scope, name: str) -> Violation:
    outcome = explore(parse_stack(stack), scope, SearchOptions(properties=(name,)))
    (violation,) = outcome.violations
    return violation


@pytest.mark.parametrize(("stack", "scope", "name"), CASES)
def test_its_script_replays_to_the_same_violation(stack: str, scope: Scope, name: str) -> None:
    golden = rewrite(script(stack, scope, counterexample(stack, scope, name).run, "found"))
    assert golden.startswith("# found\nstack ")
    assert check_script(golden) == []
    assert f"{name}: violated" in golden.splitlines()[-1]
    replayed = Script()
    for block in parse(golden):
        for command in block.commands:
            replayed.run(command)
    assert replayed.violated


@pytest.mark.parametrize(("stack", "scope", "name"), CASES)
def test_its_trace_is_condemned_for_the_same_reason(
    stack: str, scope: Scope, name: str, tmp_path: Path
) -> None:
    plan = parse_stack(stack)
    write_trace(plan, scope, counterexample(stack, scope, name).run, tmp_path, "found")
    row = read_run(tmp_path, "found")
    (verdict,) = check(load_history(tmp_path, row), [name])
    assert verdict.outcome is Verdict.VIOLATED
    again = replay(tmp_path, row, lambda p: plan.build(p, scope.processes), Codec(plan.layers))
    assert again.divergence is None
    assert again.events > 0


@pytest.mark.parametrize(
    ("channels", "named"),
    [
        ({}, "unit"),
        ({"fifo": False}, "unit:fifo=no"),
        ({"bounds": Bounds(losses=1)}, "unit, with losses and duplicates"),
    ],
)
def test_its_trace_names_the_network_so_that_runs_over_others_are_told_apart(
    channels: dict[str, Any], named: str, tmp_path: Path
) -> None:
    scope = replace(from_clients(2, (0, 1)), **channels)
    write_trace(parse_stack("reliable skeen"), scope, (), tmp_path, "found")
    assert read_run(tmp_path, "found").network == named


@pytest.mark.parametrize(("stack", "scope", "name"), CASES)
def test_its_diagram_shows_every_delivery_packet_and_choice(
    stack: str, scope: Scope, name: str
) -> None:
    plan = parse_stack(stack)
    found = counterexample(stack, scope, name)
    svg = ElementTree.fromstring(diagram_of(plan, scope, found).standalone)
    groups = [group.get("class", "").split() for group in svg.iterfind(".//{*}g[{*}title]")]
    delivered = stage(plan, scope, found.run).delivered
    assert sum("deliver" in classes for classes in groups) == sum(map(len, delivered))
    received = sum(happening.kind == "receive" for happening in found.run)
    arrived = [c for c in groups if "packet" in c and not {"lost", "unfinished"} & set(c)]
    assert len(arrived) == received
    chosen = sum(happening.kind == "choice" for happening in found.run)
    assert sum("choice" in classes for classes in groups) == chosen
    assert any("witness" in classes for classes in groups)


@pytest.mark.parametrize(
    ("options", "lines", "suspicions", "arrived"),
    [
        ("--processes 2 --message 0:0,1 --message 1:0,1", "01", 1, ["process 0 to process 1"]),
        (
            "--processes 3 --message 0:0,1,2 --crashes 1 --no-minimise",
            "012",
            3,
            ["process 2 to process 0"],
        ),
    ],
    ids=["smallest", "with a crash"],
)
def test_its_diagram_shows_what_suspicions_lead_to_before_the_first_multicast(
    options: str, lines: str, suspicions: int, arrived: list[str], tmp_path: Path
) -> None:
    command = f"explore --protocol vcube-atomic {options} --suspicions 1 --out {tmp_path}"
    assert main(command.split()) == 1
    svg = ElementTree.parse(tmp_path / "vcube-atomic-validity.svg")
    lanes = [text.text for text in svg.iterfind(".//{*}text[@class='lane']")]
    assert lanes == [f"process {process}" for process in lines]
    titles = [title.text or "" for title in svg.iterfind(".//{*}g/{*}title")]
    assert sum(" suspected " in title for title in titles) == suspicions
    received = [title for title in titles if " from " in title and "not received" not in title]
    assert [re.sub(r".* from | \(step \d+\)", "", title) for title in received] == arrived


def test_the_diagram_in_the_docs_is_what_the_command_writes(tmp_path: Path) -> None:
    command = "explore --protocol dcc-published --processes 4"
    messages = "--message 0,2 --message 0,2 --message 0,3 --message 2,3"
    assert main([*command.split(), *messages.split(), "--out", str(tmp_path)]) == 1
    name = "dcc-published-acyclic-order.svg"
    assert (tmp_path / name).read_bytes() == (FIGURES / name).read_bytes()


def test_the_full_search_finds_a_shortest_one_and_says_so() -> None:
    plan = parse_stack(CYCLE[0])
    full = explore(plan, CYCLE[1], SearchOptions(reduce=False)).violations[0]
    reduced = explore(plan, CYCLE[1]).violations[0]
    assert full.shortest
    assert not reduced.shortest
    assert full.steps <= reduced.steps


def test_minimising_leaves_out_whatever_can_be_left_out() -> None:
    plan = parse_stack(CYCLE[0])
    found = explore(plan, CYCLE[1]).violations[0]
    smallest = minimise(plan, CYCLE[1], found, SearchOptions())
    assert len(smallest.scope.casts) == 4
    assert smallest.violation.shortest
    assert smallest.violation.steps == 11
    for smaller in smaller_scopes(smallest.scope):
        assert not explore(plan, smaller, SearchOptions(properties=(found.name,))).violations


def test_minimising_takes_away_processes_too() -> None:
    """Two messages to the same two of five processes: the other three go."""
    scope = from_clients(5, (1, 3), (1, 3), (0, 4), fifo=False)
    plan = parse_stack("best-effort")
    options = SearchOptions(properties=("acyclic order",))
    found = explore(plan, scope, options).violations[0]
    smallest = minimise(plan, scope, found, options)
    assert smallest.scope == from_clients(2, (0, 1), (0, 1), fifo=False)
    assert smallest.violation.steps == 4


def test_minimising_keeps_groups_of_replicas_whole() -> None:
    """A destination alone cannot go, a replica can, and one that is named cannot."""
    plan = paxos_that_chooses_with_one_vote_too_few()
    scope = replace(replicated(0, 1, crashes=1), crashing=(0,))
    found = explore(plan, scope).violations[0]
    smallest = minimise(plan, scope, found, SearchOptions())
    assert smallest.scope.crashing in ((), (0,))
    assert all(cast.destinations in smallest.scope.replicas for cast in smallest.scope.casts)
    for smaller in smaller_scopes(replace(scope, processes=4, replicas=replicas_of_sizes([3, 1]))):
        assert 0 in smaller.replicas[0]
