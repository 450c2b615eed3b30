"""The group of servers: how it forms, changes, loses servers and gets them back."""

from __future__ import annotations

import msgspec
import pytest

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.effects import Excluded, Install
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import AnyControl, AskToJoin, Beat, ControlMessage
from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveServers,
    RemoveClient,
    Renew,
)
from flexgroup.membership.timings import Timings

from .virtual_cluster import STACK, Cluster, Life, check_always, is_quiet, members

CREATE = CreateGroup("g", STACK, None, True, None)


def cluster_of(size: int, seed: int = 1) -> Cluster:
    cluster = Cluster(seed)
    cluster.start(size)
    cluster.run(1.0)
    return cluster


def life(cluster: Cluster, name: str) -> Life:
    found = cluster.hosts[name].life
    assert found is not None
    return found


def configuration(cluster: Cluster, name: str) -> Configuration:
    return life(cluster, name).installed[-1]


def names(cluster: Cluster, name: str) -> str:
    """The servers of the configuration that this one has installed."""
    return "".join(server.name for server in configuration(cluster, name).servers)


def settle(cluster: Cluster, seconds: float = 10.0) -> None:
    assert cluster.run_until(lambda: is_quiet(cluster), seconds)
    check_always(cluster)


def do(cluster: Cluster, name: str, operation: AnyOperation) -> str | None:
    """Ask for it and wait; the code of the error, if any."""
    asker = life(cluster, name)
    ticket = asker.request(operation)
    assert cluster.run_until(lambda: ticket in asker.answers, 10)
    error = asker.answers[ticket]
    return None if error is None else error[0]


# Coming


def test_the_first_server_is_alone_in_configuration_1() -> None:
    membership = Membership("a", "a:1", Timings())
    membership.found(0.0)
    (install,) = membership.take_effects()
    assert isinstance(install, Install)
    assert install.configuration.number == 1
    assert [server.name for server in install.configuration.servers] == ["a"]
    assert (membership.number, install.number) == (1, 1)


def test_a_server_joins_through_any_other() -> None:
    cluster = cluster_of(2)
    cluster.add("c", "b")
    settle(cluster)
    assert names(cluster, "a") == "abc"
    assert configuration(cluster, "c").servers[-1].number == life(cluster, "c").membership.number


def test_servers_that_come_together_get_in() -> None:
    cluster = Cluster(3)
    cluster.start(6)
    assert sorted(names(cluster, "a")) == list("abcdef")
    check_always(cluster)


def test_joining_is_aborted_when_the_contact_fails() -> None:
    """Section 3.4.1."""
    cluster = cluster_of(3)
    newcomer = cluster.add("d", "b").lives[0]
    cluster.crash(cluster.hosts["b"])
    settle(cluster)
    assert newcomer.excluded is not None
    assert "closed the connection, or failed" in newcomer.excluded
    assert not newcomer.installed


@pytest.mark.parametrize("unreached_by", ["a", "c"])
def test_a_newcomer_that_some_do_not_reach_is_refused_and_nobody_stops_for_it(
    unreached_by: str,
) -> None:
    cluster = cluster_of(3)
    before = configuration(cluster, "a").number
    newcomer = cluster.add("d", "b").lives[0]
    cluster.cut(unreached_by, "d")
    cluster.run(6.0)
    assert newcomer.excluded is not None
    assert "not all servers reach" in newcomer.excluded
    assert configuration(cluster, "a").number == before


def test_joining_is_aborted_when_the_contact_leaves() -> None:
    for seed in range(10):
        cluster = cluster_of(3, seed)
        newcomer = cluster.add("d", "b").lives[0]
        cluster.run(cluster.random.random() * 0.1)
        life(cluster, "b").request(LeaveServers())
        settle(cluster)
        assert newcomer.installed or newcomer.excluded
        assert sorted(names(cluster, "a")) == list("acd")


def test_a_server_that_is_not_admitted_admits_nobody() -> None:
    membership = Membership("a", "a:1", Timings())
    membership.received(7, None, AskToJoin("b", "b:1"), 0.0)
    (refusal,) = membership.take_effects()
    assert "is joining others itself" in str(refusal)


def test_a_server_that_is_no_member_any_more_says_so() -> None:
    """Whoever asks it would wait for long; two that have been excluded together may ask each
    other."""
    cluster = cluster_of(2)
    membership = life(cluster, "b").membership
    do(cluster, "b", LeaveServers())
    settle(cluster)
    membership.take_effects()
    membership.received(7, None, AskToJoin("c", "c:1"), cluster.now)
    (refusal,) = membership.take_effects()
    assert "is no member any more" in str(refusal)


# Requests


def test_a_request_is_answered_when_it_is_carried_out() -> None:
    cluster = cluster_of(3)
    assert do(cluster, "b", CREATE) is None
    assert [group.name for group in configuration(cluster, "b").groups] == ["g"]
    settle(cluster)


def test_what_is_refused_changes_nothing() -> None:
    cluster = cluster_of(3)
    before = configuration(cluster, "a").number
    assert do(cluster, "c", JoinGroup("g", "p", 1)) == "missing"
    cluster.run(1.0)
    assert configuration(cluster, "a").number == before


def test_of_concurrent_creations_exactly_one_succeeds() -> None:
    for seed in range(20):
        cluster = cluster_of(3, seed)
        tickets = [(life(cluster, name), life(cluster, name).request(CREATE)) for name in "abc"]
        settle(cluster)
        errors = [asker.answers[ticket] for asker, ticket in tickets]
        assert sorted("" if error is None else error[0] for error in errors) == [
            "",
            "exists",
            "exists",
        ]


def test_concurrent_destructions_all_succeed() -> None:
    """Section 3.5.6."""
    for seed in range(20):
        cluster = cluster_of(3, seed)
        do(cluster, "a", CREATE)
        settle(cluster)
        for name in "abc":
            life(cluster, name).request(JoinGroup("g", name, 1))
        settle(cluster)
        tickets = [
            (life(cluster, name), life(cluster, name).request(DestroyGroup("g", name)))
            for name in "abc"
        ]
        settle(cluster)
        assert [asker.answers[ticket] for asker, ticket in tickets] == [None] * 3


def test_requests_that_wait_share_a_change() -> None:
    cluster = cluster_of(3)
    do(cluster, "a", CREATE)
    settle(cluster)
    before = configuration(cluster, "a").number
    for process in range(50):
        life(cluster, "b").request(JoinGroup("g", f"p{process}", process))
    settle(cluster)
    assert len(configuration(cluster, "c").groups[0].members) == 50
    assert configuration(cluster, "a").number <= before + 2


def test_a_request_outlives_the_leader() -> None:
    for seed in range(10):
        cluster = cluster_of(3, seed)
        asker = life(cluster, "c")
        ticket = asker.request(CREATE)
        cluster.run(cluster.random.random() * 0.15)
        cluster.crash(cluster.hosts["a"])
        settle(cluster)
        assert asker.answers[ticket] is None
        assert [group.name for group in configuration(cluster, "b").groups] == ["g"]


GONE, BACK = RemoveClient(1), JoinGroup("g", "p", 2)
"""A client ends, and another process comes under its name, which is free then."""


def with_a_member(server: str) -> Cluster:
    cluster = cluster_of(3)
    do(cluster, server, CREATE)
    do(cluster, server, JoinGroup("g", "p", 1))
    settle(cluster)
    return cluster


@pytest.mark.parametrize("asker", ["b", "c"])
def test_what_was_asked_of_a_leader_that_has_died_is_not_overtaken(asker: str) -> None:
    cluster = with_a_member(asker)
    cluster.crash(cluster.hosts["a"])
    life(cluster, asker).request(GONE)
    life(cluster, asker).membership.link_lost(1, True, cluster.now)
    assert do(cluster, asker, BACK) is None
    settle(cluster)


def test_what_was_under_way_on_a_link_that_broke_is_not_overtaken() -> None:
    cluster = with_a_member("b")
    cluster.cut("a", "b")
    life(cluster, "b").request(GONE)
    cluster.heal()
    life(cluster, "b").request(Renew(1))
    assert do(cluster, "b", BACK) is None
    settle(cluster)


def test_a_server_that_is_not_admitted_yet_is_busy() -> None:
    membership = Membership("a", "a:1", Timings())
    ticket = membership.propose(CREATE, 0.0)
    (answer,) = membership.take_effects()
    assert answer.ticket == ticket  # type: ignore[union-attr]
    assert answer.error[0] == "busy"  # type: ignore[union-attr, index]


# Going


@pytest.mark.parametrize("name", ["a", "b"])
def test_of_two_servers_one_is_killed_and_the_other_continues(name: str) -> None:
    cluster = cluster_of(2)
    cluster.crash(cluster.hosts[name])
    settle(cluster, 1.0)
    assert [len(c.servers) for c in cluster.configurations() if c] == [1]


def test_all_but_one_are_killed_at_once_and_it_continues() -> None:
    cluster = cluster_of(4)
    for name in "abd":
        cluster.crash(cluster.hosts[name])
    settle(cluster, 1.0)
    assert names(cluster, "c") == "c"


def test_processes_of_a_server_that_died_leave_in_the_same_change() -> None:
    cluster = cluster_of(3)
    do(cluster, "a", CREATE)
    do(cluster, "c", JoinGroup("g", "p", 1))
    settle(cluster)
    cluster.crash(cluster.hosts["c"])
    settle(cluster)
    for installed in life(cluster, "a").installed:
        numbers = {server.number for server in installed.servers}
        assert all(m.server in numbers for group in installed.groups for m in group.members)
    assert configuration(cluster, "a").groups[0].members == ()


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_server_leaves_in_good_order(name: str) -> None:
    cluster = cluster_of(3)
    leaver = life(cluster, name)
    assert do(cluster, name, LeaveServers()) is None
    assert leaver.excluded is None
    settle(cluster, 1.0)
    assert len(members(cluster)) == 2


def test_the_last_server_leaves() -> None:
    cluster = cluster_of(1)
    assert do(cluster, "a", LeaveServers()) is None


# Faults of the network, and stops


def test_at_a_partition_the_majority_continues_and_the_others_stand_still() -> None:
    cluster = cluster_of(5)
    before = configuration(cluster, "a")
    cluster.part({"a", "b"})
    cluster.run(1.8)
    assert [life(cluster, name).deployment.is_changing for name in "abcde"] == [True] * 2 + [
        False
    ] * 3
    cluster.run(10.0)
    assert sorted(names(cluster, "c")) == list("cde")
    assert [life(cluster, name).stands_still for name in "abcde"] == [True] * 2 + [False] * 3
    assert [configuration(cluster, name) for name in "ab"] == [before] * 2
    check_always(cluster)


def test_of_two_halves_the_one_with_the_oldest_continues() -> None:
    cluster = cluster_of(4)
    other_half = {server.name for server in configuration(cluster, "a").servers[1:3]}
    cluster.part(other_half)
    cluster.run(4.0)
    assert {name for name in "abcd" if life(cluster, name).stands_still} == other_half
    assert set(names(cluster, "a")) == set("abcd") - other_half
    check_always(cluster)


def test_after_a_partition_all_come_back_as_new_servers() -> None:
    cluster = cluster_of(5)
    newest = max(server.number for server in configuration(cluster, "a").servers)
    cluster.part({"a", "b"})
    cluster.run(5.0)
    cluster.heal()
    settle(cluster)
    assert sorted(names(cluster, "c")) == list("abcde")
    assert all(life(cluster, name).membership.number > newest for name in "ab")  # type: ignore[operator]
    for name in "ab":
        told = cluster.hosts[name].lives[0].excluded
        assert told is not None
        assert "without it" in told


def with_a_group(size: int, seed: int) -> Cluster:
    """Every server has a process in the group g."""
    cluster = cluster_of(size, seed)
    do(cluster, "a", CREATE)
    for name in cluster.hosts:
        do(cluster, name, JoinGroup("g", name, 1))
    settle(cluster)
    cluster.run(1.0)
    return cluster


def cast(cluster: Cluster) -> None:
    for member in members(cluster):
        member.cast("g")


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("seconds", [1.8, 1.95, 2.2, 5.0, 60.0])
def test_after_an_outage_of_all_links_all_go_on_in_the_next_configuration(
    size: int, seconds: float
) -> None:
    """Whatever its length: with all groups and members, and nothing lost or delivered twice."""
    for seed in range(3):
        cluster = with_a_group(size, seed)
        before = configuration(cluster, "a")
        cast(cluster)
        cluster.run(0.01)  # some of it has arrived
        cluster.cut_all()
        cluster.run(1.0)
        cast(cluster)  # reaches nobody but its sender
        cluster.run(0.8)
        assert all(life(cluster, name).deployment.is_changing for name in cluster.hosts)
        delivered = {one: len(one.all_delivered()) for one in members(cluster)}
        cluster.run(max(0.0, seconds - 1.8))
        assert cluster.configurations() == [before] * size
        assert {o: len(o.all_delivered()) for o in members(cluster)} == delivered
        cluster.heal()
        cluster.run(5.0)
        settle(cluster)
        after = [c for c in life(cluster, "a").installed if c.number > before.number]
        assert after
        for following in after:
            assert (following.servers, following.groups) == (before.servers, before.groups)
        for one in members(cluster):
            sent = sum(other.casts for other in members(cluster))
            assert len(one.all_delivered()) == len(set(one.all_delivered()))
            assert len(one.all_delivered()) == sent
            assert one.excluded is None


def test_what_is_asked_for_during_an_outage_is_carried_out_after_it() -> None:
    cluster = cluster_of(3)
    cluster.cut_all()
    cluster.run(4.0)
    asker = life(cluster, "c")
    ticket = asker.request(CREATE)
    cluster.run(60.0)
    assert ticket not in asker.answers
    cluster.heal()
    settle(cluster)
    assert asker.answers[ticket] is None
    assert [group.name for group in configuration(cluster, "a").groups] == ["g"]


def test_of_two_the_older_goes_on_and_the_younger_is_told_when_it_hears_of_that() -> None:
    cluster = with_a_group(2, 1)
    cluster.cut("a", "b")
    cluster.run(30.0)
    younger = life(cluster, "b")
    assert younger.stands_still
    assert names(cluster, "a") == "a"
    cluster.heal()
    settle(cluster)
    assert younger.excluded is not None
    assert names(cluster, "a") == "ab"
    assert [m.process for m in configuration(cluster, "b").groups[0].members] == ["a"]


def test_a_server_that_is_cut_off_again_and_again_stays_or_comes_back() -> None:
    for seed in range(20):
        cluster = with_a_group(3, seed)
        for _ in range(8):
            cluster.isolate(cluster.hosts[cluster.random.choice("abc")])
            cast(cluster)
            cluster.run(cluster.random.uniform(0.1, 4.0))
            cluster.heal()
            cast(cluster)
            cluster.run(cluster.random.uniform(0.0, 1.0))
            check_always(cluster)
        settle(cluster, 20.0)
        assert sorted(names(cluster, "a")) == list("abc")
        assert configuration(cluster, "a").groups


def test_a_server_that_is_cut_off_as_a_change_begins_and_comes_back_soon_is_not_excluded() -> None:
    """What it promised meanwhile overtakes the change, which is made again with it."""
    for seed in range(20):
        cluster = cluster_of(3, seed)
        before = configuration(cluster, "a")
        cluster.isolate(cluster.hosts[before.servers[2].name])
        life(cluster, before.servers[0].name).request(CREATE)
        cluster.run(1.7)
        cluster.heal()
        settle(cluster)
        assert configuration(cluster, "a").servers == before.servers


def test_a_minority_whose_majority_died_behind_a_cut_ends_when_it_learns_of_that() -> None:
    """They may have gone on, with others that live: nothing that comes back helps."""
    cluster = cluster_of(5)
    minority = [life(cluster, name) for name in "ab"]
    cluster.part({"a", "b"})
    cluster.run(10.0)
    for name in "cde":
        cluster.crash(cluster.hosts[name])
    cluster.run(10.0)
    assert all(one.stands_still for one in minority)
    cluster.heal()
    cluster.run(1.0)
    assert all(one.excluded is not None for one in minority)
    check_always(cluster)


def test_a_newcomer_helps_who_has_missed_that_it_was_admitted_when_nobody_else_can() -> None:
    cluster = cluster_of(2)
    newcomer, behind = cluster.add("c", "a"), cluster.hosts["b"]
    assert cluster.run_until(lambda: bool(newcomer.lives[0].installed), 5)
    assert len(configuration(cluster, "b").servers) == 2, "the commit is still under way"
    cluster.cut("a", "b")
    cluster.stop(newcomer)
    cluster.stop(behind)
    cluster.run(5.0)
    cluster.crash(cluster.hosts["a"])
    cluster.heal()
    cluster.go_on(behind)
    cluster.go_on(newcomer)
    settle(cluster)
    assert [server.name for server in configuration(cluster, "b").servers] == ["b", "c"]
    assert life(cluster, "b").excluded is None


def test_a_newcomer_goes_on_when_the_only_other_server_dies_at_once() -> None:
    """It was not in any configuration that the other could have left it out of before it died."""
    cluster = cluster_of(1)
    newcomer = cluster.add("b", "a")
    assert cluster.run_until(lambda: bool(newcomer.lives[0].installed), 5)
    cluster.crash(cluster.hosts["a"])
    cluster.run(1.0)
    assert newcomer.lives[0].excluded is None
    assert [server.name for server in configuration(cluster, "b").servers] == ["b"]


def test_who_has_accepted_a_newcomer_that_is_dead_does_not_wait_for_it() -> None:
    cluster = cluster_of(2)
    newcomer, behind = cluster.add("c", "a"), life(cluster, "b")
    assert cluster.run_until(lambda: bool(newcomer.lives[0].installed), 5)
    cluster.cut("a", "b")
    cluster.cut("c", "b")
    cluster.run(5.0)
    cluster.crash(cluster.hosts["a"])
    cluster.crash(newcomer)
    assert behind.excluded is None
    cluster.heal()
    cluster.run(1.0)
    assert behind.excluded is not None


def test_a_server_that_stands_still_admits_nobody() -> None:
    cluster = cluster_of(3)
    cluster.part({"c"})
    cluster.run(3.0)
    newcomer = cluster.add("d", "c").lives[0]
    cluster.run(0.3)
    assert newcomer.excluded is not None
    assert "hears too few of the others" in newcomer.excluded


def test_a_short_cut_costs_nothing() -> None:
    cluster = cluster_of(3)
    before = configuration(cluster, "a")
    cluster.part({"a"})
    cluster.run(1.0)
    cluster.heal()
    cluster.run(3.0)
    assert cluster.configurations() == [before] * 3


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_of_two_that_do_not_hear_each_other_the_younger_goes(pair: tuple[int, int]) -> None:
    cluster = cluster_of(3)
    by_age = [server.name for server in configuration(cluster, "a").servers]
    older, younger = (by_age[index] for index in pair)
    cluster.cut(older, younger)
    excluded = life(cluster, younger)
    cluster.run(4.0)
    assert excluded.excluded is not None
    assert "without it" in excluded.excluded  # it was told, by the third
    assert younger not in names(cluster, older)
    check_always(cluster)


def test_a_server_that_stood_still_learns_that_it_is_excluded() -> None:
    cluster = cluster_of(3)
    stopped = life(cluster, "a")
    cluster.stop(cluster.hosts["a"])
    cluster.run(10.0)
    assert "a" not in names(cluster, "b")
    cluster.go_on(cluster.hosts["a"])
    settle(cluster)
    assert stopped.excluded is not None
    assert sorted(names(cluster, "b")) == list("abc")


def test_if_all_stand_still_together_nobody_is_excluded() -> None:
    """As when a machine that runs them all sleeps."""
    cluster = cluster_of(3)
    before = configuration(cluster, "a")
    for host in cluster.hosts.values():
        cluster.stop(host)
    cluster.run(60.0)
    for host in cluster.hosts.values():
        cluster.go_on(host)
    cluster.run(5.0)
    assert {c.servers for c in cluster.configurations() if c is not None} == {before.servers}
    assert len(members(cluster)) == 3


def test_a_server_that_does_not_answer_in_a_change_is_excluded() -> None:
    cluster = cluster_of(3)
    mute = life(cluster, "c")
    mute.host.froze = lambda life, effect, report: None  # type: ignore[method-assign]
    assert do(cluster, "b", CREATE) is None
    assert "c" not in names(cluster, "b")
    check_always(cluster)


def test_a_minority_that_was_left_by_dead_servers_does_not_continue() -> None:
    """1 and 3 went on without 2 while it stood still; that they are dead now proves nothing."""
    cluster = cluster_of(3)
    by_age = [server.name for server in configuration(cluster, "a").servers]
    cluster.stop(cluster.hosts[by_age[1]])
    cluster.run(4.0)
    for name in (by_age[0], by_age[2]):
        cluster.crash(cluster.hosts[name])
    cluster.go_on(cluster.hosts[by_age[1]])
    cluster.run(4.0)
    check_always(cluster)
    assert members(cluster) == []


# Messages


def test_nobody_speaks_for_another() -> None:
    cluster = cluster_of(2)
    membership = life(cluster, "a").membership
    with pytest.raises(PeerError, match="server 2 speaks as server 1"):
        membership.received(7, 2, Beat(1, 2, 0.0, 0.0, (), (0, 0), 2.0, 2.0), cluster.now)


def test_an_excluded_server_is_silent() -> None:
    membership = Membership("b", "b:1", Timings())
    membership.join(0.0)
    membership.take_effects()
    membership.contact_lost(1.0)
    (excluded,) = membership.take_effects()
    assert isinstance(excluded, Excluded)
    membership.tick(2.0)
    membership.contact_lost(2.0)
    assert membership.take_effects() == []


def test_all_messages_survive_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[type] = set()
    decoder = msgspec.msgpack.Decoder(AnyControl)
    original = Cluster.send

    def send(self: Cluster, sender: Life, there: object, to: object, what: object) -> None:
        if isinstance(what, ControlMessage):
            seen.add(type(what))
            assert decoder.decode(msgspec.msgpack.encode(what)) == what
        original(self, sender, there, to, what)  # type: ignore[arg-type]

    monkeypatch.setattr(Cluster, "send", send)
    cluster = cluster_of(3)
    do(cluster, "b", CREATE)
    do(cluster, "c", CREATE)
    cluster.part({"c"})
    cluster.run(5.0)
    cluster.heal()
    settle(cluster)
    assert len(seen) >= 12
