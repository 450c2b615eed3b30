"""A liar that sends mutated copies of whatever was sent, byte by byte, to replicas of PBFT.

    python -m tests.protocols.mutated_packets 1000000 [SEED]

Three correct replicas go on meanwhile. What the liar sends is a packet or it is not, is refused or
it is not; nothing else may come of it.
"""

from __future__ import annotations

import sys
from random import Random

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.journal import Transmission
from flexgroup.core.layer import Layer
from flexgroup.core.message import origin_of
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.state import state_names, write_canonically
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.bench import Bench

GROUP = (0, 1, 2, 3)
LIAR = 3
CORRECT = (0, 1, 2)
KEPT = 2_000
"""How many frames are remembered, to be mutated."""

MOST_BYTES = 1_000_000
"""The size that the state of a replica stays below: a few hundred numbers, and what was kept of the
liar's requests."""


class MutatedPackets:
    """A group in use, and the frames that its liar has heard."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        plan = parse_stack("pbft")
        self.codec = Codec(plan.layers)
        self.bench = Bench(plan, 4, replicas=replicas_of_sizes([4]), liars=((LIAR, "silent"),))
        self.frames: list[bytes] = []
        self.refused = 0
        self.taken = 0
        self.largest = 0

    def send(self, count: int) -> None:
        for number in range(count):
            if number % 50 == 0:
                self.go_on()
            self.attack(self.random.choice(CORRECT))
            if number % 10_000 == 0:
                self.check()
        self.go_on()
        self.check()

    def go_on(self) -> None:
        """Let the others exchange messages, and now and then change views."""
        bench, random = self.bench, self.random
        bench.cast(random.choice((*CORRECT, 4)), GROUP, random.randbytes(8))
        if random.random() < 0.1:
            process = random.choice(CORRECT)
            for level, name in bench.timers.get(process, []):
                bench.end_timer(process, level, name)
        while bench.channels:
            source, target = random.choice(list(bench.channels))
            frame = self.codec.encode(bench.deliver(source, target))
            if len(self.frames) < KEPT:
                self.frames.append(frame)
            else:
                self.frames[random.randrange(KEPT)] = frame

    def attack(self, target: int) -> None:
        """Send a correct replica something like what somebody has sent."""
        host = self.bench.hosts[target]
        try:
            packet = self.codec.decode(mutated(self.random, self.frames))
            host.receive(self.bench.now, LIAR, Transmission(packet))
            self.taken += 1
        except PeerError:
            host.refused()
            self.refused += 1

    def check(self) -> None:
        """Raise an AssertionError if what is promised does not hold."""
        orders = [[m.id for m in self.bench.delivered[p]] for p in CORRECT]
        shortest = min(map(len, orders))
        assert all(order[:shortest] == orders[0][:shortest] for order in orders), "orders differ"
        for process in CORRECT:
            for m in self.bench.delivered[process]:
                known = origin_of(m.id) == LIAR or self.bench.messages.get(m.id) == m
                assert known, f"{m} was delivered, and nobody has multicast it"
            (layer,) = self.bench.hosts[process].stack.layers
            size = size_of(layer)
            self.largest = max(self.largest, size)
            assert size < MOST_BYTES, f"the state of replica {process} has {size} bytes"


def mutated(random: Random, frames: list[bytes]) -> bytes:
    """One of these frames, mostly with something else in some places."""
    data = bytearray(random.choice(frames))
    for _ in range(random.choice((0, 1, 1, 1, 2, 5))):
        place = random.randrange(len(data) + 1)
        chance = random.random()
        if chance < 0.6 and place < len(data):
            data[place] = random.choice((data[place] ^ 1 << random.randrange(8), 0, 1, 255))
        elif chance < 0.8:
            data[place:place] = random.randbytes(random.randint(1, 3))
        elif chance < 0.9:
            del data[place : place + random.randint(1, 20)]
        else:
            data[place:] = random.choice(frames)[place:]
    return bytes(data)


def size_of(layer: Layer) -> int:
    """How many bytes the state of a layer has, written down."""
    out = bytearray()
    for name in state_names(layer):
        write_canonically(out, getattr(layer, name))
    return len(out)


def main() -> None:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else Random().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    attacked = MutatedPackets(seed)
    attacked.send(count)
    delivered = min(len(attacked.bench.delivered[process]) for process in CORRECT)
    print(
        f"{count:,} mutated frames: {attacked.refused:,} refused, {attacked.taken:,} taken in; "
        f"{delivered:,} of {len(attacked.bench.messages):,} messages delivered by all, none of "
        f"them forged; the state of no replica larger than {attacked.largest:,} bytes"
    )


if __name__ == "__main__":
    main()
