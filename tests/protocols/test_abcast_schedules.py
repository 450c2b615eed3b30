"""Any order of casts and arrivals, wherever the token is: `abcast` keeps its promises."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.abcast import Abcast
from flexgroup.worlds.bench import Bench

from ..explorer.variants_abcast import abcast_whose_token_moves_after
from .member_schedules import Casts, Faults, random_casts, run, systems

PROMISES = ("integrity", "validity", "agreement", "acyclic order", "causal order")


def layers(bench: Bench) -> list[Abcast]:
    stacks = [bench.hosts[process].stack for process in range(bench.size)]
    return [layer for stack in stacks for layer in stack.layers if isinstance(layer, Abcast)]


@pytest.mark.parametrize("fifo", [True, False], ids=["fifo", "reordering"])
@settings(max_examples=100, deadline=None)
@given(casts=systems(), schedule=st.integers(0, 1000), moves_after=st.integers(1, 3))
def test_no_schedule_breaks_a_promise(
    fifo: bool, casts: Casts, schedule: int, moves_after: int
) -> None:
    plan = abcast_whose_token_moves_after(moves_after)
    run(plan, casts, Random(schedule), fifo).refute(*PROMISES)


@pytest.mark.parametrize("fifo", [True, False], ids=["fifo", "reordering"])
def test_300_random_schedules(fifo: bool) -> None:
    answers = 0
    for seed in range(300):
        random = Random(seed)
        casts = random_casts(random, random.randint(2, 6), random.randint(2, 14))
        ended = run(abcast_whose_token_moves_after(1 + seed % 3), casts, random, fifo)
        ended.refute(*PROMISES)
        answers += len(ended.causes)
    assert answers > 1000


def test_bursts_of_members_that_take_turns_move_the_token_of_the_real_one() -> None:
    for seed in range(20):
        random = Random(seed)
        casts = tuple(
            (origin, tuple(sorted({origin, *random.sample(range(4), 2)})))
            for _ in range(4)
            for origin in random.choices(range(4), k=1) * 20
        )
        ended = run("abcast", Casts(4, casts), random, fifo=False)
        ended.refute(*PROMISES)
        moves = max(layer.moves for layer in layers(ended.bench))
        assert moves > 0


@pytest.mark.parametrize("stack", ["RELIABLE ABCAST", "fifo abcast"])
def test_other_layers_below(stack: str) -> None:
    """Over channels that lose packets, reliable multicast is what is needed below."""
    faults = Faults(losses=5, duplicates=5) if "RELIABLE" in stack else Faults()
    for seed in range(40):
        random = Random(seed)
        casts = random_casts(random, random.randint(2, 4), random.randint(1, 6))
        run(stack, casts, random, False, faults).refute(*PROMISES)
