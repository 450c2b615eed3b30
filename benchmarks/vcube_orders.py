"""How many messages the trees over VCube save, for each order in which a process may send copies.

The paper on atomic broadcast over VCube leaves open in which order a process goes through its
neighbours (`for all p`, lines 15 and 25), and whether its own timestamp goes out before what it
forwards, as printed, or after. This counts the TREE messages of one broadcast without faults for
every choice, each of which is confirmed by one ACK, and compares them with All2All's. It is a model
of those lines and of the time that copies take, not the protocol; the first line of its output is
the order that `vcube-atomic` has, whose count the experiment vcube-faultfree confirms.
"""

from __future__ import annotations

import argparse
from heapq import heappop, heappush
from itertools import product

# Tenths of a time unit.
SEND = 1
UNDER_WAY = 8 + 1

ASCENDING = "ascending"
DESCENDING = "descending"
BY_NUMBER = "by number"
"""Of the process, as in a sorted set of processes; the others are about clusters."""


def neighbours(process: int, low: int, high: int, order: str) -> list[int]:
    """The first process of each cluster from `low` to `high`."""
    found = [process ^ (1 << (s - 1)) for s in range(low, high + 1)]
    if order == BY_NUMBER:
        return sorted(found)
    return found if order == ASCENDING else found[::-1]


def tree_messages(n: int, own_order: str, forwarded_order: str, own_first: bool) -> int:
    dimension = (n - 1).bit_length()
    heard = {0}
    sent = 0
    arrivals: list[tuple[int, int, int, int]] = []
    last: dict[tuple[int, int], int] = {}

    def send(process: int, to: list[int], time: int) -> None:
        """One copy after the other; none overtakes an earlier one to the same process."""
        nonlocal sent
        for p in to:
            time += SEND
            arrival = max(time + UNDER_WAY, last.get((process, p), 0))
            last[process, p] = arrival
            heappush(arrivals, (arrival, sent, process, p))
            sent += 1

    send(0, neighbours(0, 1, dimension, own_order), 0)
    while arrivals:
        time, _, j, process = heappop(arrivals)
        level = (process ^ j).bit_length() - 1
        forwarded = neighbours(process, 1, level, forwarded_order)
        own: list[int] = []
        if process not in heard:
            heard.add(process)
            own = neighbours(process, level + 1, dimension, own_order)
        send(process, own + forwarded if own_first else forwarded + own, time)
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=256, help="the largest number of processes")
    options = parser.parse_args()
    sizes = [1 << power for power in range(3, options.most.bit_length())]
    print(
        f"fewer messages than All2All with {', '.join(map(str, sizes))} processes, and on average"
    )
    orders = (ASCENDING, DESCENDING, BY_NUMBER)
    for own, forwarded, own_first in product(orders, orders, (True, False)):
        saved = [1 - tree_messages(n, own, forwarded, own_first) / (n * (n - 1)) for n in sizes]
        name = f"own {own}, {'before' if own_first else 'after'} forwarded, {forwarded}"
        shares = " ".join(f"{share:6.1%}" for share in saved)
        print(f"{name:48} {shares}   {sum(saved) / len(saved):6.2%}")


if __name__ == "__main__":
    main()
