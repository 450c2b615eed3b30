"""What a replica that is down costs the others: bytes in memory and on disk for 1,000 messages.

Three replicas to a group, of which one of the first group is down, and one or two groups; messages
of 100 bytes to all groups, one after another. Looks at the leader of the first group: at all that
its stack, its host and its files refer to in memory, and at the files themselves. Prints the growth
between two moments, for each stack; the last column is what has to be kept in any case, which is
what the replica that is down has not delivered. Then the replica starts again, and the script
prints how much of that is left when it has caught up.

    python benchmarks/absent_replica.py --messages 4096
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType

from flexgroup.core.codec import Codec
from flexgroup.core.message import Message, message_id
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.network import layer_files
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults
from flexgroup.worlds.network.layer_files import LayerFiles

STACKS = {
    "leader paxos": 1,
    "leader paxos skeen-cft": 2,
    "leader paxos dcc-cft": 2,
    "leader paxos ft-abcast": 2,
}
"""How many groups a message goes to with each."""

PAYLOAD = 100
ABSENT = 2


class System:
    def __init__(self, stack: str, folder: Path) -> None:
        self.plan = parse_stack(stack)
        groups = STACKS[stack]
        self.replicas = replicas_of_sizes([3] * groups)
        self.size = 3 * groups
        self.folder = folder
        self.in_flight: list[tuple[int, int, bytes]] = []
        self.sent = 0
        self.delivered = [0] * self.size
        self.domains = {process: self.started(process) for process in range(self.size)}

    def started(self, process: int) -> Domain:
        codec = Codec(self.plan.layers)
        files = LayerFiles(self.folder / str(process), codec, self.plan.layers, str(process))
        stack = self.plan.build(process, self.size, replicas=self.replicas)
        domain = Domain(stack, codec, self.size, Faults(), None, files=files)
        domain.start(0)
        return domain

    def end_round(self, process: int) -> None:
        domain = self.domains[process]
        domain.commit()
        self.delivered[process] += len(domain.delivered)
        domain.delivered.clear()
        for target, data in enumerate(domain.outgoing):
            if data:
                self.in_flight.append((process, target, bytes(data)))
                data.clear()

    def settle(self) -> None:
        while self.in_flight:
            source, target, data = self.in_flight.pop(0)
            if target in self.domains:
                self.domains[target].receive(0, source, data, 0)
                self.end_round(target)

    def multicast(self, count: int) -> None:
        everybody = tuple(range(self.size))
        for _ in range(count):
            payload = self.sent.to_bytes(PAYLOAD, "big")
            self.domains[0].cast(0, Message(message_id(0, self.sent), everybody, payload))
            self.sent += 1
            self.end_round(0)
            self.settle()

    def in_memory(self) -> int:
        return size_of(self.domains[0])

    def on_disk(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "0").iterdir())


def size_of(root: object) -> int:
    """The bytes of all objects that this one refers to, except for code."""
    seen: set[int] = set()
    waiting = [root]
    size = 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type | ModuleType | FunctionType):
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        waiting += gc.get_referents(value)
    return size


def measure(stack: str, messages: int) -> None:
    # What is outdated in a file, megabytes usually, would hide how much is not.
    layer_files.LONG = 0
    with TemporaryDirectory() as folder:
        system = System(stack, Path(folder))
        system.multicast(1)
        del system.domains[ABSENT]
        system.multicast(messages)
        memory, disk = system.in_memory(), system.on_disk()
        system.multicast(2 * messages)
        grown = 1000 / (2 * messages)
        print(
            f"{stack}: {(system.in_memory() - memory) * grown:,.0f} bytes in memory, "
            f"{(system.on_disk() - disk) * grown:,.0f} on disk, {1000 * PAYLOAD:,} of messages",
            flush=True,
        )
        before = system.in_memory(), system.on_disk()
        system.domains[ABSENT] = system.started(ABSENT)
        system.end_round(ABSENT)
        system.settle()
        assert system.delivered[ABSENT] == system.sent
        system.multicast(messages)
        after = system.in_memory(), system.on_disk()
        print(
            f"  with it: {before[0]:,} bytes in memory and {before[1]:,} on disk, then "
            f"{after[0]:,} and {after[1]:,}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a replica that is down costs the others.")
    parser.add_argument("--messages", type=int, default=4096, help="how many, before it counts")
    parser.add_argument("--stack", action="append", help="only this one; may be given again")
    options = parser.parse_args()
    for stack in options.stack or STACKS:
        measure(stack, options.messages)


if __name__ == "__main__":
    main()
