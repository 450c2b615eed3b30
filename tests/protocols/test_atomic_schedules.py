"""Any order of casts, arrivals and ends of silence: `atomic` keeps its promises."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.atomic import Atomic
from flexgroup.worlds.bench import Bench

from .member_schedules import Casts, Faults, random_casts, run, systems

PROMISES = ("integrity", "validity", "agreement", "acyclic order", "causal order")


@pytest.mark.parametrize("fifo", [True, False], ids=["fifo", "reordering"])
@settings(max_examples=150, deadline=None)
@given(casts=systems(), schedule=st.integers(0, 1000))
def test_no_schedule_breaks_a_promise(fifo: bool, casts: Casts, schedule: int) -> None:
    run("atomic", casts, Random(schedule), fifo, hurry=0.5).refute(*PROMISES)


@pytest.mark.parametrize("fifo", [True, False], ids=["fifo", "reordering"])
def test_300_random_schedules(fifo: bool) -> None:
    answers = 0
    for seed in range(300):
        random = Random(seed)
        casts = random_casts(random, random.randint(2, 6), random.randint(2, 14))
        ended = run("atomic", casts, random, fifo, hurry=random.choice((0.02, 0.5)))
        ended.refute(*PROMISES)
        answers += len(ended.causes)
    assert answers > 1000


def test_200_random_schedules_with_crashes() -> None:
    for seed in range(200):
        random = Random(seed)
        casts = random_casts(random, random.randint(3, 5), random.randint(2, 8))
        ended = run("atomic", casts, random, fifo=False, faults=Faults(crashes=2))
        ended.refute("integrity", "validity", "acyclic order")


@pytest.mark.parametrize("stack", ["RELIABLE ATOMIC", "fifo atomic"])
def test_other_layers_below(stack: str) -> None:
    """Over channels that lose packets, reliable multicast is what is needed below."""
    faults = Faults(losses=5, duplicates=5) if "RELIABLE" in stack else Faults()
    for seed in range(40):
        random = Random(seed)
        casts = random_casts(random, random.randint(2, 4), random.randint(1, 6))
        run(stack, casts, random, False, faults).refute(*PROMISES)


def kept(bench: Bench) -> list[int]:
    """How many messages each process still keeps."""
    layers = [bench.hosts[process].stack.layers[0] for process in range(bench.size)]
    return [len(layer.received.messages) for layer in layers if isinstance(layer, Atomic)]


def test_what_all_have_received_is_forgotten_when_they_have_said_so() -> None:
    """A burst; what was under way when somebody last spoke is kept until it speaks again."""
    everybody = tuple(range(4))
    burst = Casts(4, tuple((number % 4, everybody) for number in range(400)))
    bench = run("atomic", burst, Random(1), fifo=True).bench
    assert max(kept(bench)) <= 400
    for origin in everybody:
        bench.cast(origin, everybody)
        come_to_rest(bench)
    assert kept(bench) == [1, 1, 1, 1]


def come_to_rest(bench: Bench) -> None:
    while bench.channels or any(bench.timers.values()):
        while bench.channels:
            bench.deliver(*min(bench.channels))
        for process in range(bench.size):
            for level, name in list(bench.timers.get(process, [])):
                bench.end_timer(process, level, name)
