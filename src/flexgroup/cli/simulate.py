"""`flexgroup simulate`: run a stack in the simulator, record it, check what it promises."""

from __future__ import annotations

import argparse

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
            help="random:K, random:N, tpcc, partitioned:GxC, alternating:GxC, broadcast; "
            "any with @SHARE (random:4)",
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

CHOSEN = tuple(
    option.names[0].removeprefix("--").replace("-", "_")
    for part in COMMAND.options[1:]
    for option in (part.options if isinstance(part, Group) else (part,))
)
"""The options that are arguments of `flexgroup.simulate`, by these names."""


def run(options: argparse.Namespace) -> int:
    from flexgroup.runs.simulated import HandlerRaisedError, simulate

    chosen = {name: getattr(options, name) for name in CHOSEN}
    try:
        with progress_bar(f"simulating {options.stack}", wanted=not options.json) as progress:
            simulated = simulate(options.stack, **chosen, progress=progress)
    except HandlerRaisedError as error:
        if options.json:
            print_json({"run": error.run, "verdicts": [error.verdict.to_json()]})
        else:
            print(error.verdict)
        return 1
    if options.json:
        print_json(simulated.to_json() | {"out": str(options.out) if options.out else None})
    else:
        print(simulated)
        if options.out:
            print(f"trace written to {options.out}")
    return 1 if simulated.violated else 0
