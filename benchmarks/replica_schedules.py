"""100,000 random schedules for each protocol among groups of replicas: which promises break?

Groups of three, two or three of them, with four to six messages; processes crash, also in the
middle of a step, start again where the protocol stores what it needs for that, and suspect each
other wrongly. In eleven of twenty-two, what is sent to who has started again is lost until its
sender has met it, as on servers. Where a protocol is made for liars, groups have four members, of
which one lies, or one member, and nobody crashes; with --liars 2, one more lies than it is made
for. Every other schedule draws priorities, as in probabilistic concurrency testing. Each is fixed
by its number. Prints, per stack, how many schedules were run and how many of them had crashes,
restarts and suspicions; of a failure its seed and its script, for `flexgroup replay`. Exits with 1
if there is one.

    python benchmarks/replica_schedules.py --schedules 100000 --workers 2
    python benchmarks/replica_schedules.py --stack 'leader white-box' --seed 4711
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.table import Fault
from flexgroup.testing.replica_schedules import Load, Outcome, replica_schedule

STACKS = (
    "leader paxos",
    "leader paxos skeen-cft",
    "leader paxos df-cft",
    "leader paxos dcc-cft",
    "leader paxos ft-abcast",
    "leader white-box",
    "leader primcast",
    "leader protected-memory ramcast",
    "log byzcast",
    "log byzcast/binary",
    "log byzcast/chain",
    "log dcc-bft",
    "log dcc-bft/sealed",
    "pbft byzcast",
    "pbft dcc-bft",
)

SIZES = ((3, 3), (3, 3, 3))
SIZES_WITH_LIARS = ((4, 4), (4, 1, 1), (1, 4, 1), (4, 4, 4))

AT_ONCE = 1_000


def among_liars(plan: StackPlan, seed: int, liars: int) -> Outcome:
    load = Load(
        multicasts=2 + seed % 4,
        depth=(0, 3)[seed % 2],
        liars=liars,
        first_may_lie=plan.protocols[-2].name != "log",
    )
    return replica_schedule(plan, SIZES_WITH_LIARS[seed // 2 % 4], load, seed)


def performed(stack: str, seed: int, liars: int) -> Outcome:
    """The schedule of this number."""
    plan = parse_stack(stack)
    if plan.top.layer.AMONG_LIARS:
        return among_liars(plan, seed, liars)
    restarts = Fault.RESTARTS in plan.top.faults
    load = Load(
        multicasts=4 + seed % 3,
        crashes=1 + seed // 2 % 4,
        suspicions=seed // 3 % 4,
        down=(1, 1, 3)[seed // 7 % 3],
        restarts=restarts,
        depth=(0, 3)[seed % 2],
        one_group=plan.top.name == "paxos",
        meets_late=seed // 11 % 2 == 1,
    )
    return replica_schedule(plan, SIZES[seed // 2 % len(SIZES)], load, seed)


def search(stack: str, seeds: range, liars: int) -> tuple[Counter[str], list[int]]:
    """How many of these schedules had what in them, and the seeds of those that broke a promise."""
    counts: Counter[str] = Counter()
    broken: list[int] = []
    for seed in seeds:
        outcome = performed(stack, seed, liars)
        verbs = {command.split()[0].removesuffix("-after") for command in outcome.commands}
        counts.update(verbs & {"crash", "recover", "suspect"})
        if outcome.broken:
            counts[outcome.broken.split(":")[0]] += 1
            broken.append(seed)
    return counts, broken


def main() -> int:
    parser = argparse.ArgumentParser(description="Random schedules of groups of replicas.")
    parser.add_argument("--schedules", type=int, default=100_000, help="per stack")
    parser.add_argument("--first", type=int, default=0, help="the number of the first schedule")
    parser.add_argument("--stack", action="append", help="only this one; may be given again")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--liars", type=int, default=1, help="of each group of four")
    parser.add_argument("--seed", type=int, help="only this schedule, with its script")
    options = parser.parse_args()
    failures = 0
    with ProcessPoolExecutor(options.workers) as pool:
        for stack in options.stack or STACKS:
            if options.seed is not None:
                outcome = performed(stack, options.seed, options.liars)
                print(f"{stack}, seed {options.seed}: {outcome.broken or 'no promise broken'}")
                print(outcome.script())
                failures += bool(outcome.broken)
                continue
            start = time.perf_counter()
            end = options.first + options.schedules
            parts = [
                range(first, min(first + AT_ONCE, end))
                for first in range(options.first, end, AT_ONCE)
            ]
            counts: Counter[str] = Counter()
            broken: list[int] = []
            for some, seeds in pool.map(
                search, [stack] * len(parts), parts, [options.liars] * len(parts)
            ):
                counts += some
                broken += seeds
            seconds = time.perf_counter() - start
            had = ", ".join(
                f"{counts.pop(verb, 0):,} with {noun}"
                for verb, noun in (
                    ("crash", "crashes"),
                    ("recover", "restarts"),
                    ("suspect", "suspicions"),
                )
            )
            kinds = ", ".join(f"{count:,} break {kind}" for kind, count in sorted(counts.items()))
            print(
                f"{stack}: {options.schedules:,} schedules, {options.schedules / seconds:,.0f}/s, "
                f"{had}: {kinds or 'no promise broken'}",
                flush=True,
            )
            if broken:
                failures += 1
                print(f"  seeds {broken[:10]}; the first one:")
                print(performed(stack, broken[0], options.liars).script())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
