"""How fast the plain-Python properties check a run, against sorting the same rows.

    python benchmarks/verify_speed.py [--deliveries 1000000] [--processes 16]
                                      [--destinations 4] [--senders processes|clients]

The run is correct, so every property reads all of it. Each is timed alone, with what it needs
of the preparation that all of them share, and then all together. The floor is np.lexsort of the
delivery rows by (process, step), timed in the same run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from flexgroup.properties.catalogue import PROPERTIES, check
from flexgroup.testing.large_runs import correct_run


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--destinations", type=int, default=4)
    parser.add_argument("--senders", choices=("processes", "clients"), default="processes")
    options = parser.parse_args()
    messages = options.deliveries // options.destinations
    clients = options.senders == "clients"
    history = correct_run(messages, options.processes, options.destinations, clients)
    rows = history.deliveries
    shuffled = np.random.default_rng(2).permutation(len(rows.process))
    process, step = rows.process[shuffled], rows.step[shuffled]
    floor = min(seconds(lambda: np.lexsort((step, process))) for _ in range(3))

    print(f"{len(rows.process)} deliveries of {messages} messages, senders: {options.senders}")
    print(f"{'floor: sorting the rows':28}{floor:8.3f} s")
    for name in [*PROPERTIES, "all together"]:
        names = PROPERTIES if name == "all together" else [name]
        took = seconds(partial(check, history, names))
        print(f"{name:28}{took:8.3f} s {took / floor:8.1f} x floor")


if __name__ == "__main__":
    main()
