"""Whatever happens to a cluster, its servers agree; and they are caught if they do not."""

from __future__ import annotations

from collections import Counter

import pytest

from flexgroup.membership.operations import CreateGroup, JoinGroup

from .random_schedules import BOUND, run_schedule
from .virtual_cluster import STACK, Cluster, check_always, is_quiet

SEEDS = 60


def run_schedules(first_seed: int, how_many: int, keeps_data: bool = False) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + how_many):
        try:
            seen += run_schedule(seed, keeps_data)
        except Exception as error:
            raise AssertionError(f"schedule of seed {seed}: {error}") from error
    return seen


def test_random_schedules() -> None:
    seen = run_schedules(0, SEEDS)
    for what in (
        "survived", "excluded", "died", "came back", "leftovers", "carried out", "refused"
    ):  # fmt: skip
        assert seen[what] > SEEDS / 4, seen


def change_under_way(seed: int) -> Cluster:
    """Three servers with a group; a fourth asks to be let in and messages are on their way."""
    cluster = Cluster(seed)
    cluster.start(3)
    cluster.hosts["a"].lives[0].request(CreateGroup("x", STACK, None, True, None))
    cluster.run(0.5)
    for name in "abc":
        cluster.hosts[name].lives[0].request(JoinGroup("x", name, 1))
    cluster.run(0.5)
    for name in "abc":
        for _ in range(3):
            cluster.hosts[name].lives[0].cast("x")
    cluster.add("d", "b")
    return cluster


def effects_of_the_change() -> int:
    cluster = change_under_way(1)
    before = cluster.effects_done
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    return cluster.effects_done - before


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_every_step_of_a_change(seed: int) -> None:
    """Of whoever takes that step: the leader, the contact, the newcomer, the fourth."""
    victims: Counter[str] = Counter()
    for step in range(1, effects_of_the_change() + 20):
        cluster = change_under_way(seed)
        cluster.fault_at = cluster.effects_done + step
        end_after_crash(cluster)
        victims.update(name for name, host in cluster.hosts.items() if host.lives[-1].dead)
    assert set(victims) == set("abcd")


def end_after_crash(cluster: Cluster) -> None:
    hosts = cluster.hosts.values()
    assert cluster.run_until(lambda: any(host.lives[-1].dead for host in hosts), BOUND)
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    check_always(cluster)
