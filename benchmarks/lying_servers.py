"""Goodput of groups of replicas on real servers of which one lies, and whether promises are kept.

    python -m benchmarks.lying_servers [--stacks PBFT,BYZCAST] [--attacks silent,slow] [--csv FILE]

PBFT      one group of four servers, with keys for seals, in memory
BYZCAST   two groups of four, with messages to both: the first group is the root of the tree

A server lies, as `flexgroup server --attack KIND` has it: the primary of the first group, or the
last server, a backup. Each other server has a member process with its share of 64 closed loops of
64 bytes; what members at correct servers get back is the goodput. It is counted from a second after
the load began, so that a primary that is replaced has been by then. Servers record traces, which
takes them time, in every cell alike. In these, the liar is then named as faulty, and what the
stack promises to correct processes is verified on Spark. Counted are the checks that hold, and
those that are not told: a run that is not complete does not tell everything.

With `--csv`, the table that the experiment `liars` shows if it lies beside its page
(`runs/liars/elsewhere.csv`); rows are added to what is there.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from flexgroup.liars.named import ATTACKERS
from flexgroup.load.measurement import Summary
from flexgroup.load.processes import ProcessFailedError
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.spark.session import SMALL_JOB, start
from flexgroup.pipeline.verify import verify
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import read_runs
from flexgroup.trace.writer import write_run

sys.path.insert(0, str(Path(__file__).parent))  # the benchmarks beside this one

from network_speed import INSTALLED, Workload
from replicated_speed import Replicated

SIZE = 4
GROUPS = {"PBFT": 1, "PBFT BYZCAST": 2}
NOBODY = "nobody"
END_SECONDS = 15.0
"""How long servers may take to write down that a run has ended."""
HEAD = (
    "stack", "who lies", "goodput (messages/s)", "of that without a liar", "median latency (ms)",
    "longest (ms)", "promises verified", "load of the machine",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A stack, and who lies in which way; -1 stands for nobody."""

    stack: str
    liar: int = -1
    kind: str = ""

    @property
    def words(self) -> str:
        if self.liar < 0:
            return NOBODY
        return f"{'the primary' if self.liar == 0 else 'a backup'}, `{self.kind}`"


@dataclass(frozen=True)
class Measured:
    """What a cell came to, and the run that its servers recorded."""

    cell: Cell
    figures: Summary
    run: str
    load: float


def cells(stack: str, attacks: list[str]) -> list[Cell]:
    last = GROUPS[stack] * SIZE - 1
    return [Cell(stack), *(Cell(stack, liar, kind) for liar in (0, last) for kind in attacks)]


def measure(cell: Cell, workload: Workload, traces: Path) -> Measured:
    groups, load = GROUPS[cell.stack], os.getloadavg()[0]
    attacks = {cell.liar: cell.kind} if cell.liar >= 0 else {}
    before = recorded(traces)
    system = Replicated(
        cell.words, cell.stack, groups, groups > 1, size=SIZE, sealed=True, attacks=attacks,
        traces=traces,
    )  # fmt: skip
    figures = system.run(workload)
    until = time.monotonic() + END_SECONDS
    while not recorded(traces) - before and time.monotonic() < until:
        time.sleep(0.1)
    (run,) = [run for run in read_runs(traces) if run.run not in before]
    write_run(traces, replace(run, faulty=tuple(attacks)))
    return Measured(cell, figures, run.run, load)


def recorded(traces: Path) -> set[str]:
    return {path.stem for path in (traces / "runs").glob("[!_]*.parquet")}


def verified(traces: Path) -> dict[str, Counter[str]]:
    """How many promises of each run hold, are violated, are not told."""
    started = start(None, "lying servers", SMALL_JOB)
    found: dict[str, Counter[str]] = {}
    for row in verify(open_trace_set(started.spark, str(traces))).toArrow().to_pylist():
        found.setdefault(row["run"], Counter())[row["outcome"]] += 1
    started.spark.stop()
    return found


def told(outcomes: Counter[str]) -> str:
    words = {Outcome.HOLDS: "hold", Outcome.VIOLATED: "VIOLATED", Outcome.UNKNOWN: "not told"}
    return ", ".join(f"{outcomes[name]} {word}" for name, word in words.items() if outcomes[name])


def rows(measured: list[Measured], outcomes: dict[str, Counter[str]]) -> list[list[str]]:
    usual = {one.cell.stack: one.figures.messages_a_second for one in measured if one.cell.liar < 0}
    return [
        [
            one.cell.stack,
            one.cell.words,
            f"{one.figures.messages_a_second:,.0f}",
            f"{one.figures.messages_a_second / usual[one.cell.stack]:.0%}",
            f"{one.figures.p50_ms:.1f}",
            f"{one.figures.max_ms:.0f}",
            told(outcomes[one.run]),
            f"{one.load:.1f}, {os.cpu_count()} processors",
        ]
        for one in measured
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = {stack.split()[-1]: stack for stack in GROUPS}
    add("--stacks", type=lambda text: text.split(","), default=list(names))
    add("--attacks", type=lambda text: text.split(","), default=list(ATTACKERS))
    add("--clients", type=int, default=64)
    add("--duration", type=float, default=2.0, help="measured seconds of a cell (2)")
    add("--csv", type=Path)
    options = parser.parse_args()
    for given, known in ((options.stacks, names), (options.attacks, ATTACKERS)):
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from: {', '.join(known)}")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    workload = Workload(SIZE, options.clients, 64, options.duration)
    measured = []
    # Who writes the trace of a server outlives it for a moment.
    with tempfile.TemporaryDirectory(dir=INSTALLED, ignore_cleanup_errors=True) as folder:
        traces = Path(folder)
        for name in options.stacks:
            for cell in cells(names[name], options.attacks):
                try:
                    measured.append(measure(cell, workload, traces))
                except ProcessFailedError as problem:
                    print(f"{cell.stack}, {cell.words}: {problem}", file=sys.stderr)
                    return 1
                print(".", end="", file=sys.stderr, flush=True)
        outcomes = verified(traces)
    found = rows(measured, outcomes)
    print()
    for row in (HEAD, *found):
        print(" | ".join(row))
    if options.csv is not None:
        is_new = not options.csv.exists()
        with options.csv.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([HEAD, *found] if is_new else found)
    return 1 if any(counts[Outcome.VIOLATED] for counts in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
