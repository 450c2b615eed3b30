"""Checking a run from the command line: which properties, and how verdicts are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexgroup.core.guarantees import Guarantee, Guarantees

if TYPE_CHECKING:
    from pathlib import Path

    from flexgroup.properties.verdict import Verdict
    from flexgroup.trace.history import History
    from flexgroup.worlds.simulator.scenario import Scenario

ALWAYS = ("integrity",)

PROMISED_BY = {
    Guarantee.RELIABLE: ("validity", "agreement"),
    Guarantee.FIFO: ("fifo order",),
    Guarantee.CAUSAL: ("causal order",),
    Guarantee.TOTAL: ("local order", "pairwise order", "prefix order", "acyclic order"),
}


def promised_properties(guarantees: Guarantees, genuine: bool) -> list[str]:
    """The properties that a stack with these guarantees promises."""
    promised = list(ALWAYS)
    for guarantee, properties in PROMISED_BY.items():
        if guarantee in guarantees:
            promised += properties
    if genuine:
        promised.append("minimality")
    return promised


def read_back(directory: Path, run: str) -> History:
    """A run that has just been recorded."""
    from flexgroup.trace.reader import load_history, read_run

    return load_history(directory, read_run(directory, run))


def check_run(scenario: Scenario, history: History, everything: bool = False) -> list[Verdict]:
    """The verdicts on what the scenario's stack promises, or on every property."""
    from flexgroup.core.stack import guarantees_above
    from flexgroup.properties.catalogue import check
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.worlds.simulator.networks import channel_guarantees, parse_network

    plan = parse_stack(scenario.stack)
    given = channel_guarantees(parse_network(scenario.network), scenario.faults.drops)
    promised = promised_properties(guarantees_above(plan.layers, given), plan.top.genuine == "yes")
    return check(history, None if everything else promised)


def any_violated(verdicts: list[Verdict]) -> bool:
    return any(verdict.outcome.value == "violated" for verdict in verdicts)


def print_verdicts(verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        print(verdict)
