"""What has to be known to read the verdicts and the numbers of a simulated run.

A violation says little where more went wrong than the stack tolerates, and throughput little where
clients have stopped because nobody answers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from flexgroup.core.message import name_of
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.protocols.catalogue import Fault, parse_stack
from flexgroup.trace.history import History, Ints
from flexgroup.worlds.simulator.scenario import Scenario, SimulationResult


def remarks(
    scenario: Scenario,
    outcome: SimulationResult,
    history: History | None,
    verdicts: Sequence[Verdict],
) -> Iterator[str]:
    """Yield what has to be known, a sentence or two each."""
    violated = [verdict for verdict in verdicts if verdict.outcome is Outcome.VIOLATED]
    if violated:
        reason = why_liars_may_violate(scenario) or why_crashes_may_violate(scenario)
        if not reason and history is not None:
            reason = _why_entrances_may_violate(history, violated)
        if reason:
            yield reason
    yield from _silences(scenario, outcome)


def why_liars_may_violate(scenario: Scenario) -> str:
    """Return why a violation says little where somebody lies, or nothing where it is a finding."""
    plan = parse_stack(scenario.stack)
    if not scenario.faults.liars or plan.tolerates_liars:
        return ""
    return (
        f"'{plan.name}' tolerates no Byzantine process (faults tolerated by {plan.top.name}: "
        f"{plan.top.faults_in_words}): what it promises is for runs without"
    )


def why_crashes_may_violate(scenario: Scenario) -> str:
    """Return why a violation says little after a crash, or nothing where it is a finding."""
    if not scenario.faults.crashes:
        return ""
    for protocol in parse_stack(scenario.stack).protocols:
        if not protocol.tolerates_crashes:
            return (
                f"{protocol.name} tolerates no crash (faults tolerated: "
                f"{protocol.faults_in_words}), and a process has crashed: what it promises is "
                "for runs without"
            )
        if scenario.faults.recoveries and Fault.RESTARTS not in protocol.faults:
            return (
                f"{protocol.name} keeps nothing in stable storage (faults tolerated: "
                f"{protocol.faults_in_words}), and a process has recovered: what it promises is "
                "for runs in which those that crash stay down"
            )
        if protocol.detector and scenario.faults.detection is None:
            return (
                f"{protocol.name} tolerates {protocol.faults_in_words}, and nobody was told of "
                "the crash: add --detection 10ms"
            )
    return ""


def lost_on_the_way_in(history: History) -> Ints:
    """Return the messages of clients that went to processes which have crashed and to no others,
    and that nobody delivered."""
    sends, crashed = history.sends, np.unique(history.crashes.process)
    of_clients = (sends.process >= history.processes) & (sends.message >= 0)
    message, peer = sends.message[of_clients], sends.peer[of_clients]
    passed_on = message[~np.isin(peer, crashed)]
    return np.setdiff1d(message, np.concatenate((passed_on, history.deliveries.message)))


def without(history: History, messages: Ints) -> History:
    """Return the history as if these messages had never been multicast."""
    rows = history.multicasts
    kept, counts = ~np.isin(rows.message, messages), np.diff(rows.offsets)
    multicasts = replace(
        rows,
        process=rows.process[kept],
        step=rows.step[kept],
        time=rows.time[kept],
        message=rows.message[kept],
        offsets=np.concatenate(([0], np.cumsum(counts[kept]))),
        targets=rows.targets[np.repeat(kept, counts)],
    )
    return replace(history, multicasts=multicasts)


def _why_entrances_may_violate(history: History, violated: Sequence[Verdict]) -> str:
    """Return that all is violated for messages only that were lost on their way in, if it is so."""
    lost = lost_on_the_way_in(history)
    names = [verdict.property for verdict in violated]
    if not len(lost) or any(
        verdict.outcome is Outcome.VIOLATED for verdict in check(without(history, lost), names)
    ):
        return ""
    count = "a message" if len(lost) == 1 else f"{len(lost)} messages"
    told = ", ".join(name_of(int(message)) for message in lost[:3])
    more = ", ..." if len(lost) > 3 else ""
    return (
        f"{count} ({told}{more}) entered through a process that crashed and had told nobody; the "
        "protocol counts that process as the sender, the check the client, which has not crashed. "
        f"Without {'it' if len(lost) == 1 else 'them'}, {_listed(names)} "
        f"{'holds' if len(names) == 1 else 'hold'}"
    )


def _silences(scenario: Scenario, outcome: SimulationResult) -> Iterator[str]:
    crashed = sorted({process for silent in outcome.silent for process in silent.crashed})
    waiting = sum(bool(silent.crashed) for silent in outcome.silent)
    blocked = len(outcome.silent) - waiting
    if waiting:
        yield (
            f"{waiting} of {scenario.clients} clients fell silent: their last message went to or "
            f"through {_numbered(crashed)}, which crashed, and a client in a closed loop waits for "
            "all answers. What is counted is what they had multicast until then; with --rate "
            "clients do not wait"
        )
    if blocked:
        yield (
            f"{blocked} of {scenario.clients} clients fell silent: a destination of their last "
            "message did not deliver it, though none of them crashed"
        )
    if outcome.turned_away > waiting:
        yield (
            f"{outcome.turned_away} messages were never multicast: clients handed them to a "
            "process that had crashed"
        )


def _numbered(processes: Sequence[int]) -> str:
    named = [str(process) for process in processes]
    return f"process {named[0]}" if len(named) == 1 else f"processes {_listed(named)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
