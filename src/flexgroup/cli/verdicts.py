"""Checking a run from the command line: which properties, and how verdicts are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from flexgroup.properties.verdict import Verdict
    from flexgroup.trace.history import History
    from flexgroup.worlds.simulator.scenario import Scenario


def read_back(directory: Path, run: str) -> History:
    """Load a run that has just been recorded."""
    from flexgroup.trace.reader import load_history, read_run

    return load_history(directory, read_run(directory, run))


def check_run(scenario: Scenario, history: History, everything: bool = False) -> list[Verdict]:
    """Return the verdicts on what the scenario's stack promises, or on every property."""
    from flexgroup.properties.catalogue import check
    from flexgroup.worlds.simulator.scenario import description

    return check(history, None if everything else description(scenario).promised)


def any_violated(verdicts: list[Verdict]) -> bool:
    return any(verdict.outcome.value == "violated" for verdict in verdicts)


def why_crashes_may_violate(scenario: Scenario) -> str:
    """Return why a violation says little after a crash, or nothing where it is a finding."""
    from flexgroup.protocols.catalogue import parse_stack

    if not scenario.faults.crashes:
        return ""
    for protocol in parse_stack(scenario.stack).protocols:
        if not protocol.tolerates_crashes:
            return (
                f"{protocol.name} tolerates no crash (faults tolerated: "
                f"{protocol.faults_in_words}), and a process has crashed: what it promises is "
                "for runs without"
            )
        if protocol.detector and scenario.faults.detection is None:
            return (
                f"{protocol.name} tolerates {protocol.faults_in_words}, and nobody was told of "
                "the crash: add --detection 10ms"
            )
    return ""


def print_verdicts(verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        print(verdict)
