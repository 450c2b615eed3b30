"""What the trees over VCube save, and what a missing process saves, for each order of sending.

The paper on atomic broadcast over VCube leaves open in which order a process goes through its
neighbours (`for all p`, lines 15 and 25), whether its own timestamp goes out before what it
forwards, as printed, or after, and which of two packets that arrive at the same time comes first.
This is a model of those lines and of the time that copies take, not the protocol. One broadcast,
no faults, or process 1 missing from the start. The first line is the order that `vcube-atomic` has.

The second table is about the order in which process 1 saves what the paper says. There, all
shortest ways to a process take equally long, and time in floating point decides which is the first:
it counts messages for several ways to add up the same times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import product

ASCENDING = "ascending"
DESCENDING = "descending"
BY_NUMBER = "by number"
"""Of the process, as in a sorted set of processes; the others are about clusters."""

FIRST_SENT, LAST_SENT = 1, -1
"""Which of two packets that arrive at the same time comes first."""

NOBODY = -1

Arrivals = Callable[[float, int], list[float]]
"""When so many copies arrive that a process begins to send at a time."""


def exact(now: float, copies: int) -> list[float]:
    """In tenths of a time unit, so that nothing is rounded."""
    return [now + copy + 9 for copy in range(1, copies + 1)]


def added_up(now: float, copies: int, rest: tuple[float, ...]) -> list[float]:
    found, sent = [], now
    for _ in range(copies):
        sent += 0.1
        arrival = sent
        for part in rest:
            arrival += part
        found.append(arrival)
    return found


ROUNDED: dict[str, Arrivals] = {
    "((now + 0.1 + 0.1 ...) + 0.8) + 0.1": lambda now, k: added_up(now, k, (0.8, 0.1)),
    "((now + 0.1 + 0.1 ...) + 0.1) + 0.8": lambda now, k: added_up(now, k, (0.1, 0.8)),
    "(now + 0.1 + 0.1 ...) + 0.9": lambda now, k: added_up(now, k, (0.9,)),
    "((now + k 0.1) + 0.8) + 0.1": lambda now, k: [
        now + i * 0.1 + 0.8 + 0.1 for i in range(1, k + 1)
    ],
    "((now + 0.8) + k 0.1) + 0.1": lambda now, k: [
        now + 0.8 + i * 0.1 + 0.1 for i in range(1, k + 1)
    ],
    "((now + 0.8) + 0.1) + k 0.1": lambda now, k: [
        now + 0.8 + 0.1 + i * 0.1 for i in range(1, k + 1)
    ],
    "now + ((k 0.1 + 0.8) + 0.1)": lambda now, k: [
        now + (i * 0.1 + 0.8 + 0.1) for i in range(1, k + 1)
    ],
}


class Awaited:
    """Confirmations that a process waits for before it confirms what came from another."""

    def __init__(self, left: int, source: int = 0, above: Awaited | None = None) -> None:
        self.left = left
        self.source = source
        self.above = above


class Broadcast:
    """One broadcast by process 0 among n processes, a power of two."""

    def __init__(
        self, n: int, orders: tuple[str, str, bool], tie: int, arrivals: Arrivals, missing: int
    ) -> None:
        self.own_order, self.forwarded_order, self.own_first = orders
        self.tie, self.arrivals, self.missing = tie, arrivals, missing
        self.dimension = (n - 1).bit_length()
        self.trees = self.packets = 0
        self.latency = 0.0
        """When the last process has the last timestamp or confirmation."""
        self.heard = {0}
        self.queue: list[tuple[float, int, int, int, bool, Awaited]] = []
        self.send(0, self.copies(0, 1, self.dimension, self.own_order, None), 0)
        while self.queue:
            self.latency, _, source, process, is_tree, awaited = heappop(self.queue)
            if is_tree:
                self.tree(source, process, awaited)
            else:
                self.ack(process, awaited)

    def copies(
        self, process: int, low: int, high: int, order: str, awaited: Awaited | None
    ) -> list[tuple[int, Awaited]]:
        """To the first process of each cluster that is there."""
        to = []
        for s in range(low, high + 1):
            first = process ^ (1 << (s - 1))
            if first != self.missing:
                to.append(first)
            elif s > 1:
                to.append(first ^ 1)
        if order == BY_NUMBER:
            to.sort()
        elif order == DESCENDING:
            to.reverse()
        if awaited is not None:
            awaited.left = len(to)
        return [(p, awaited or Awaited(1)) for p in to]

    def push(self, time: float, process: int, to: int, is_tree: bool, awaited: Awaited) -> None:
        self.packets += 1
        heappush(self.queue, (time, self.tie * self.packets, process, to, is_tree, awaited))

    def send(self, process: int, copies: list[tuple[int, Awaited]], now: float) -> None:
        self.trees += len(copies)
        for time, (p, awaited) in zip(self.arrivals(now, len(copies)), copies, strict=True):
            self.push(time, process, p, True, awaited)

    def confirm(self, process: int, source: int, awaited: Awaited) -> None:
        self.push(self.arrivals(self.latency, 1)[0], process, source, False, awaited)

    def tree(self, j: int, process: int, awaited: Awaited) -> None:
        level = (process ^ j).bit_length() - 1
        here = Awaited(0, j, awaited)
        forwarded = self.copies(process, 1, level, self.forwarded_order, here)
        own: list[tuple[int, Awaited]] = []
        if process not in self.heard:
            self.heard.add(process)
            own = self.copies(process, level + 1, self.dimension, self.own_order, None)
        self.send(process, own + forwarded if self.own_first else forwarded + own, self.latency)
        if not forwarded:
            self.confirm(process, j, awaited)

    def ack(self, process: int, awaited: Awaited) -> None:
        awaited.left -= 1
        if not awaited.left and awaited.above is not None:
            self.confirm(process, awaited.source, awaited.above)


def saved(n: int, orders: tuple[str, str, bool], tie: int, arrivals: Arrivals = exact) -> float:
    """Compared with All2All; each TREE is confirmed by one ACK, in both."""
    return 1 - Broadcast(n, orders, tie, arrivals, NOBODY).trees / (n * (n - 1))


def faster(n: int, orders: tuple[str, str, bool]) -> float:
    """By so many units, if process 1 is missing."""
    everybody, fewer = (
        Broadcast(n, orders, FIRST_SENT, exact, missing).latency for missing in (NOBODY, 1)
    )
    return (everybody - fewer) / 10


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=128, help="the largest number of processes")
    most = parser.parse_args().most
    sizes = [1 << power for power in range(3, most.bit_length())]
    told = ", ".join(map(str, sizes))
    print(f"mean saving with {told} processes, by which of simultaneous packets is first: that")
    print("sent first, that sent last; and how much faster it is in each size without process 1")
    every = (ASCENDING, DESCENDING, BY_NUMBER)
    for own, forwarded, own_first in product(every, every, (True, False)):
        orders = own, forwarded, own_first
        name = f"own {own}, {'before' if own_first else 'after'} forwarded, {forwarded}"
        first, last = (mean([saved(n, orders, tie) for n in sizes]) for tie in (1, -1))
        less = " ".join(f"{faster(n, orders):.1f}" for n in sizes)
        print(f"{name:48} {first:7.2%} {last:7.2%}   {less}", flush=True)
    print("\nown ascending, after forwarded, ascending, with time in floating point:")
    for name, arrivals in ROUNDED.items():
        found = [saved(n, (ASCENDING, ASCENDING, False), FIRST_SENT, arrivals) for n in sizes]
        shares = " ".join(f"{share:6.1%}" for share in found)
        print(f"{name:40} {shares}   {mean(found):6.2%}", flush=True)


if __name__ == "__main__":
    main()
