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

from flexgroup.core.message import ORIGIN_BITS
from flexgroup.properties.catalogue import PROPERTIES, check
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, Packets

IN_FLIGHT = 64
"""A message is multicast when this many before it in the order are not yet delivered."""


def correct_run(messages: int, processes: int, destinations: int, clients: bool) -> History:
    """Messages to random sets, all delivered in one order, from processes or from 64 clients."""
    random = np.random.default_rng(1)
    number = np.arange(messages)
    origin = random.integers(0, 64, messages) + processes if clients else number % processes
    turn = np.argsort(origin, kind="stable")
    seq = np.empty(messages, dtype=np.int64)
    firsts = np.searchsorted(origin[turn], origin[turn])
    seq[turn] = number - firsts
    message = (seq << ORIGIN_BITS) | origin
    chosen = np.argsort(random.random((messages, processes)), axis=1)[:, :destinations]
    targets = np.sort(chosen, axis=1).astype(np.int64)

    to = targets.ravel()
    about = np.repeat(number, destinations)
    process = np.concatenate([origin, to])
    moment = np.concatenate([number * 2, (about + IN_FLIGHT) * 2 + 1])
    is_delivery = np.arange(len(process)) >= messages
    what = np.concatenate([number, about])
    order = np.lexsort((moment, process))
    process, moment, what = process[order], moment[order], what[order]
    step = np.arange(len(process)) - np.searchsorted(process, process)
    own, arrived = ~is_delivery[order], is_delivery[order]
    sends = _packets(origin[about], to, message[about], about * 2)
    return History(
        run="benchmark",
        processes=processes,
        complete=True,
        multicasts=Multicasts(
            process=process[own],
            step=step[own],
            time=moment[own],
            message=message[what[own]],
            offsets=np.arange(messages + 1) * destinations,
            targets=targets[what[own]].ravel(),
        ),
        deliveries=Deliveries(
            process=process[arrived],
            step=step[arrived],
            time=moment[arrived],
            message=message[what[arrived]],
            depth=np.ones(int(arrived.sum()), dtype=np.int64),
        ),
        sends=sends,
        receives=_packets(to, origin[about], message[about], about * 2 + 1),
    )


def _packets(process: Ints, peer: Ints, message: Ints, moment: Ints) -> Packets:
    order = np.lexsort((moment, process))
    nothing = np.zeros(len(order), dtype=np.int64)
    return Packets(
        process=process[order],
        step=nothing,
        time=moment[order],
        message=message[order],
        peer=peer[order],
        packet=("Data",),
        packet_code=nothing,
    )


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
