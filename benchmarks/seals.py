"""What seals cost on this machine: Ed25519 between servers, keyed hashes in the other worlds.

Seals the same packet again and again, a message of 100 bytes in a packet of Skeen's algorithm, and
has the seals checked. The statement is encoded each time, as it is in a stack. Prints the best of
several rounds, and the options of a simulated network that stand for it.

    python benchmarks/seals.py --seals 2000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from flexgroup.core.codec import Codec
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.message import Message, message_id
from flexgroup.core.seals import Notary
from flexgroup.protocols.skeen import Skeen, Start
from flexgroup.wire.seals import ServerNotary, make_seal_keys, read_seal_keys

ROUNDS = 5
SERVERS = ("anna", "ben")
PACKET = Start(Message(message_id(4, 0), (0, 1), bytes(100)))


def microseconds(count: int, act: Callable[[], object]) -> float:
    """How long it takes once, in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(count):
            act()
        best = min(best, perf_counter() - start)
    return best / count * 1e6


def costs(one: Notary, other: Notary, count: int) -> tuple[float, float]:
    """What it costs to make a seal, and to check one."""
    seal = one.seal(0, PACKET)
    assert other.is_sealed(0, 0, PACKET, seal)
    return (
        microseconds(count, lambda: one.seal(0, PACKET)),
        microseconds(count, lambda: other.is_sealed(0, 0, PACKET, seal)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seals", type=int, default=2000, help="how many in a round (2000)")
    count = parser.parse_args().seals
    codec = Codec([Skeen])
    with TemporaryDirectory() as folder:
        make_seal_keys(Path(folder), SERVERS)
        signing = [
            ServerNotary(read_seal_keys(Path(folder), name), SERVERS, b"", codec)
            for name in SERVERS
        ]
    hashing = [KeyedNotary(process, codec) for process in range(2)]
    made, checked = costs(signing[0], signing[1], count)
    print(f"Ed25519: {made:.1f} us to seal, {checked:.1f} us to check")
    print(f"  simulate with --network lan:seal={made:.0f}us,check={checked:.0f}us")
    made, checked = costs(hashing[0], hashing[1], count)
    print(f"keyed hash: {made:.1f} us to seal, {checked:.1f} us to check")


if __name__ == "__main__":
    main()
