"""How many schedules of whole servers are executed and judged in a second of CPU time.

Four servers, six clients and 200 messages, within ten virtual seconds and within one; what the
servers record is judged, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import replace

from flexgroup._pure import compiled
from flexgroup.membership.timings import Timings
from flexgroup.virtual.campaign import execute
from flexgroup.virtual.checks import problems
from flexgroup.virtual.schedule import Load, draw_schedule

LOADS = {
    "ten seconds": Load(seconds=10.0),
    "one second": Load(seconds=1.0),
    "ten seconds, two faults": Load(seconds=10.0, faults=2),
    "four idle servers for ten seconds": Load(clients=1, messages=1, seconds=10.0, changes=0),
}
STACKS = ("reliable atomic", "skeen", "causal-rst", "reliable causal")


def schedules_a_second(load: Load, seeds: int, usual: bool = False) -> float:
    """The rate, with the patience that servers have by default if it is to be as `usual`."""
    drawn = [draw_schedule(seed, stack, load) for seed in range(seeds) for stack in STACKS]
    if usual:
        drawn = [replace(schedule, patience=Timings().patience) for schedule in drawn]
    problems(execute(drawn[0]))  # what is imported and compiled the first time does not count
    began = time.process_time()
    for schedule in drawn:
        problems(execute(schedule))
    return len(drawn) / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    gc.freeze()  # as the command that runs many of them does
    rates = {name: schedules_a_second(load, options.seeds) for name, load in LOADS.items()}
    ten = LOADS["ten seconds"]
    rates["ten seconds, default patience"] = schedules_a_second(ten, options.seeds, usual=True)
    if options.json:
        print(json.dumps({"compiled": compiled(), "rates": rates}))
        return
    print("compiled" if compiled() else "pure Python")
    for name, rate in rates.items():
        print(f"{name:34} {rate:6.1f} schedules a CPU second")


if __name__ == "__main__":
    main()
