"""Correct runs of any size, made up: for benchmarks, and for tests that tamper with them."""

from __future__ import annotations

import numpy as np

from flexgroup.core.message import ORIGIN_BITS
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, Packets

IN_FLIGHT = 64
"""A message is multicast when this many before it in the order are not yet delivered."""


def correct_run(
    messages: int, processes: int, destinations: int, clients: bool, packets: bool = True
) -> History:
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
    sends = receives = Packets()
    if packets:  # they come behind everything else, process by process
        taken = np.bincount(process)
        sends = _packets(origin[about], to, message[about], about * 2, taken)
        taken += np.bincount(origin[about], minlength=len(taken))
        receives = _packets(to, origin[about], message[about], about * 2 + 1, taken)
    return History(
        run="made-up",
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
        receives=receives,
    )


def _packets(process: Ints, peer: Ints, message: Ints, moment: Ints, taken: Ints) -> Packets:
    """Return packets whose steps follow those that are taken: so many at each process."""
    order = np.lexsort((moment, process))
    process = process[order]
    nothing = np.zeros(len(order), dtype=np.int64)
    return Packets(
        process=process,
        step=taken[process] + np.arange(len(order)) - np.searchsorted(process, process),
        time=moment[order],
        message=message[order],
        peer=peer[order],
        packet=("Data",),
        packet_code=nothing,
    )
