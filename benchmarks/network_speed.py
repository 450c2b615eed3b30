"""How fast the real network is, beside other systems, on the loopback of this machine.

    python benchmarks/network_speed.py [--systems relay,pysyncobj] [--json]
    python benchmarks/network_speed.py --servers 16 --clients 16,64 --payloads 64 \\
        --systems corosync,flexgroup

Three servers, unless told otherwise, and one member process at each; the clients are closed loops,
spread over the members: each sends a message to all, and sends the next when its own message has
come back. Every member gets every message. A cell is the best of several rounds, by throughput; the
rounds go through all systems in turn, so that a noisy moment meets all of them alike.

relay       processes that pass messages on, without order: the floor for Python. `batched` joins
            what it writes in one turn of its loop; `confirmed` also waits until all have it.
pysyncobj   a replicated log (Raft) in Python; installed from the package index into build/peers.
            The loops run inside its nodes, so it has no hop from a client to its server.
corosync    closed process groups (Totem) in C; Debian's packages, unpacked into build/peers; needs
            root for network namespaces.
flexgroup   `flexgroup bench`, with the stacks RELIABLE ATOMIC, RELIABLE ATOMIC SAFE and
            ABCAST.

`CPU us` is the processor time of all processes for one message: it says least about how busy the
machine was otherwise. What cannot be had on this machine is left out, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from peers.corosync_cluster import CannotRunError, Corosync, entering

from flexgroup.load.closed_loops import share_of
from flexgroup.load.measurement import Summary, cpu_seconds
from flexgroup.load.processes import ChildProcess, ProcessFailedError, measure, started

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parent / "build" / "peers"
PATHS = os.pathsep.join([str(HERE), str(INSTALLED / "python")])
SYMMETRIC = "RELIABLE ATOMIC"
SAFE = "RELIABLE ATOMIC SAFE"
TOKEN = "ABCAST"


@dataclass(frozen=True)
class Workload:
    servers: int
    clients: int
    payload: int
    seconds: float

    def loops(self, member: int) -> list[str]:
        """Return the options that tell a member process its part."""
        loops = share_of(self.clients, self.servers, member)
        return ["--loops", str(loops), "--payload", str(self.payload)]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of peers, which use our closed loops in the form that all use."""
    return {**os.environ, **more, "PYTHONPATH": PATHS}


def measured(
    members: list[ChildProcess], servers: list[int], workload: Workload, all_are_told: bool = True
) -> Summary:
    load = measure(members, workload.seconds, lambda: cpu_seconds(servers))
    # Where nothing holds senders back, a member may lag behind on a busy machine.
    if all_are_told and load.delivered < 0.6 * workload.servers * load.completed:
        raise CannotRunError("not every member got every message")
    return load.summary()


def free_ports(number: int) -> str:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return ",".join(str(each.getsockname()[1]) for each in sockets)


def program(name: str) -> list[str]:
    return [sys.executable, "-m", f"peers.{name}"]


class Relay:
    def __init__(self, manner: str) -> None:
        self.name = f"relay, {manner}"
        self._manner = manner

    def install(self) -> None:
        pass

    def run(self, workload: Workload) -> Summary:
        numbers = range(workload.servers)
        shared = ["--ports", free_ports(workload.servers), "--manner", self._manner]
        peer = program("relay")
        relays = [[*peer, "relay", "--number", str(n), *shared] for n in numbers]
        members = [
            [*peer, "member", "--number", str(n), *shared, *workload.loops(n)] for n in numbers
        ]
        with started(relays, environment()) as running, started(members, environment()) as loaded:
            return measured(loaded, [relay.process.pid for relay in running], workload)


class PySyncObj:
    def __init__(self, batch: str, dictionary: bool = False) -> None:
        self.name = f"PySyncObj{' ReplDict' if dictionary else ''}, batching {batch}"
        self._batch = batch
        self._options = ["--dictionary"] if dictionary else []

    def install(self) -> None:
        target = INSTALLED / "python"
        if (target / "pysyncobj").is_dir():
            return
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "--target", target, "pysyncobj==0.3.17"], capture_output=True, text=True
        )
        if done.returncode:
            raise CannotRunError(f"pip cannot install it: {done.stderr.strip().splitlines()[-1]}")

    def run(self, workload: Workload) -> Summary:
        peer = program("pysyncobj_node")
        shared = ["--ports", free_ports(workload.servers), "--batch", self._batch, *self._options]
        nodes = [
            [*peer, "--number", str(n), *shared, *workload.loops(n)]
            for n in range(workload.servers)
        ]
        with started(nodes, environment()) as loaded:
            return measured(loaded, [], workload, all_are_told=not self._options)


class CorosyncGroup:
    name = "Corosync"

    def __init__(self) -> None:
        self._corosync = Corosync(INSTALLED / "corosync")

    def install(self) -> None:
        self._corosync.install()

    def run(self, workload: Workload) -> Summary:
        peer = program("corosync_member")
        shared = ["--nodes", str(workload.servers), "--library", self._corosync.library]
        with self._corosync.cluster(workload.servers) as nodes:
            members = [
                [*entering(pid), *peer, "--number", str(n), *shared, *workload.loops(n)]
                for n, pid in enumerate(nodes)
            ]
            with started(members, environment(**self._corosync.environment)) as loaded:
                return measured(loaded, nodes, workload)


class FlexGroup:
    def __init__(self, stack: str) -> None:
        self.name = f"flexgroup, {stack}"
        self._stack = stack

    def install(self) -> None:
        pass

    def run(self, workload: Workload) -> Summary:
        done = subprocess.run(
            [
                sys.executable, "-m", "flexgroup.cli.main", "bench", "--json",
                "--stack", self._stack,
                "--servers", str(workload.servers), "--clients", str(workload.clients),
                "--payload", str(workload.payload), "--duration", str(workload.seconds),
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        if done.returncode:
            raise CannotRunError("flexgroup bench fails; the reason stands above")
        return Summary.from_json(json.loads(done.stdout))


System = Relay | PySyncObj | CorosyncGroup | FlexGroup
SYSTEMS: dict[str, list[System]] = {
    "relay": [Relay("unbatched"), Relay("batched"), Relay("confirmed")],
    "pysyncobj": [PySyncObj("off"), PySyncObj("on")],
    "corosync": [CorosyncGroup()],
    "flexgroup": [FlexGroup(SYMMETRIC), FlexGroup(SAFE), FlexGroup(TOKEN)],
}

Cell = tuple[str, int, int]
"""A system's name, the number of clients, the bytes of a payload."""


class Measurable(Protocol):
    """What any benchmark of this kind measures."""

    @property
    def name(self) -> str: ...
    def install(self) -> None: ...
    def run(self, workload: Workload) -> Summary: ...


def best_of(
    rounds: int,
    systems: Sequence[Measurable],
    workloads: Sequence[Workload],
    left_out: dict[str, str],
) -> dict[Cell, Summary]:
    """Measure all systems in turn, round after round, and return the best of each cell; what cannot
    be had here is left out."""
    best: dict[Cell, Summary] = {}

    def measure_one(system: Measurable, workload: Workload) -> None:
        figures = system.run(workload)
        cell = (system.name, workload.clients, workload.payload)
        if cell not in best or figures.messages_a_second > best[cell].messages_a_second:
            best[cell] = figures
        print(".", end="", file=sys.stderr, flush=True)

    for system in systems:
        try:
            system.install()
        except CannotRunError as problem:
            left_out[system.name] = str(problem)
    for _ in range(rounds):
        for workload in workloads:
            for system in systems:
                if system.name not in left_out:
                    try:
                        measure_one(system, workload)
                    except (CannotRunError, ProcessFailedError) as problem:
                        left_out[system.name] = str(problem)
    print(file=sys.stderr)
    return best


@dataclass(frozen=True)
class Ratio:
    """How flexgroup compares to another system."""

    claim: str
    ratio: float
    holds: bool | None
    """Whether it is what was wanted; None if nothing was."""

    def __str__(self) -> str:
        word = {True: ": reached", False: ": NOT reached", None: ""}[self.holds]
        return f"{self.claim}: {self.ratio:.2f}{word}"


def ratios(best: dict[Cell, Summary], servers: int) -> list[Ratio]:
    found: list[Ratio] = []

    def throughput(ours: str, others: list[str], name: str, clients: int, least: float) -> None:
        busy = clients, 64
        rates = [best[other, *busy].messages_a_second for other in others if (other, *busy) in best]
        if rates and (ours, *busy) in best:
            ratio = best[ours, *busy].messages_a_second / max(rates)
            claim = f"throughput of {ours}, {clients} clients, 64 B: at least {least:g} x {name}"
            found.append(Ratio(claim, ratio, ratio >= least))

    def latency(ours: str, other: str, most: float | None) -> None:
        single = 1, 64
        if (ours, *single) in best and (other, *single) in best:
            ratio = best[ours, *single].p50_ms / best[other, *single].p50_ms
            word = f"at most {most:g} x" if most is not None else "ratio to"
            holds = ratio <= most if most is not None else None
            claim = f"p50 of {ours}, 1 client, 64 B: {word} {other}"
            found.append(Ratio(claim, ratio, holds))

    symmetric, safe, token = (system.name for system in SYSTEMS["flexgroup"])
    if servers == 3:
        better = [system.name for system in SYSTEMS["pysyncobj"]]
        throughput(symmetric, better, "PySyncObj's better setting", 64, 10)
        throughput(symmetric, ["relay, batched"], "relay, batched", 64, 0.25)
        throughput(safe, [symmetric], symmetric, 64, 0.6)
        throughput(token, ["relay, confirmed"], "relay, confirmed", 8, 1)
        throughput(token, [symmetric], symmetric, 64, 1)
        latency(symmetric, "relay, unbatched", 2)
        latency(symmetric, "relay, confirmed", None)
        latency(token, symmetric, None)
    if servers == 16:
        throughput(token, ["Corosync"], "Corosync", 64, 2)
        throughput(token, ["Corosync"], "Corosync", 16, 1.5)
    return found


def show(best: dict[Cell, Summary], left_out: dict[str, str], found: list[Ratio]) -> None:
    heads = f"{'messages/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'CPU us':>10}"
    print(f"{'system':32}{'payload':>8}{'clients':>8}{heads}")
    for (name, clients, payload), figures in sorted(best.items(), key=order):
        print(
            f"{name:32}{payload:>8}{clients:>8}{figures.messages_a_second:>12,.0f}"
            f"{figures.p50_ms:>10.3f}{figures.p99_ms:>10.3f}{cost(figures):>10.1f}"
        )
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    for ratio in found:
        print(ratio)


def cost(figures: Summary) -> float:
    """Return the microseconds of processor time that a message takes in all processes."""
    return figures.server_cpu_us + figures.member_cpu_us


def order(item: tuple[Cell, Summary]) -> tuple[int, int, str]:
    (name, clients, payload), _ = item
    return payload, clients, name


def document(best: dict[Cell, Summary], left_out: dict[str, str], found: list[Ratio]) -> object:
    return {
        "measured": [
            {
                "system": name,
                "clients": clients,
                "payload": payload,
                "throughput": figures.messages_a_second,
                "p50_ms": figures.p50_ms,
                "p99_ms": figures.p99_ms,
                "cpu_us": cost(figures),
            }
            for (name, clients, payload), figures in sorted(best.items(), key=order)
        ],
        "left_out": left_out,
        "ratios": [vars(ratio) for ratio in found],
    }


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def conclude(
    best: dict[Cell, Summary], left_out: dict[str, str], found: list[Ratio], as_json: bool
) -> int:
    """Print what was measured; return the exit code, 1 if a ratio is not what it should be."""
    if as_json:
        print(json.dumps(document(best, left_out, found), indent=2))
    else:
        show(best, left_out, found)
    return 1 if any(ratio.holds is False for ratio in found) else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--systems", type=lambda text: text.split(","), default=list(SYSTEMS))
    add("--servers", type=int, default=3, help="how many servers, and members (3)")
    add("--clients", type=numbers, default=[1, 8, 64])
    add("--payloads", type=numbers, default=[64, 1024])
    add("--duration", type=float, default=3.0, help="measured seconds of a cell and round (3)")
    add("--rounds", type=int, default=2, help="the best of so many counts (2)")
    add("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from: {', '.join(SYSTEMS)}")
    left_out: dict[str, str] = {}
    workloads = [
        Workload(options.servers, clients, payload, options.duration)
        for payload in options.payloads
        for clients in options.clients
    ]
    systems = [system for name in options.systems for system in SYSTEMS[name]]
    best = best_of(options.rounds, systems, workloads, left_out)
    found = ratios(best, options.servers)
    return conclude(best, left_out, found, options.json)


if __name__ == "__main__":
    sys.exit(main())
