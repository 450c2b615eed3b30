"""Random schedules of everything that can happen to a cluster, from a seed."""

from __future__ import annotations

from collections import Counter
from random import Random

from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    RemoveClient,
)

from .virtual_cluster import (
    STACK,
    Cluster,
    Life,
    all_lives,
    check_always,
    is_lost,
    is_quiet,
    members,
)

PAUSES = (0.0, 0.006, 0.024, 0.06, 0.36, 1.2, 1.9, 3.0, 4.8)
GROUPS = "xy"
BOUND = 30.0
"""Seconds of virtual time within which all is quiet after the last fault."""


def run_schedule(seed: int, keeps_data: bool = False) -> Counter[str]:
    """Faults and requests, then peace; what has been seen. Raises if something does not hold."""
    cluster = Cluster(seed, keeps_data=keeps_data)
    random = cluster.random
    cluster.former_lives_are_gone = random.random() < 0.5 or keeps_data
    cluster.start(random.choice((2, 3, 3, 4, 5)))
    _form_groups(cluster)
    spare = list("klm")
    for _ in range(random.randrange(4, 14)):
        for _ in range(random.randrange(8)):
            if running := members(cluster):
                random.choice(running).cast(random.choice(GROUPS))
        _something_happens(cluster, spare)
        if random.random() < 0.5:
            cluster.fault_at = cluster.effects_done + random.randrange(1, 60)
            cluster.fault = random.choice((cluster.crash, cluster.stop, cluster.isolate))
        cluster.run(random.choice(PAUSES) * random.random())
        check_always(cluster)
    cluster.fault_at = None
    cluster.heal()
    for host in cluster.hosts.values():
        cluster.go_on(host)
    if keeps_data:
        for host in random.sample([*cluster.hosts.values()], len(cluster.hosts)):
            cluster.restart(host)
            cluster.run(random.choice(PAUSES) * random.random())
    became_quiet = cluster.run_until(lambda: not members(cluster) or is_quiet(cluster), BOUND)
    check_always(cluster)
    if keeps_data:
        assert is_quiet(cluster), f"not quiet: {cluster.configurations()}"
    elif not became_quiet:
        assert is_lost(cluster), f"not quiet: {cluster.configurations()}"
        assert all(life.stands_still for life in members(cluster))
    return _seen(cluster)


def _form_groups(cluster: Cluster) -> None:
    running = members(cluster)
    for group in GROUPS:
        running[0].request(CreateGroup(group, STACK, None, True, None))
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    for life in running:
        for group in GROUPS:
            if cluster.random.random() < 0.7:
                life.request(JoinGroup(group, "p" + life.host.name, 1))
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)


def _something_happens(cluster: Cluster, spare: list[str]) -> None:
    random = cluster.random
    alive = [host for host in cluster.hosts.values() if host.life and not host.life.dead]
    running = members(cluster)
    names = sorted(cluster.hosts)
    match random.randrange(12):
        case 0 if cluster.keeps_data and random.random() < 0.3:
            for host in alive:
                cluster.crash(host)
        case 0 if len(alive) > 1:
            cluster.crash(random.choice(alive))
        case 1 if alive:
            cluster.stop(random.choice(alive))
        case 2:
            for host in alive:
                cluster.go_on(host)
        case 3:
            cluster.cut(*random.sample(names, 2))
        case 4:
            cluster.part(set(random.sample(names, random.randrange(1, len(names)))))
        case 5:
            cluster.heal()
        case 6 if spare and running:
            cluster.add(spare.pop(), random.choice(running).host.name)
        case 7 if cluster.keeps_data:
            for host in cluster.hosts.values():
                if random.random() < 0.5:
                    cluster.restart(host)
        case 7 if running and random.random() < 0.3:
            random.choice(running).request(LeaveServers())
        case _ if running:
            life = random.choice(running)
            life.request(_any_operation(life, random))


def _any_operation(life: Life, random: Random) -> AnyOperation:
    group = random.choice(GROUPS)
    process = random.choice("pq") + life.host.name
    return random.choice(
        (
            CreateGroup(group, STACK, None, True, None),
            JoinGroup(group, process, 1),
            JoinGroup(group, process, 1),
            LeaveGroup(group, process, 1),
            DestroyGroup(group, process),
            RemoveClient(1),
        )
    )


def _seen(cluster: Cluster) -> Counter[str]:
    seen: Counter[str] = Counter()
    seen["survived"] = is_quiet(cluster)
    seen["lost"] = is_lost(cluster)
    for life in all_lives(cluster):
        if life.installed:
            seen["excluded"] += life.excluded is not None
            seen["died"] += life.dead
            patience = cluster.timings.patience
            seen["came back"] += sum(seconds > patience for seconds in life.stood_still)
        seen["leftovers"] += life.leftovers
        seen["carried out"] += sum(error is None for error in life.answers.values())
        seen["refused"] += sum(error is not None for error in life.answers.values())
    return seen
