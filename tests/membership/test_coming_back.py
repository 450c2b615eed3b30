"""Servers that keep data come back as the same ones, however many of them were killed."""

from __future__ import annotations

from itertools import permutations

import pytest

from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.membership.decision import Decision
from flexgroup.membership.effects import Excluded, Save, SendOn, SendTo
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    AskToJoin,
    Beat,
    NotAdmitted,
    NotMember,
    Overtaken,
    Prepare,
)
from flexgroup.membership.operations import (
    CreateGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
)
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.stable import (
    AcceptedDecision,
    AnyRecord,
    Installed,
    Promised,
    Snapshot,
    recovered,
)
from flexgroup.membership.suspicion import FailureDetector
from flexgroup.membership.timings import Timings

from .random_schedules import BOUND
from .test_membership_schedules import run_schedules
from .virtual_cluster import STACK, Cluster, Life, check_always, is_quiet

SEEDS = 40
LONG = 1000.0


def cluster_of(size: int) -> Cluster:
    """Servers that keep data, with a process of each in the group g."""
    cluster = Cluster(1, keeps_data=True)
    cluster.start(size)
    life(cluster, "a").request(CreateGroup("g", STACK, None, True, None))
    cluster.run(1.0)
    for name in cluster.hosts:
        life(cluster, name).request(JoinGroup("g", f"p{name}", 1))
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    return cluster


def life(cluster: Cluster, name: str) -> Life:
    found = cluster.hosts[name].life
    assert found is not None
    return found


def number(cluster: Cluster, name: str) -> int | None:
    return life(cluster, name).membership.number


def group(cluster: Cluster, name: str) -> GroupEntry:
    """The group g, as a server knows it."""
    return life(cluster, name).installed[-1].group_named["g"]


def members(cluster: Cluster) -> list[str]:
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    check_always(cluster)
    return sorted(member.process for member in group(cluster, "a").members)


def kill(cluster: Cluster, names: str) -> None:
    for name in names:
        cluster.crash(cluster.hosts[name])


def restart(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.restart(cluster.hosts[name])
        cluster.run(0.3)


@pytest.mark.parametrize("order", [*permutations("abc")])
@pytest.mark.parametrize("outage", [0.0, LONG])
def test_a_cluster_of_which_all_servers_were_killed_is_back_with_its_groups(
    order: tuple[str, ...], outage: float
) -> None:
    cluster = cluster_of(3)
    numbers = [number(cluster, name) for name in "abc"]
    kill(cluster, "abc")
    cluster.run(outage)
    restart(cluster, *order)
    assert members(cluster) == []
    assert [number(cluster, name) for name in "abc"] == numbers


def test_a_majority_of_the_servers_suffices() -> None:
    cluster = cluster_of(3)
    kill(cluster, "abc")
    restart(cluster, "c", "a")
    assert members(cluster) == []
    assert [server.name for server in life(cluster, "a").installed[-1].servers] == ["a", "c"]


def test_whoever_comes_later_than_the_majority_joins_as_a_new_server() -> None:
    cluster = cluster_of(3)
    before = number(cluster, "b")
    kill(cluster, "abc")
    restart(cluster, "c", "a")
    assert members(cluster) == []
    restart(cluster, "b")
    assert members(cluster) == []
    assert before is not None
    assert (number(cluster, "b") or 0) > before


def test_a_minority_waits_for_as_long_as_it_takes() -> None:
    cluster = cluster_of(3)
    kill(cluster, "abc")
    restart(cluster, "c")
    cluster.run(LONG)
    assert life(cluster, "c").stands_still
    restart(cluster, "b")
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)


def test_a_server_that_is_back_before_it_is_missed_has_lost_its_processes_only() -> None:
    cluster = cluster_of(3)
    before = number(cluster, "b")
    kill(cluster, "b")
    restart(cluster, "b")
    assert members(cluster) == ["pa", "pc"]
    assert number(cluster, "b") == before
    life(cluster, "b").request(JoinGroup("g", "pb", 2))
    assert members(cluster) == ["pa", "pb", "pc"]


def test_what_a_server_asked_for_before_it_was_killed_is_not_done_afterwards() -> None:
    """The process that wanted to join is gone, and nobody would ever see it leave."""
    cluster = cluster_of(3)
    for _ in range(20):
        life(cluster, "b").request(JoinGroup("g", "late", 9))
        cluster.run(cluster.random.random() * 0.06)
        kill(cluster, "b")
        restart(cluster, "b")
        assert "late" not in members(cluster)


def test_of_two_servers_the_younger_one_waits_for_the_older_one() -> None:
    """Which may come back, and go on alone as the half with the oldest."""
    cluster = cluster_of(2)
    kill(cluster, "a")
    cluster.run(20.0)
    assert life(cluster, "b").stands_still
    restart(cluster, "a")
    assert members(cluster) == ["pb"]


def test_all_servers_are_stopped_in_order_and_the_last_one_has_the_cluster() -> None:
    cluster = cluster_of(3)
    for name in "abc":
        life(cluster, name).request(LeaveServers())
    assert cluster.run_until(lambda: all(life(cluster, n).dead for n in "abc"), BOUND)
    restart(cluster, *"abc")
    assert members(cluster) == []
    assert [server.name for server in life(cluster, "a").installed[-1].servers] != []


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_of_all_at_any_step_of_a_change(seed: int) -> None:
    def crash_all(_host: object) -> None:
        kill(cluster, "abc")

    for step in range(1, 80, 2):
        cluster = cluster_of(3)
        cluster.random.seed(seed)
        cluster.fault = crash_all
        cluster.fault_at = cluster.effects_done + step
        life(cluster, "b").request(JoinGroup("g", "more", 5))
        cluster.run(3.0)
        kill(cluster, "abc")
        cluster.fault_at = None
        restart(cluster, *"cab")
        assert members(cluster) == []


def test_random_schedules_with_data_never_lose_the_cluster() -> None:
    seen = run_schedules(0, SEEDS, keeps_data=True)
    assert seen["survived"] == SEEDS
    assert seen["died"] > SEEDS / 2


# The protocol with one of its ideas taken out.


# What is saved, and when.


def saved_and_sent(outbox: Outbox) -> list[str]:
    return [
        type(effect.record if isinstance(effect, Save) else effect.message).__name__
        for effect in outbox.take()
        if isinstance(effect, Save | SendTo)
    ]


def test_what_is_promised_and_accepted_is_saved_before_it_is_said() -> None:
    outbox = Outbox("", keeps_data=True)
    change = Change(3, 7, outbox)
    change.on_prepare(Prepare(1, 7, (1, 1)))
    assert saved_and_sent(outbox) == ["Promised"]
    change.on_accept(Accept(1, 7, (1, 1), Decision(8)))
    assert saved_and_sent(outbox) == ["AcceptedDecision", "Accepted"]


def test_what_is_asked_again_is_not_saved_again() -> None:
    outbox = Outbox("", keeps_data=True)
    change = Change(3, 7, outbox)
    for _ in range(2):
        change.on_prepare(Prepare(1, 7, (1, 1)))
        change.on_accept(Accept(1, 7, (1, 1), Decision(8)))
    assert saved_and_sent(outbox).count("Promised") == 1


def test_who_comes_back_keeps_its_promise() -> None:
    outbox = Outbox("", keeps_data=True)
    change = Change(3, 7, outbox)
    change.restore((5, 2), None)
    change.on_accept(Accept(1, 7, (5, 1), Decision(8)))
    (effect,) = outbox.take()
    assert isinstance(effect, SendTo)
    assert effect.message == Overtaken(3, 7, (5, 2))
    assert not isinstance(effect.message, Accepted)


def test_a_server_without_data_saves_nothing() -> None:
    membership = Membership("a", "a:1", Timings())
    membership.found(0.0)
    assert not any(isinstance(effect, Save) for effect in membership.take_effects())


ONE = Configuration(7, (Server(1, "a", "a:1", True), Server(2, "b", "b:1", True)), (), 3, 1)


def test_who_has_come_back_admits_nobody_before_the_others_know_of_it() -> None:
    """It may stand still for long, and whom it does not admit can ask another."""
    membership = Membership("a", "a:1", Timings(), keeps_data=True)
    membership.restore(Snapshot(1, ONE), 0.0)
    membership.take_effects()
    membership.received(5, None, AskToJoin("c", "c:1"), 0.1)
    (effect,) = membership.take_effects()
    assert isinstance(effect, SendOn)
    assert isinstance(effect.message, NotAdmitted)


def test_what_was_saved_tells_how_far_the_server_was() -> None:
    create = Decision(8)
    records: list[AnyRecord] = [
        Promised((1, 1)),
        AcceptedDecision((1, 1), create),
        Installed(create),
    ]
    before = Snapshot(2, ONE)
    assert recovered(before, records[:1]) == Snapshot(2, ONE, promised=(1, 1))
    accepted = ((1, 1), create)
    assert recovered(before, records[:2]) == Snapshot(2, ONE, None, (1, 1), accepted)
    after = recovered(before, records)
    assert (after.configuration.number, after.promised, after.accepted) == (8, (0, 0), None)
    assert after.step == create


def test_what_a_snapshot_contains_already_is_not_carried_out_again() -> None:
    """A snapshot is of the time when it is written, and what was to be saved before may follow."""
    admit = Decision(8, without=(1,))
    after = recovered(Snapshot(2, ONE), [Installed(admit)])
    late: list[AnyRecord] = [AcceptedDecision((1, 1), admit), Installed(admit)]
    assert recovered(after, late) == after


def test_processes_of_a_server_that_came_back_leave_their_groups() -> None:
    entry = GroupEntry(
        "g", 1, STACK, "p", True, None, 4, (Member("p", 1, 1), Member("q", 2, 1)), (1, 1)
    )
    before = Configuration(7, ONE.servers, (entry,), 3, 2)
    after = recovered(
        Snapshot(2, before), [Installed(Decision(8, restarted=((1, 1),)))]
    ).configuration
    assert after.servers == before.servers
    assert after.groups[0].members == (Member("q", 2, 1),)
    assert after.groups[0].owner is None


def test_who_comes_back_too_late_brings_no_members_of_partitionable_groups() -> None:
    """They ended with it when it was killed, and nobody would ever see them leave."""
    entry = GroupEntry("g", 1, STACK, None, True, None, 4, (Member("p", 1, 1),), partitionable=True)
    membership = Membership("a", "a:1", Timings(), keeps_data=True)
    membership.restore(Snapshot(1, Configuration(7, ONE.servers, (entry,), 3, 2)), 0.0)
    membership.take_effects()
    membership.received(5, 2, NotMember(2, 8), 0.1)
    (excluded,) = [e for e in membership.take_effects() if isinstance(e, Excluded)]
    assert excluded.alone is None
    assert membership.origin is None


# Who is dead, and may come back.


def detector() -> FailureDetector:
    """At server 2 of three that keep data, where all have just been heard."""
    result = FailureDetector(2, Timings(), 0.0)
    result.enter((1, 2, 3), 0.0, (1, 2, 3))
    for server in (1, 3):
        result.beaten(Beat(server, 1, 0.0, 0.0, (), NO_BALLOT, 2.0, 2.0), 0.0)
    return result


def test_who_keeps_data_is_never_gone_for_good() -> None:
    h = detector()
    h.refused(1, 0.1)
    h.refused(3, 0.1)
    assert h.gone == set()
    assert h.is_isolated(0.1)
    assert not h.is_abandoned()


def test_who_is_dead_is_left_out_at_once_although_it_keeps_data() -> None:
    h = detector()
    h.refused(1, 0.1)
    assert h.survivors((), 0.1) == (2, 3)
    assert h.is_settled((2, 3), (), 0.1)


def test_who_is_heard_again_is_not_dead() -> None:
    h = detector()
    h.refused(1, 0.1)
    h.heard(1, 0.2)
    assert h.survivors((), 0.2) == (1, 2, 3)


def test_who_is_replaced_by_another_server_is_not_waited_for() -> None:
    h = detector()
    h.replaced(1, 0.1)
    h.replaced(3, 0.1)
    assert h.is_abandoned()


def test_who_has_just_come_back_gives_the_others_time_to_do_the_same() -> None:
    h = detector()
    h.came_back(0.0)
    h.refused(1, 0.1)
    assert not h.is_settled((2, 3), (), 1.9)
    assert h.is_settled((2, 3), (), 2.0)


@pytest.mark.parametrize("last", "abcd")
@pytest.mark.parametrize("stopped", ["a", "c", "bc"])
def test_what_some_have_completed_without_others_is_found_when_all_come_back(
    stopped: str, last: str
) -> None:
    """It waits for messages that the others may not have: they had not accepted it when they were
    stopped. Then all are killed, and one comes back after the rest."""
    cluster = Cluster(1, keeps_data=True)
    cluster.start(4)
    lives = {name: host.lives[0] for name, host in cluster.hosts.items()}
    lives["a"].request(CreateGroup("x", STACK, None, True, None))
    cluster.run(0.5)
    for name, life in lives.items():
        life.request(JoinGroup("x", name, 1))
    cluster.run(0.5)
    for life in lives.values():
        life.cast("x")
    cluster.run(0.5)
    number = lives["a"].installed[-1].number
    lives["a"].request(LeaveGroup("x", "a", 1))
    going_on = [lives[name] for name in "abcd" if name not in stopped]
    assert cluster.run_until(
        lambda: any(life.membership.snapshot().accepted is not None for life in going_on), 1.0
    )
    for name in stopped:
        cluster.stop(cluster.hosts[name])
    assert cluster.run_until(
        lambda: all(life.installed[-1].number > number for life in going_on), BOUND
    )
    for host in cluster.hosts.values():
        cluster.crash(host)
    for name in "abcd".replace(last, "") + last:
        if name == last:
            cluster.run(10.0)
        cluster.restart(cluster.hosts[name])
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    check_always(cluster)
