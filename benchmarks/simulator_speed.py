"""The simulator's speed against SimPy, moving the same messages, in one run.

Skeen's message pattern: a client sends START to k destinations, each of which sends
LOCAL-TS to all k; a destination that has all answers the client, which goes on when all have
answered: k + k^2 + k packets. Ours runs the
protocol (timestamps, order, deliveries), models costs and jitter, and writes the full
trace as Parquet. SimPy, in its usual idiom (processes and Stores) and with bare timeout
callbacks, only moves the messages. The heap of tuples is the floor of any simulator.

Figures are packets that arrived per second of CPU time, over runs long enough that what
happens once (the first Parquet file of a process, say) does not count.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import Any

import simpy

PROCESSES = 16
CLIENTS = 64
DESTINATIONS = 4
DELAY = 0.001

NETWORK = "lan:delay=40us,jitter=10us,send=10us,receive=10us,byte=40ns"
MULTICASTS_A_SECOND = 42_000
"""Of virtual time, in that network."""


def simpy_with_stores(messages: int, random: Random) -> float:
    """Packets per CPU second in SimPy's usual idiom: a process and a Store per node."""
    env = simpy.Environment()
    stores = [simpy.Store(env) for _ in range(PROCESSES + CLIENTS)]
    arrived = 0

    def travel(target: int, packet: Any) -> Generator[Any, Any, None]:
        yield env.timeout(DELAY * random.random())
        yield stores[target].put(packet)

    def node(me: int) -> Generator[Any, Any, None]:
        nonlocal arrived
        received: dict[tuple[int, int], int] = {}
        while True:
            start, message, destinations = yield stores[me].get()
            arrived += 1
            if start:
                for target in destinations:
                    env.process(travel(target, (False, message, destinations)))
            else:
                received[message] = received.get(message, 0) + 1
                if received[message] == DESTINATIONS:
                    del received[message]
                    env.process(travel(PROCESSES + message[0], message))

    def client(number: int) -> Generator[Any, Any, None]:
        nonlocal arrived
        for count in range(messages // CLIENTS):
            destinations = random.sample(range(PROCESSES), DESTINATIONS)
            for target in destinations:
                env.process(travel(target, (True, (number, count), destinations)))
            for _ in destinations:
                yield stores[PROCESSES + number].get()
                arrived += 1

    for me in range(PROCESSES):
        env.process(node(me))
    for number in range(CLIENTS):
        env.process(client(number))
    start = time.process_time()
    env.run()
    return arrived / (time.process_time() - start)


def simpy_with_callbacks(messages: int, random: Random) -> float:
    """Packets per CPU second with bare timeouts: the least that SimPy can do for a packet."""
    env = simpy.Environment()
    received: list[dict[tuple[int, int], int]] = [{} for _ in range(PROCESSES)]
    answers = [0] * CLIENTS
    arrived = 0

    def send(arrive: Any, packet: Any) -> None:
        timeout = env.timeout(DELAY * random.random(), packet)
        assert timeout.callbacks is not None
        timeout.callbacks.append(arrive)

    def start_arrives(event: Any) -> None:
        nonlocal arrived
        arrived += 1
        message, _, destinations = event.value
        for target in destinations:
            send(stamp_arrives, (message, target, destinations))

    def stamp_arrives(event: Any) -> None:
        nonlocal arrived
        arrived += 1
        message, me, _ = event.value
        count = received[me].get(message, 0) + 1
        received[me][message] = count
        if count == DESTINATIONS:
            del received[me][message]
            send(answer_arrives, message)

    def answer_arrives(event: Any) -> None:
        nonlocal arrived
        arrived += 1
        number, count = event.value
        answers[number] += 1
        if answers[number] == DESTINATIONS:
            cast(number, count + 1)

    def cast(number: int, count: int) -> None:
        answers[number] = 0
        if count < messages // CLIENTS:
            destinations = random.sample(range(PROCESSES), DESTINATIONS)
            for target in destinations:
                send(start_arrives, ((number, count), target, destinations))

    for number in range(CLIENTS):
        cast(number, 0)
    start = time.process_time()
    env.run()
    return arrived / (time.process_time() - start)


def bare_heap(packets: int, random: Random) -> float:
    """Pops and pushes of tuples per CPU second, with as many in flight as in the simulation."""
    heap = [(random.random(), number, number) for number in range(CLIENTS * 8)]
    heapq.heapify(heap)
    start = time.process_time()
    for number in range(packets):
        at, _, node = heapq.heappop(heap)
        heapq.heappush(heap, (at + random.random(), number + packets, node))
    return packets / (time.process_time() - start)


def ours(messages: int, directory: Path) -> dict[str, float]:
    """Packets per CPU second, protocol and trace included, and what the trace took of it."""
    from flexgroup._pure import compiled
    from flexgroup.trace import writer
    from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

    writing = 0.0
    take = writer.TraceWriter.take
    close = writer.TraceWriter.close

    def timed(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal writing
            begun = time.perf_counter()
            result = function(*arguments)
            writing += time.perf_counter() - begun
            return result

        return call

    writer.TraceWriter.take = timed(take)  # type: ignore[method-assign]
    writer.TraceWriter.close = timed(close)  # type: ignore[method-assign]
    workload = f"random:{DESTINATIONS}"
    duration = messages / MULTICASTS_A_SECOND
    scenario = Scenario("skeen", PROCESSES, CLIENTS, workload, NETWORK, duration, seed=7)
    start, wall = time.process_time(), time.perf_counter()
    outcome = record_scenario(scenario, directory, force=True)
    spent, wall = time.process_time() - start, time.perf_counter() - wall
    packets = outcome.multicasts * (DESTINATIONS + DESTINATIONS**2 + DESTINATIONS)
    return {
        "compiled": compiled(),
        "deliveries": outcome.deliveries,
        "packets": packets,
        "seconds": spent,
        "rate": packets / spent,
        "writing_share": writing / wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def ours_in_a_process(messages: int, pure: bool) -> dict[str, float]:
    """In a process of its own, so that its memory and its form are its own."""
    environment = {**os.environ, "FLEXGROUP_PURE": "1" if pure else "0"}
    with tempfile.TemporaryDirectory() as directory:
        arguments = ["--ours", str(messages), "--directory", directory]
        done = subprocess.run(
            [sys.executable, __file__, *arguments],
            env=environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=120_000, help="multicasts per measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many rounds counts")
    parser.add_argument("--million", action="store_true", help="also a run of 1M deliveries")
    parser.add_argument("--ours", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        print(json.dumps(ours(options.ours, options.directory)))
        return
    messages, rounds = options.messages, range(options.rounds)
    # Interleaved, so that a noisy moment of the machine meets all of them alike.
    stores, callbacks, heap = [], [], []
    compiled, pure = [], []
    for seed in rounds:
        compiled.append(ours_in_a_process(messages, pure=False))
        callbacks.append(simpy_with_callbacks(messages, Random(seed)))
        pure.append(ours_in_a_process(messages // 3, pure=True))
        stores.append(simpy_with_stores(messages // 6, Random(seed)))
        heap.append(bare_heap(messages * 3, Random(seed)))
    floor, bare = max(stores), max(callbacks)
    print(f"{'SimPy, processes and Stores':44}{floor:12,.0f} packets/s")
    print(f"{'SimPy, bare timeout callbacks':44}{bare:12,.0f} packets/s")
    print(f"{'a heap of tuples, in Python':44}{max(heap):12,.0f} packets/s")
    for results in (compiled, pure):
        best = max(results, key=lambda result: result["rate"])
        name = "compiled" if best["compiled"] else "pure Python"
        print(
            f"{f'flexgroup, protocol and trace, {name}':44}{best['rate']:12,.0f} packets/s = "
            f"{best['rate'] / floor:.1f} x SimPy Stores, {best['rate'] / bare:.2f} x callbacks"
        )
    if options.million:
        large = ours_in_a_process(255_000, pure=False)
        print(
            f"one run of {large['deliveries']:,.0f} deliveries: {large['seconds']:.1f} s CPU, "
            f"{large['rate']:,.0f} packets/s, trace writing {large['writing_share']:.1%} of the "
            f"time, peak memory {large['peak_mib']:,.0f} MiB"
        )


if __name__ == "__main__":
    main()
