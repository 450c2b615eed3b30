"""How fast groups of replicas are on real servers, beside other replicated logs, on this machine.

    python benchmarks/replicated_speed.py [--systems pysyncobj,etcd,memory,disk,white-box] [--json]

64 clients, 64 bytes, unless told otherwise: each client is a closed loop, spread over the servers.
A cell is the best of several rounds, by throughput; the rounds go through all systems in turn.

memory      LEADER PAXOS, one group of three servers that keep nothing on the disk
disk        the same with data folders: nothing is told to anybody before it is on the disk
pbft        PBFT, one group of four servers that keep nothing on the disk, with keys for seals
white-box   LEADER WHITE-BOX, two groups of three servers in memory, with messages to the group of
            the client's server, and with messages to both
pysyncobj   Raft in Python, in memory, in both of its settings; installed from the package index
etcd        Raft in Go, three nodes whose data are on the same disk as ours, loaded through its own
            client for Go; Debian's packages etcd-server, golang-go and golang-etcd-server-dev

Of ours, all three members (or six) get every message, and a loop goes on when its own has come
back; etcd's loops wait until a put is confirmed, and nobody watches. What cannot be had on this
machine is left out, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from network_speed import (
    HERE,
    INSTALLED,
    Cell,
    PySyncObj,
    Ratio,
    Workload,
    best_of,
    conclude,
    free_ports,
)
from peers.corosync_cluster import CannotRunError

from flexgroup.client import blocking
from flexgroup.load.closed_loops import share_of
from flexgroup.load.local_cluster import LocalCluster
from flexgroup.load.measurement import Load, Summary, cpu_seconds
from flexgroup.load.processes import WARM_UP, measure, started
from flexgroup.wire.seals import make_seal_keys

PAXOS = "LEADER PAXOS"
WHITE_BOX = "LEADER WHITE-BOX"
SIZE = 3


class Replicated:
    """Groups of replicas, with a member process at each server."""

    def __init__(
        self,
        name: str,
        stack: str,
        groups: int = 1,
        to_all: bool = False,
        on_disk: bool = False,
        size: int = SIZE,
        sealed: bool = False,
        attacks: Mapping[int, str] | None = None,
        traces: Path | None = None,
    ) -> None:
        self.name = name
        self._attacks = attacks or {}
        """Which servers lie, and how; they have no members."""
        self._traces = traces
        """Where servers record what happens; then the groups are destroyed at the end."""
        self._size = size
        self._sealed = sealed
        self._stack = stack
        self._groups = [f"group-{number}" for number in range(groups)]
        self._to_all = to_all
        self._on_disk = on_disk

    def install(self) -> None:
        pass

    def run(self, workload: Workload) -> Summary:
        size = self._size
        servers = size * len(self._groups)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=INSTALLED)))
            options = ["--log", "none"]
            if self._sealed:
                make_seal_keys(folder / "keys", [f"server-{number}" for number in range(servers)])
                options += ["--seals", str(folder / "keys")]
            if self._traces is not None:
                options += ["--trace", str(self._traces)]
            cluster = LocalCluster(
                servers, folder, options, keeps_data=self._on_disk, attacks=self._attacks
            )
            addresses = stack.enter_context(cluster).addresses
            names = [server.name for server in cluster.servers]
            with blocking.connect(addresses[0], name="bench") as link:
                link.create_replicated(
                    self._stack,
                    {g: names[size * n : size * (n + 1)] for n, g in enumerate(self._groups)},
                )
            members = [
                self._member(number, address, servers, workload)
                for number, address in enumerate(addresses)
                if number not in self._attacks
            ]
            pids = [server.process.pid for server in cluster.servers]
            with started(members) as loaded:
                measured = measure(loaded, workload.seconds, lambda: cpu_seconds(pids)).summary()
            if self._traces is not None:
                self._end([a for n, a in enumerate(addresses) if n not in self._attacks])
            return measured

    def _end(self, addresses: Sequence[str]) -> None:
        """Destroy the groups, so that the run that is recorded has an end; but not before all that
        was sent is delivered at these servers, or it would seem to be lost."""
        with ExitStack() as stack:
            links = [stack.enter_context(blocking.connect(address)) for address in addresses]
            for _ in range(2):  # what went to several groups comes with what follows it
                for link in links:
                    attached = [link.attach(group) for group in self._groups]
                    link.multicast(attached if self._to_all else attached[:1], b"")
                    for group in attached:
                        group.confirm()
                        group.leave()
            for name in self._groups:
                links[-1].attach(name).destroy()

    def _member(self, number: int, address: str, servers: int, workload: Workload) -> list[str]:
        group = self._groups[number // self._size]
        others = [other for other in self._groups if other != group] if self._to_all else []
        return [
            sys.executable, "-m", "flexgroup.load.member", address, "--group", group,
            *[word for other in others for word in ("--also", other)],
            "--number", str(number), "--payload", str(workload.payload),
            "--loops", str(share_of(workload.clients, servers, number)),
        ]  # fmt: skip


class Etcd:
    name = "etcd, on disk"

    def __init__(self) -> None:
        self._loops = INSTALLED / "etcd_loops"

    def install(self) -> None:
        for program in ("etcd", "go"):
            if shutil.which(program) is None:
                raise CannotRunError(
                    f"there is no '{program}' here; install Debian's packages etcd-server, "
                    "golang-go and golang-etcd-server-dev"
                )
        if self._loops.exists():
            return
        INSTALLED.mkdir(parents=True, exist_ok=True)
        source = HERE / "peers" / "etcd_loops.go"
        packaged = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode"}
        done = subprocess.run(
            ["go", "build", "-o", str(self._loops), str(source)],
            capture_output=True, text=True, env=packaged, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CannotRunError(f"go cannot build its client: {done.stderr.strip()[-200:]}")

    def run(self, workload: Workload) -> Summary:
        ports = free_ports(2 * workload.servers).split(",")
        clients = [f"http://127.0.0.1:{port}" for port in ports[: workload.servers]]
        peers = [f"http://127.0.0.1:{port}" for port in ports[workload.servers :]]
        nodes: list[subprocess.Popen[bytes]] = []
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=INSTALLED)))
            everybody = ",".join(f"n{number}={peer}" for number, peer in enumerate(peers))
            for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
                node = subprocess.Popen(
                    [
                        "etcd", "--name", f"n{number}", "--data-dir", str(folder / f"n{number}"),
                        "--listen-client-urls", client, "--advertise-client-urls", client,
                        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                        "--initial-cluster", everybody, "--log-level", "error",
                    ],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                stack.callback(node.wait)
                stack.callback(node.kill)
                nodes.append(node)
            time.sleep(2.0)  # they elect a leader
            return self._load(clients, [node.pid for node in nodes], workload)

    def _load(self, clients: list[str], pids: list[int], workload: Workload) -> Summary:
        figures = [workload.clients, workload.payload, WARM_UP, workload.seconds]
        loops = subprocess.Popen(
            [str(self._loops), ",".join(clients), *map(str, figures)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(WARM_UP)
        by_servers, by_loops = cpu_seconds(pids), cpu_seconds([loops.pid])
        time.sleep(workload.seconds)
        by_servers, by_loops = cpu_seconds(pids) - by_servers, cpu_seconds([loops.pid]) - by_loops
        told, _ = loops.communicate()
        if loops.returncode:
            raise CannotRunError("etcd does not answer its clients")
        return Load.from_json(
            {**json.loads(told), "server_cpu": by_servers, "member_cpu": by_loops}
        ).summary()


MEMORY = f"{PAXOS}, in memory"
DISK = f"{PAXOS}, on disk"
PBFT = "PBFT, four servers, in memory"
ONE_GROUP = f"{WHITE_BOX}, 2 groups, to one"
BOTH_GROUPS = f"{WHITE_BOX}, 2 groups, to both"

System = Replicated | PySyncObj | Etcd
SYSTEMS: dict[str, list[System]] = {
    "pysyncobj": [PySyncObj("off"), PySyncObj("on")],
    "etcd": [Etcd()],
    "memory": [Replicated(MEMORY, PAXOS)],
    "disk": [Replicated(DISK, PAXOS, on_disk=True)],
    "pbft": [Replicated(PBFT, "PBFT", size=4, sealed=True)],
    "white-box": [
        Replicated(ONE_GROUP, WHITE_BOX, groups=2),
        Replicated(BOTH_GROUPS, WHITE_BOX, groups=2, to_all=True),
    ],
}


def ratios(best: dict[Cell, Summary], clients: int, payload: int) -> list[Ratio]:
    found: list[Ratio] = []

    def compare(ours: str, others: Sequence[str], name: str, least: float | None) -> None:
        rates = [
            best[other, clients, payload].messages_a_second
            for other in others
            if (other, clients, payload) in best
        ]
        if rates and (ours, clients, payload) in best:
            ratio = best[ours, clients, payload].messages_a_second / max(rates)
            word = f"at least {least:g} x" if least is not None else "ratio to"
            holds = ratio >= least if least is not None else None
            found.append(Ratio(f"throughput of {ours}: {word} {name}", ratio, holds))

    better = [system.name for system in SYSTEMS["pysyncobj"]]
    compare(MEMORY, better, "PySyncObj's better setting", 5)
    compare(DISK, [Etcd.name], Etcd.name, 3)
    compare(PBFT, [MEMORY], MEMORY, 1 / 3)
    compare(ONE_GROUP, [MEMORY], MEMORY, 0.5)
    compare(BOTH_GROUPS, [MEMORY], MEMORY, None)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--systems", type=lambda text: text.split(","), default=list(SYSTEMS))
    add("--clients", type=int, default=64)
    add("--payload", type=int, default=64)
    add("--duration", type=float, default=3.0, help="measured seconds of a cell and round (3)")
    add("--rounds", type=int, default=3, help="the best of so many counts (3)")
    add("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from: {', '.join(SYSTEMS)}")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    left_out: dict[str, str] = {}
    workload = Workload(SIZE, options.clients, options.payload, options.duration)
    systems = [system for name in options.systems for system in SYSTEMS[name]]
    best = best_of(options.rounds, systems, [workload], left_out)
    found = ratios(best, options.clients, options.payload)
    return conclude(best, left_out, found, options.json)


if __name__ == "__main__":
    sys.exit(main())
