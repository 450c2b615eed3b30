"""A share of the mutated frames that `python -m tests.protocols.mutated_packets` sends."""

from __future__ import annotations

from random import Random

from .mutated_packets import CORRECT, MutatedPackets


def test_mutated_packets_do_no_harm() -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    attacked = MutatedPackets(seed)
    attacked.send(3_000)
    assert attacked.refused > 500
    assert attacked.taken > 100
    assert all(len(attacked.bench.delivered[process]) > 20 for process in CORRECT)
