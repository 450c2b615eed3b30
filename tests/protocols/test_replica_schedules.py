"""Random schedules of groups of replicas are what they write down, and find what is wrong."""

from __future__ import annotations

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.replica_schedules import Load, ReplicaSchedule, replica_schedule
from flexgroup.testing.script import rewrite

from ..explorer.variants_white_box_restarts import white_box_that_starts_again_silently

WHITE_BOX = parse_stack("leader white-box")
BOTH = (3, 3)


@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_script_of_a_schedule_has_the_same_deliveries(seed: int, depth: int) -> None:
    schedule = ReplicaSchedule(WHITE_BOX, BOTH, Load(5, 4, 3, 2, depth=depth), seed)
    commands = "\n".join(schedule.perform().commands)
    answer = rewrite(f"{commands}\n\ndelivered\nverdict\n----\n").rpartition("----\n")[2]
    names = {m: f"m{number}" for number, m in enumerate(schedule.bench.messages)}
    for process, delivered in enumerate(schedule.bench.delivered):
        listed = " ".join([names[m.id] for m in delivered]) or "-"
        assert f"  {process}: {listed}\n" in answer
    assert "holds" in answer


@pytest.mark.parametrize("depth", [0, 3])
def test_schedules_have_everything_in_them(depth: int) -> None:
    verbs: set[str] = set()
    delivered = 0
    for seed in range(30):
        schedule = ReplicaSchedule(WHITE_BOX, BOTH, Load(5, 4, 3, 3, depth=depth), seed)
        verbs |= {command.split()[0] for command in schedule.perform().commands}
        delivered += sum(map(len, schedule.bench.delivered))
    assert verbs == {
        "stack", "cast", "deliver", "crash", "crash-after", "drop", "recover", "suspect", "trust"
    }  # fmt: skip
    assert delivered > 300


def test_nobody_starts_again_where_that_is_not_possible() -> None:
    for seed in range(20):
        load = Load(5, 4, 3, restarts=False)
        outcome = replica_schedule(parse_stack("leader primcast"), BOTH, load, seed)
        assert outcome.broken == ""
        assert not any(command.startswith("recover") for command in outcome.commands)
        assert sum("crash" in command for command in outcome.commands) <= 2


def test_a_failure_tells_what_is_broken() -> None:
    plan = white_box_that_starts_again_silently()
    broken = {replica_schedule(plan, BOTH, Load(5, 4, 3, 2), seed).broken for seed in range(20)}
    assert {"agreement", "validity"} & broken
