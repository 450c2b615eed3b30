"""`flexgroup explore`: every schedule of a small system, or many of a larger one."""

from __future__ import annotations

import argparse
from pathlib import Path

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    flag,
    from_one,
    protocols_option,
    repeated,
    seconds,
    stack_option,
)

COMMAND = Command(
    "explore",
    "try every schedule of a small system, or many of a larger one",
    "flexgroup explore --protocol dcc-published --processes 4 "
    "--message 0,2 --message 0,2 --message 0,3 --message 2,3",
    (
        stack_option(required=False),
        Option("--processes", type=int, metavar="N", help="how many processes"),
        repeated(
            "--message", "[ORIGIN:]P,Q",
            "a multicast to these processes, by a client of its own or by ORIGIN",
        ),
        repeated(
            "--group", "P,Q",
            "tell the layers that messages stay within this group, or one of several",
        ),
        flag("--any-order", "what one origin multicasts may come in any order, not only as listed"),
        Option("--channels", choices=("fifo", "reordering"), default="fifo", help="(fifo)"),
        repeated(
            "--property", "NAME", "check this property instead of what the stack promises"
        ),
        repeated(
            "--sometimes", "A<B",
            "some process must deliver message A before B in some run, as in a<b",
        ),
        flag("--keep-going", "after a violation, go on and look for other properties"),
        Option(
            "--reduction", choices=("both", "order", "symmetry", "none"), default="both",
            help="order: let one process move where that is enough; symmetry: clients that "
            "multicast alike are one (both)",
        ),
        repeated(
            "--all-destinations", "NxM",
            "instead of one system, all of N processes and M messages to two or more",
        ),
        Option(
            "--beside", metavar="P",
            help="with --all-destinations: another stack, for comparison",
        ),
        Option(
            "--workers", type=from_one, default=1, metavar="N",
            help="how many processes search (1)",
        ),
        flag("--no-minimise", "show a counterexample as it was found"),
        Option(
            "--out", type=Path, metavar="DIR",
            help="write counterexamples there: script, diagram (SVG), trace set",
        ),
        protocols_option(),
        Group(
            "what may go wrong, at most so often in a run",
            *(
                Option(f"--{name}", type=int, default=0, metavar="N", help=f"{what} (0)")
                for name, what in (
                    ("losses", "packets are lost"),
                    ("duplicates", "packets are there twice"),
                    ("crashes", "processes stop"),
                    ("suspicions", "a process is taken for crashed that is not"),
                    ("timers", "timers run out"),
                )
            ),
        ),
        Group(
            "bounds, and going on after them",
            Option("--max-states", type=from_one, metavar="N"),
            Option("--max-depth", type=from_one, metavar="N"),
            Option("--max-seconds", type=seconds, metavar="S"),
            Option(
                "--max-memory", type=from_one, metavar="MB", help="of visited states and frontier"
            ),
            Option(
                "--save", type=Path, metavar="FILE", help="where to save a search that is stopped"
            ),
            Option(
                "--resume", type=Path, metavar="FILE", help="go on with a search that was saved"
            ),
        ),
        Group(
            "walks, where there are too many schedules",
            Option(
                "--walks", type=from_one, metavar="N", help="take so many random schedules instead"
            ),
            Option(
                "--pct", type=int, default=0, metavar="D",
                help="draw priorities, for bugs that need an order of D events",
            ),
            Option("--seed", type=int, default=1, help="fixes the walks (1)"),
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.cli.exploration import explore

    return explore(options)
