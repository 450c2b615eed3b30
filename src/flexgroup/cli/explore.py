"""`flexgroup explore`: every schedule of a small system, or many of a larger one."""

from __future__ import annotations

import argparse

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    flag,
    from_one,
    path_here,
    repeated,
    seconds,
    stack_option,
)
from flexgroup.cli.liars import liar_options
from flexgroup.cli.on_spark import spark_options

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
        Option(
            "--replicas", metavar="SIZES",
            help="divide the processes into groups of replicas: 3,1 for 0 to 2, and 3",
        ),
        repeated(
            "--view", "P,Q",
            "the members of the next view, of which each process is told at any time",
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
            help="how many processes search, or walk (1)",
        ),
        Option(
            "--memory", type=from_one, metavar="MB",
            help="hold states in so much memory, and the others in temporary files (all in memory)",
        ),
        flag("--no-minimise", "show a counterexample as it was found"),
        Option(
            "--out", type=path_here, metavar="DIR",
            help="write counterexamples there: script, diagram (SVG), trace set",
        ),
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
                    ("restarts", "who has crashed starts again, with what it has stored"),
                )
            ),
            repeated("--crash", "P", "this process may stop, and no other that is not named"),
            *liar_options(),
            repeated("--suspect", "P:Q", "P may take Q for crashed, and no other pair not named"),
        ),
        Group(
            "servers instead of processes, with changes while messages are under way",
            Option(
                "--servers", type=from_one, metavar="N",
                help="how many servers, numbered from 1; --group 1,2 is a group with members at "
                "these, the first one called A, and --message 1:A,B multicasts from server 1",
            ),
            repeated("--join", "S:G", "a client of this server joins this group, as in 2:A"),
            repeated("--leave", "S:G", "the member at this server leaves this group"),
            *(
                Option(f"--{name}", type=int, default=0, metavar="N", help=f"{what} (0)")
                for name, what in (
                    ("cuts", "a link falls silent, for a while or for good"),
                    ("breaks", "a link breaks and is replaced"),
                    ("delays", "a beat passes while something is under way"),
                )
            ),
            Option(
                "--ticks", type=int, default=8, metavar="N",
                help="so many beats pass; silence is noticed after 4 (8)",
            ),
            Option(
                "--replay", type=path_here, metavar="FILE",
                help="perform a script that was printed for servers, and nothing else",
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
                "--save", type=path_here, metavar="FILE",
                help="where to save a search that is stopped",
            ),
            Option(
                "--resume", type=path_here, metavar="FILE",
                help="go on with a search that was saved",
            ),
        ),
        Group(
            "on Spark, where one machine takes too long or has too little memory",
            *spark_options(),
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
    if options.replay is not None or options.servers is not None:
        from flexgroup.cli.explore_servers import explore_servers, replay_servers

        if options.replay is not None:
            return replay_servers(options.replay)
        return explore_servers(options)
    from flexgroup.cli.exploration import explore

    return explore(options)
