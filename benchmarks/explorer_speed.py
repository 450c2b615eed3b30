"""How fast the explorer is, and what a state costs, beside a bare search over tuples.

    python benchmarks/explorer_speed.py [--workers 2]
    python benchmarks/explorer_speed.py --beyond 2048 [--workers 2]

Skeen with four messages among three processes, over channels that reorder: every state, no
reduction. What several workers gain shows in a scope of 16 million states; it is left out in pure
Python, where it takes an hour. What they may lose shows in one of Paxos that is over in seconds.
With --beyond, a scope of more than 50 million states is searched with so many MB of memory, and
nothing else is done. The bare search is the yardstick for what Python on this machine can do at
all: breadth first over the states of a counter for each of some processes, kept as tuples in a set,
with nothing fingerprinted, judged or remembered for paths.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

from flexgroup._pure import compiled
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

SMALL = from_clients(2, (0, 1), (0, 1), fifo=False)
LARGER = from_clients(3, (0, 1), (1, 2), (0, 2), (0,), fifo=False)
LARGE = from_clients(3, (0, 1), (1, 2), (0, 2), (0, 1), fifo=False)
BEYOND = from_clients(4, (0, 1), (1, 2), (0, 2), (0,), (1,), (3,), (3,), fifo=False)
STATES_BEYOND = 3_995_099 * 13
"""What happens at process 3, and what elsewhere, goes on independently: their states multiply."""

PAXOS = Scope(
    processes=3,
    casts=(PlannedCast(0, (0, 1, 2)), PlannedCast(1, (0, 1, 2))),
    bounds=Bounds(crashes=1, suspicions=1),
    crashing=(0,),
    suspecting=((1, 0),),
    replicas=((0, 1, 2),),
)

FULL = SearchOptions(reduce=False, symmetry=False)

WANTED = 100_000 if compiled() else 30_000
MOST_BYTES = 400
GAIN = 1.6
"""What two workers should gain."""
LOSS = 1.1
"""How much longer they may take, whatever the scope."""
ROUNDS = 3


def bare_search(processes: int, steps: int) -> tuple[int, int]:
    """States and transitions of so many counters that each go up by one, to a limit."""
    first = (0,) * processes
    seen = {first}
    level = [first]
    transitions = 0
    while level:
        following = []
        for state in level:
            for process, count in enumerate(state):
                if count < steps:
                    transitions += 1
                    after = (*state[:process], count + 1, *state[process + 1 :])
                    if after not in seen:
                        seen.add(after)
                        following.append(after)
        level = following
    return len(seen), transitions


def bare_speed(_: int = 0) -> float:
    began = time.monotonic()
    _, transitions = bare_search(6, 6)
    return transitions / (time.monotonic() - began)


def peak() -> int:
    """Bytes that this process has had in memory at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the process was forked from
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_of_one_search() -> None:
    """For a process of its own: what a large search adds to a process that is ready to search."""
    plan = parse_stack("skeen")
    explore(plan, SMALL, FULL)
    before = peak()
    outcome = explore(plan, LARGER, FULL)
    print(outcome.states, peak() - before, outcome.memory)


def shown(outcome: ExplorationResult, workers: int) -> float:
    """Print how fast a search was, and return its transitions per second."""
    speed = outcome.transitions / outcome.seconds
    print(
        f"explorer, {workers} worker{'s' if workers > 1 else ' '}:                 "
        f"{speed:>12,.0f} transitions/s  ({outcome.states:,} states, "
        f"{outcome.transitions:,} transitions, {outcome.seconds:.2f} s)"
    )
    return speed


def gain(plan: StackPlan, workers: int) -> float:
    """Print and return how much faster several workers are in a large scope."""
    alone, together = [explore(plan, LARGE, FULL, workers=size) for size in (1, workers)]
    if (alone.states, alone.transitions) != (together.states, together.transitions):
        raise AssertionError("several workers count other states than one")
    ratio = shown(together, workers) / shown(alone, 1)
    print(
        f"{workers} workers are {ratio:.2f} times as fast as one, and sent each other "
        f"{together.posted:,} states, {together.bytes_exchanged / together.states:.1f} bytes for "
        "each that there is"
    )
    return ratio


def loss(workers: int) -> float:
    """Print and return how much longer several workers take where they gain nothing."""
    plan = parse_stack("leader paxos")
    alone, together = (
        min(explore(plan, PAXOS, FULL, workers=size).seconds for _ in range(ROUNDS))
        for size in (1, workers)
    )
    print(
        f"in {PAXOS.described()} of Paxos, one worker takes {alone:.2f} s, and {workers} "
        f"{together:.2f} s: {together / alone:.2f} times as long"
    )
    return together / alone


def beyond_memory(plan: StackPlan, megabytes: int, workers: int) -> None:
    """Search a scope that does not fit into so much memory."""
    outcome = explore(plan, BEYOND, FULL, workers=workers, memory=megabytes << 20)
    shown(outcome, workers)
    if outcome.states != STATES_BEYOND:
        raise AssertionError(f"there are {STATES_BEYOND:,} states")
    whole = peak() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 * (workers > 1)
    print(
        f"with {megabytes} MB: {outcome.in_files:,} visited states in files, "
        f"{outcome.memory >> 20} MB of states in memory at the end; "
        f"{whole >> 20} MB were resident at most, in all processes together"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--beyond", type=int, metavar="MB", help="search more than so much holds")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        memory_of_one_search()
        return 0
    plan = parse_stack("skeen")
    print("compiled" if compiled() else "pure Python")
    if options.beyond:
        beyond_memory(plan, options.beyond, options.workers)
        return 0
    with get_context("fork").Pool(options.workers) as pool:
        bare = sum(pool.map(bare_speed, range(options.workers)))
    print(f"bare search over tuples, {options.workers} processes: {bare:>12,.0f} transitions/s")
    best = 0.0
    for workers in (1, options.workers):
        outcome = explore(plan, LARGER, FULL, workers=workers)
        best = max(best, shown(outcome, workers))
    text = subprocess.run(
        [sys.executable, __file__, "--memory"], capture_output=True, text=True, check=True
    ).stdout
    states, grown, counted = map(int, text.split())
    per_state = grown / states
    print(f"memory: {per_state:.0f} bytes a state by the system, {counted / states:.0f} counted")
    fine = best >= WANTED and per_state <= MOST_BYTES
    if compiled() and options.workers > 1:
        fine = gain(plan, options.workers) >= GAIN and fine
        fine = loss(options.workers) <= LOSS and fine
    with_several = f", {GAIN} times that with several workers, and never {LOSS} times as long"
    print(
        f"wanted: {WANTED:,} transitions/s and at most {MOST_BYTES} bytes a state"
        f"{with_several if compiled() else ''}: {'reached' if fine else 'NOT reached'}"
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
