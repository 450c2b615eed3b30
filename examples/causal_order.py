"""Three uses of causal order, each on a stack that has it and on one that has not.

Raynal, Schiper and Toueg (1991, section 2.2) give three reasons to want causal order: copies of a
datum that whoever has a token writes, an observer of what happens at several sites, and an
allocator that honours requests in the order in which they were made. Here they are, on a bench
where packets arrive in any order that a seed chooses. What is written beside a stack is what the
application saw, and not what the stack promises.

    python examples/causal_order.py
    python examples/causal_order.py --use observer --stack causal-isis --seeds 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import guarantees_of_channels
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.bench import Bench

SITES = (0, 1, 2, 3)
STACKS = ("fifo", "causal-rst")

Send = Callable[[tuple[int, ...], str], None]
"""Multicasts a text from the site at hand to some sites."""


class Token:
    """Every site has a copy of a datum. Who gets the token writes to all copies and passes it on,
    so there is one write after the other; the copies must make them in that order.

    Without causal order a write may come after one that was made with the token it was passed with:
    the token excludes writes at the same time, and the copies differ all the same.
    """

    def __init__(self) -> None:
        self.copies: list[list[str]] = [[] for _ in SITES]

    def begin(self, send: Send) -> None:
        self.deliver(0, "token 0", send)

    def deliver(self, site: int, text: str, send: Send) -> None:
        kind, number = text.split()
        if kind == "write":
            self.copies[site].append(number)
        elif int(number) < 6:
            send(SITES, f"write {number}")
            send(((site + 1) % len(SITES),), f"token {int(number) + 1}")

    def wrong(self) -> str:
        for site, copy in enumerate(self.copies):
            if copy != ["0", "1", "2", "3", "4", "5"]:
                return f"the copy of site {site} was written in the order {' '.join(copy)}"
        return ""


class Observer:
    """A job goes from site to site, and each reports to site 3 what it did; the observer must never
    see a step before the one that led to it.

    Without causal order it does: a state of the system is shown that never was.
    """

    OBSERVER = 3

    def __init__(self) -> None:
        self.seen: list[int] = []

    def begin(self, send: Send) -> None:
        self.deliver(0, "job 0", send)

    def deliver(self, site: int, text: str, send: Send) -> None:
        kind, step = text.split()
        if kind == "did":
            self.seen.append(int(step))
        elif int(step) < 6:
            send((self.OBSERVER,), f"did {step}")
            send(((site + 1) % self.OBSERVER,), f"job {int(step) + 1}")

    def wrong(self) -> str:
        for before, after in zip(self.seen, self.seen[1:], strict=False):
            if after < before:
                return f"the observer saw step {before} before step {after}, which led to it"
        return ""


class Allocator:
    """Sites ask site 0 for a resource, and tell the next site that they have; that one asks then.
    Who asked first, as everybody knows, must have it first.

    Without causal order the allocator grants requests in the order in which they happen to come.
    """

    ALLOCATOR = 0

    def __init__(self) -> None:
        self.granted: list[int] = []

    def begin(self, send: Send) -> None:
        send((1,), "asked 0")

    def deliver(self, site: int, text: str, send: Send) -> None:
        kind, other = text.split()
        if kind == "request":
            self.granted.append(int(other))
        else:
            send((self.ALLOCATOR,), f"request {site}")
            if site + 1 in SITES:
                send((site + 1,), f"asked {site}")

    def wrong(self) -> str:
        for first, second in zip(self.granted, self.granted[1:], strict=False):
            if second < first:
                return f"site {first} was granted what site {second} had asked for before it"
        return ""


Use = Token | Observer | Allocator
USES: dict[str, type[Use]] = {"token": Token, "observer": Observer, "allocator": Allocator}


def run(use: Use, stack: str, seed: int) -> str:
    """Let packets arrive in the order that a seed chooses; what went wrong, or nothing."""
    plan, random = parse_stack(stack), Random(seed)
    plan.promises(guarantees_of_channels(reliable=True, fifo=False))
    bench = Bench(plan, len(SITES))
    told = [0] * len(SITES)

    def sender(site: int) -> Send:
        def send(to: tuple[int, ...], text: str) -> None:
            bench.cast(site, to, text.encode())

        return send

    use.begin(sender(0))
    while True:
        for site, delivered in enumerate(bench.delivered):
            while told[site] < len(delivered):
                payload = delivered[told[site]].payload
                told[site] += 1
                assert isinstance(payload, bytes)
                use.deliver(site, payload.decode(), sender(site))
        if not bench.channels:
            return use.wrong()
        source, target = random.choice(sorted(bench.channels))
        bench.deliver(source, target, random.randrange(len(bench.channels[source, target])))


def verdict(name: str, stack: str, seeds: int) -> str:
    """How often a use goes wrong on a stack, and how the first time."""
    faults = {seed: fault for seed in range(seeds) if (fault := run(USES[name](), stack, seed))}
    if not faults:
        return f"right in all of {seeds} schedules"
    seed, fault = next(iter(faults.items()))
    return f"WRONG in {len(faults)} of {seeds} schedules; with seed {seed}, {fault}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Three uses of causal order, with and without it.")
    parser.add_argument("--use", choices=USES, action="append", help="which of them (all)")
    parser.add_argument("--stack", action="append", help="the stacks to use (fifo, causal-rst)")
    parser.add_argument("--seeds", type=int, default=200, help="how many schedules (200)")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds: there must be one schedule at least")
    try:
        for name in options.use or USES:
            for stack in options.stack or STACKS:
                print(f"{name} on {stack}: {verdict(name, stack, options.seeds)}")
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
