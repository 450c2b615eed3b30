"""`flexgroup simulate`: run a stack in the simulator, record it, check what it promises."""

from __future__ import annotations

import argparse
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    flag,
    path_here,
    print_json,
    repeated,
    stack_option,
)
from flexgroup.cli.liars import liar_options
from flexgroup.cli.progress import progress_bar
from flexgroup.core.errors import FlexGroupError, UsageError

if TYPE_CHECKING:
    from flexgroup.properties.verdict import Verdict
    from flexgroup.trace.history import History
    from flexgroup.worlds.simulator.scenario import Progress, Scenario, SimulationResult

COMMAND = Command(
    "simulate",
    "simulate a protocol, record the trace and check it",
    "flexgroup simulate --protocol skeen --processes 16 --workload random:4 --clients 64 "
    "--duration 0.2 --seed 7 --network lan --out runs/first",
    (
        stack_option(required=True),
        Option("--processes", type=int, metavar="N", help="how many processes (16)"),
        Option(
            "--groups", default="", metavar="GxR",
            help="divide the processes into G groups of R replicas; the workload draws groups",
        ),
        Option(
            "--clients", type=int, default=16, metavar="N", help="how many clients multicast (16)"
        ),
        Option(
            "--workload", default="random:4", metavar="W",
            help="random:K, random:N, tpcc, partitioned:GxC, broadcast, any with @SHARE (random:4)",
        ),
        Option(
            "--network", default="lan", metavar="N",
            help="unit, lan, wan or neko, with options: lan:delay=50us,fifo=no,loss=0.01 (lan)",
        ),
        repeated("--link", "P:Q=T", "6:0=1us: packets from P to Q take exactly this long"),
        Option("--duration", type=float, default=1.0, metavar="S", help="virtual seconds (1)"),
        Option(
            "--drain", type=float, default=10.0, metavar="S",
            help="at most this long to finish (10)",
        ),
        Option(
            "--answers", choices=("all", "last"), default="",
            help="who answers a client, all destinations (or groups) or the last (the protocol's)",
        ),
        Option(
            "--rate", type=float, default=0.0, metavar="R",
            help="multicasts a second and client, in an open loop; else closed",
        ),
        repeated(
            "--cast", "P@T", "0@5ms, all@0s: let members multicast; --clients 0 for nothing else"
        ),
        Option("--seed", type=int, default=1, help="fixes everything (1)"),
        Option("--out", type=path_here, metavar="DIR", help="write the trace into this trace set"),
        flag("--force", "overwrite the same run in the trace set"),
        Option(
            "--part-rows", type=int, metavar="N",
            help="write the trace while it runs, in parts of N rows, for flexgroup watch",
        ),
        Option(
            "--check", choices=("promised", "all", "none"), default="promised",
            help="which properties to check after the run (promised)",
        ),
        Group(
            "faults",
            repeated("--crash", "P@T", "3@1.5s"),
            repeated("--recover", "P@T", "3@2s"),
            repeated(
                "--partition", "SIDES@T-T",
                "'0,1|2,3@1s-2s': held till it heals; with !drop at the end, lost",
            ),
            repeated("--suspect", "P:Q@T-T", "0:3@1s-1.2s: P suspects Q wrongly"),
            repeated("--view", "P,Q@T", "0,1,2@1.2s: all are told that these are the members"),
            Option("--detection", metavar="T", help="crashes are noticed by all after this time"),
            *liar_options(),
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.liars.named import in_words, parse_liars
    from flexgroup.properties.catalogue import check
    from flexgroup.worlds.simulator.fault_plans import Faults
    from flexgroup.worlds.simulator.scenario import Scenario, description

    if options.part_rows is not None and (options.part_rows < 1 or options.out is None):
        raise UsageError("--part-rows needs --out, and a number of rows from 1 on")
    scenario = Scenario(
        stack=" ".join(options.stack.lower().split()),
        processes=_processes(options),
        clients=options.clients,
        workload=options.workload,
        network=options.network,
        duration=options.duration,
        seed=options.seed,
        rate=options.rate,
        drain=options.drain,
        faults=Faults(
            crashes=tuple(options.crash),
            recoveries=tuple(options.recover),
            partitions=tuple(options.partition),
            suspicions=tuple(options.suspect),
            detection=options.detection,
            views=tuple(options.view),
            liars=tuple(in_words(parse_liars(options.twin, options.liar))),
        ),
        casts=" ".join(options.cast),
        groups=options.groups,
        answers=options.answers,
        links=" ".join(options.link),
    )
    try:
        outcome, history = _simulate(options, scenario)
    except FlexGroupError:
        raise
    except Exception as error:
        place = _handler_that_raised(scenario, error)
        if place is None:
            raise
        return _show_failed_handler(options, scenario, f"{type(error).__name__}: {error} ({place})")
    verdicts: list[Verdict] = []
    if history is not None and options.check != "none":
        promised = None if options.check == "all" else description(scenario).promised
        verdicts = check(history, promised)
    violated = any(verdict.outcome == "violated" for verdict in verdicts)
    note = ""
    if violated:
        note = _why_liars_may_violate(scenario) or _why_crashes_may_violate(scenario)
    _show(options, scenario, outcome, history, verdicts, note)
    return 1 if violated else 0


def _simulate(
    options: argparse.Namespace, scenario: Scenario
) -> tuple[SimulationResult, History | None]:
    """Simulate, and return the history where it is to be checked."""
    from flexgroup.trace.reader import load_history, read_run
    from flexgroup.worlds.simulator.scenario import record_scenario

    with progress_bar(f"simulating {scenario.stack}", wanted=not options.json) as progress:
        if options.out is None:
            return _run_in_memory(scenario, progress)
        outcome = record_scenario(scenario, options.out, options.force, progress, options.part_rows)
        history = None
        if options.check != "none":
            history = load_history(options.out, read_run(options.out, outcome.run))
        return outcome, history


def _handler_that_raised(scenario: Scenario, error: Exception) -> str | None:
    """Return the place in a layer at which an error arose, if it did there."""
    from flexgroup.protocols.catalogue import parse_stack

    files = {
        getattr(sys.modules.get(layer.__module__), "__file__", None)
        for layer in parse_stack(scenario.stack).layers
    }
    inner = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    if not inner:
        return None
    return f"{inner[-1].name}, {Path(inner[-1].filename).name}, line {inner[-1].lineno}"


def _show_failed_handler(options: argparse.Namespace, scenario: Scenario, failure: str) -> int:
    """Tell of a violation that leaves nothing else to tell: the simulation cannot go on."""
    from flexgroup.properties.verdict import Outcome, Verdict

    explanation = (
        f"a handler raised {failure}\n"
        f"the explorer looks for a smallest run of it, as a script: flexgroup explore --protocol "
        f"'{scenario.stack}' --processes 2 --message 0:0,1 --message 1:0,1"
    )
    verdict = Verdict("conduct", Outcome.VIOLATED, 1, None, explanation)
    if options.json:
        print_json({"run": scenario.run, "verdicts": [verdict.to_json()]})
    else:
        print(verdict)
    return 1


def _processes(options: argparse.Namespace) -> int:
    from flexgroup.worlds.simulator.scenario import parse_groups

    given: int | None = options.processes
    return (sum(map(len, parse_groups(options.groups))) or 16) if given is None else given


def _run_in_memory(scenario: Scenario, progress: Progress) -> tuple[SimulationResult, History]:
    from flexgroup.trace.collector import Collector
    from flexgroup.worlds.simulator.scenario import description, run_scenario

    collector = Collector()
    outcome = run_scenario(scenario, collector, progress)
    faulty = description(scenario).faulty
    return outcome, collector.history(outcome.run, scenario.processes, outcome.complete, faulty)


def _why_liars_may_violate(scenario: Scenario) -> str:
    """Return why a violation says little where somebody lies, or nothing where it is a finding."""
    from flexgroup.protocols.catalogue import parse_stack

    plan = parse_stack(scenario.stack)
    if not scenario.faults.liars or plan.tolerates_liars:
        return ""
    return (
        f"'{plan.name}' tolerates no Byzantine process (faults tolerated by {plan.top.name}: "
        f"{plan.top.faults_in_words}): what it promises is for runs without"
    )


def _why_crashes_may_violate(scenario: Scenario) -> str:
    """Return why a violation says little after a crash, or nothing where it is a finding."""
    from flexgroup.protocols.catalogue import Fault, parse_stack

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


def _show(
    options: argparse.Namespace,
    scenario: Scenario,
    outcome: SimulationResult,
    history: History | None,
    verdicts: list[Verdict],
    note: str,
) -> None:
    from flexgroup.metrics.costs import costs
    from flexgroup.worlds.simulator.scenario import parse_groups

    replicas = parse_groups(scenario.groups)
    measured = costs(history, replicas) if history is not None else None
    if options.json:
        print_json(
            {
                **asdict(outcome),
                "out": str(options.out) if options.out else None,
                "costs": measured.to_json() if measured else None,
                "verdicts": [verdict.to_json() for verdict in verdicts],
                "note": note or None,
            }
        )
        return
    print(f"run {outcome.run}")
    print(
        f"  {outcome.multicasts} multicasts, {outcome.answered} answered, "
        f"{outcome.deliveries} deliveries, {outcome.events} events; "
        f"{'complete' if outcome.complete else 'cut short'}"
    )
    print(
        f"  throughput {outcome.throughput:,.0f} messages/s, "
        f"mean latency {outcome.mean_latency * 1000:.3f} ms"
    )
    if measured:
        print(f"  {measured}")
    for verdict in verdicts:
        print(verdict)
    if note:
        print(f"note: {note}")
    if options.out:
        print(f"trace written to {options.out}")
