"""The simulator's speed with a thousand processes, beside that of benchmarks/simulator_speed.py.

One atomic broadcast among n processes, each of its packets sent and received once, with and
without writing the trace; beside it, the 16 processes of the other benchmark. The experiment
`vcube-faultfree` runs both strategies and writes the trace: the last line is for the two together.

Figures are packets that arrived per second of CPU time; in either benchmark, what is imported
is imported before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulator_speed import ours_in_a_process

from flexgroup._pure import compiled
from flexgroup.trace import writer
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario, run_scenario

NETWORK = "neko:contention=no"
STACKS = ("all2all-atomic", "vcube-atomic")


def one_run(stack: str, processes: int, writing: bool) -> tuple[int, float]:
    """Packets, and the seconds they took."""
    assert writer  # imported, which takes a while
    scenario = Scenario(stack, processes, 0, "broadcast", NETWORK, casts="0@0s")
    with tempfile.TemporaryDirectory() as directory:
        start = time.process_time()
        written = Path(directory)
        outcome = record_scenario(scenario, written) if writing else run_scenario(scenario)
        return outcome.events, time.process_time() - start


def in_a_process(stack: str, processes: int, writing: bool) -> tuple[int, float]:
    """In a process of its own, so that no run finds memory that another left in pieces."""
    arguments = ["--one", stack, "--processes", str(processes), *(["--write"] if writing else [])]
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    packets, seconds = json.loads(done.stdout)
    return int(packets), float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many rounds counts")
    parser.add_argument("--one", choices=STACKS, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = options.processes
    if options.one:
        print(json.dumps(one_run(options.one, size, options.write)))
        return
    print(f"{'compiled' if compiled() else 'pure Python'}, the best of {options.rounds} rounds")
    few: list[float] = []
    many: dict[tuple[str, bool], list[tuple[int, float]]] = {}
    # Interleaved, so that a noisy moment of the machine meets all of them alike.
    for _ in range(options.rounds):
        few.append(ours_in_a_process(120_000, pure=not compiled())["rate"])
        for stack in STACKS:
            for writing in (False, True):
                found = many.setdefault((stack, writing), [])
                found.append(in_a_process(stack, size, writing))
    best = max(few)
    print(f"{'skeen, 16 processes, trace written':52}{best:12,.0f} packets/s")
    total_packets, total_seconds = 0, 0.0
    for (stack, writing), runs in many.items():
        packets, seconds = min(runs, key=lambda run: run[1])
        name = f"{stack}, {size} processes, trace {'written' if writing else 'not written'}"
        show(name, packets / seconds, best)
        if writing:
            total_packets += packets
            total_seconds += seconds
    show("both, trace written, as in the experiment", total_packets / total_seconds, best)


def show(name: str, rate: float, best: float) -> None:
    print(f"{name:52}{rate:12,.0f} packets/s = {rate / best:.2f} of that")


if __name__ == "__main__":
    main()
