"""`flexgroup demo`: the main job on embedded defaults, in well under a minute.

Simulates Skeen, D&F and DCC under a growing number of clients, checks every promised
property of every run, and draws latency against throughput.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import declare, print_json
from flexgroup.cli.progress import progress_bar

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands

STACKS = ("skeen", "df", "dcc", "dcc/rv")
CLIENTS = (1, 2, 4, 8, 16, 32, 64)
WORKLOAD = "random:8"
DURATION = 0.05


def add_to(commands: Commands) -> None:
    parser = declare(
        commands,
        "demo",
        run,
        "simulate four protocols, check them and draw a figure",
        "flexgroup demo --out runs/demo",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), metavar="DIR",
                        help="where traces and the figure go (runs/demo)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="fixes everything (1)")


def run(options: argparse.Namespace) -> int:
    from flexgroup.cli.verdicts import any_violated, check_run, print_verdicts, read_back
    from flexgroup.metrics.figures import Curve, latency_against_throughput
    from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

    traces = options.out / "traces"
    scenarios = [
        Scenario(stack, 16, clients, WORKLOAD, "lan", DURATION, options.seed)
        for stack in STACKS
        for clients in CLIENTS
    ]
    curves = {stack: Curve(stack) for stack in STACKS}
    rows: list[dict[str, Any]] = []
    violated = []
    with progress_bar("simulating and checking", wanted=not options.json) as progress:
        for number, scenario in enumerate(scenarios):
            outcome = record_scenario(scenario, traces, force=True)
            verdicts = check_run(scenario, read_back(traces, outcome.run))
            if any_violated(verdicts):
                violated.append((outcome.run, verdicts))
            curves[scenario.stack].add(outcome.throughput, outcome.mean_latency)
            rows.append(
                {
                    "stack": scenario.stack,
                    "clients": scenario.clients,
                    "throughput": outcome.throughput,
                    "latency_ms": outcome.mean_latency * 1000,
                    "properties": {v.property: v.outcome.value for v in verdicts},
                }
            )
            progress((number + 1) / len(scenarios))
    figure = options.out / "latency-throughput.svg"
    title = f"16 processes, {WORKLOAD}, 1 to 64 closed-loop clients"
    latency_against_throughput(list(curves.values()), figure, title)
    if options.json:
        print_json({"figure": str(figure), "traces": str(traces), "rows": rows})
    else:
        for stack in STACKS:
            best = max(
                (row for row in rows if row["stack"] == stack), key=lambda row: row["throughput"]
            )
            checked = ", ".join(best["properties"])
            print(
                f"{stack:8} up to {best['throughput']:8,.0f} messages/s at "
                f"{best['latency_ms']:6.3f} ms with {best['clients']:2} clients; "
                f"checked: {checked}"
            )
        for name, verdicts in violated:
            print(f"VIOLATED in {name}")
            print_verdicts([v for v in verdicts if v.outcome.value == "violated"])
        print(f"{len(rows)} runs, {len(violated)} with a violation")
        print(f"figure: {figure}\ntraces: {traces}")
    return 1 if violated else 0
