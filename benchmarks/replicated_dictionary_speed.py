"""How fast a replicated dictionary is, beside PySyncObj's, on this machine.

    python benchmarks/replicated_dictionary_speed.py [--clients 64] [--payload 64] [--json]

Three servers (or nodes), and a process with a copy of the dictionary at each. A client is a closed
loop: it puts a value under a key of its own, and the next when that is put: applied in its own
process, at its place in the order. Ours with SAFE: all three servers have it by then. PySyncObj's
ReplDict has it at two nodes of three by then. Rounds go through all systems in turn, and the best
of each counts. Prints the ratio to the better setting of PySyncObj.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from network_speed import (
    INSTALLED,
    PySyncObj,
    Ratio,
    Workload,
    best_of,
    conclude,
    environment,
    measured,
    program,
)

from flexgroup.load.local_cluster import LocalCluster
from flexgroup.load.measurement import Summary
from flexgroup.load.processes import started

SERVERS = 3


class Dictionary:
    def __init__(self, stack: str) -> None:
        self.name = f"flexgroup.replicated.Dict, {stack}"
        self._stack = stack

    def install(self) -> None:
        pass

    def run(self, workload: Workload) -> Summary:
        with tempfile.TemporaryDirectory(dir=INSTALLED) as folder:
            cluster = LocalCluster(SERVERS, Path(folder), ["--log", "none"])
            with cluster:
                members = [
                    [
                        *program("dictionary_member"), address, "--stack", self._stack,
                        "--number", str(number), *workload.loops(number),
                    ]
                    for number, address in enumerate(cluster.addresses)
                ]  # fmt: skip
                pids = [server.process.pid for server in cluster.servers]
                with started(members, environment()) as loaded:
                    return measured(loaded, pids, workload, all_are_told=False)


OURS = Dictionary("ABCAST SAFE")
AGREED = Dictionary("ABCAST")
PEERS = [PySyncObj("off", dictionary=True), PySyncObj("on", dictionary=True)]
SYSTEMS: list[Dictionary | PySyncObj] = [OURS, AGREED, *PEERS]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--clients", type=int, default=64)
    add("--payload", type=int, default=64)
    add("--duration", type=float, default=3.0, help="measured seconds of a cell and round (3)")
    add("--rounds", type=int, default=3, help="the best of so many counts (3)")
    add("--json", action="store_true")
    options = parser.parse_args()
    INSTALLED.mkdir(parents=True, exist_ok=True)
    left_out: dict[str, str] = {}
    workload = Workload(SERVERS, options.clients, options.payload, options.duration)
    best = best_of(options.rounds, SYSTEMS, [workload], left_out)
    rates = {name: figures.messages_a_second for (name, _, _), figures in best.items()}
    peers = [rates[peer.name] for peer in PEERS if peer.name in rates]
    found = [
        Ratio(
            f"throughput of {name}: at least 10 x PySyncObj's ReplDict",
            rates[name] / max(peers),
            rates[name] >= 10 * max(peers),
        )
        for name in (OURS.name, AGREED.name)
        if peers and name in rates
    ]
    return conclude(best, left_out, found, options.json)


if __name__ == "__main__":
    sys.exit(main())
