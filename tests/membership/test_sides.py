"""Sides: views of partitionable groups among servers that stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import cast

import pytest
from msgspec.structs import replace

from flexgroup.membership import side_view
from flexgroup.membership.configuration import (
    FIRST_OF_SIDES,
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    Server,
)
from flexgroup.membership.decision import Decision, Requested, carried_out
from flexgroup.membership.effects import Answer, Freeze
from flexgroup.membership.flush import DomainReport, Report, Unstable
from flexgroup.membership.messages import OfSide
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import JoinGroup, LeaveGroup, Merge
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.proposals import Proposals
from flexgroup.membership.side_view import Here, Origin, Part, SideView
from flexgroup.membership.sides import Sides
from flexgroup.membership.suspicion import FailureDetector
from flexgroup.membership.timings import Timings

from .parting_cluster import PartingCluster, PartingHost
from .virtual_cluster import STACK, is_lost

PAUSES = (0.0, 0.03, 0.3, 1.0, 2.0, 4.0)
BOUND = 60.0
SEEDS = 400


def test_a_side_comes_back_as_one_component() -> None:
    """Servers that come back in the same change have delivered the same before it."""
    members = (Member("bob", 3, 1), Member("eve", 4, 1))
    apart = GroupEntry("chat", 1, STACK, None, False, None, 3, members, partitionable=True)
    view = SideView((7, 3), (3, 4), (apart,), ())
    configuration = Configuration(
        9,
        tuple(Server(number, f"s{number}", f"s{number}:1") for number in (1, 5, 6)),
        (replace(apart, view=5, members=(Member("ann", 1, 1),)),),
        7,
        2,
    )
    following = NextConfiguration(configuration)
    for now, was, process in ((5, 3, "bob"), (6, 4, "eve")):
        brought = (Here(1, ((process, 1),)),)
        following.apply(now, Merge(Part(Origin(view, was), brought, [])), None)
    (chat,) = following.finish().groups
    assert chat.view == 6
    assert chat.merged == (("ann",), ("bob", "eve"))


def test_only_those_are_named_as_a_component_who_were_in_one_view() -> None:
    """Not who has joined with the change, nor members at servers that are still apart: what is
    known of these is from before the network parted."""
    members = tuple(Member(name, server, 1) for server, name in enumerate(("ann", "bob", "eve"), 1))
    chat = GroupEntry("chat", 1, STACK, None, False, None, 3, members, partitionable=True)
    servers = tuple(Server(number, f"s{number}", f"s{number}:1") for number in (1, 2, 3, 4))
    requests = [
        Requested(number, 1, Merge(Part(Origin(view, number), brought, [])), None)
        for number, brought in (
            (1, (Here(1, (("ann", 1), ("new", 2))),)),
            (2, (Here(1, (("bob", 1),)),)),
        )
        for view in [SideView((7, number), (number,), (replace(chat, view=4),), ())]
    ]
    requests.append(Requested(4, 1, JoinGroup("chat", "late", 1), 1))
    decision = Decision(10, tuple(requests), apart=(1, 2, 3))
    following, _ = carried_out(Configuration(9, servers, (chat,), 5, 2), decision)
    (after,) = following.groups
    assert [member.process for member in after.members] == ["eve", "ann", "new", "bob", "late"]
    assert after.merged == (("ann",), ("bob",))


@pytest.mark.parametrize("first", [0, 1])
def test_what_was_sent_in_a_view_reaches_a_server_whose_member_has_left_it_since(
    first: int,
) -> None:
    """Servers agree on what was multicast to them, whoever comes back first."""
    members = (Member("bob", 3, 1), Member("eve", 4, 1))
    chat = GroupEntry("chat", 1, STACK, None, False, None, 3, members, partitionable=True)
    domain = DomainEntry(FIRST_OF_SIDES, STACK, "", (3, 4), True)
    view = SideView((7, 3), (3, 4), (chat,), (domain,))
    sent = Unstable(3, 0, ((1, 0),), b"hello")
    reports = [
        DomainReport(domain.number, [sent], ((1, 3, 1),)),
        DomainReport(domain.number, [], ()),
    ]
    left = Origin(view, 4).without(1)
    parts = [Part(Origin(view, 3), (), reports[:1]), Part(left, (), reports[1:])]
    (flush,) = side_view.flushes([parts[first], parts[1 - first]])
    assert flush.messages == [sent]
    (after,) = left.renumbered(6)
    assert after.members == members[:1]


def test_what_was_to_change_with_a_view_that_is_not_formed_is_not_answered() -> None:
    outbox = Outbox("s2:1")
    outbox.number = 2
    proposals = Proposals(outbox, 0.2)
    detector = FailureDetector(2, Timings(), 0.0)
    detector.enter((1, 2), 0.0)
    chat = GroupEntry(
        "chat", 1, STACK, None, False, None, 1, (Member("ann", 2, 1),), partitionable=True
    )
    servers = tuple(Server(number, f"s{number}", f"s{number}:1") for number in (1, 2))
    configuration = Configuration(3, servers, (chat,), 3, 2)
    side = Sides(2, Timings(), detector, outbox, proposals, None)
    side.enter(configuration, Decision(3))
    side.stand_still()
    side.go_on(0.0)
    side.go_on(1.0)
    proposals.add(LeaveGroup("chat", "ann", 1), configuration)
    side.received(cast(OfSide, outbox.to_itself.popleft()), 1.0)
    (stop,) = [effect for effect in outbox.take() if isinstance(effect, Freeze)]
    side.frozen(stop, Report())
    side.enter(replace(configuration, number=4), Decision(4))
    side.entered()
    assert not [effect for effect in outbox.take() if isinstance(effect, Answer)]


def after_parting(seed: int, *sides: str) -> PartingCluster:
    cluster = PartingCluster(seed)
    cluster.begin(sum(map(len, sides)))
    cluster.divide(*sides)
    cluster.run(5.0)
    return cluster


def members_at(cluster: PartingCluster, name: str) -> tuple[str, ...]:
    host = cluster.hosts[name]
    assert isinstance(host, PartingHost)
    return host.views[-1].members


@pytest.mark.parametrize(
    "sides", [("abc", "de"), ("ab", "cd", "e"), ("a", "b", "c", "d"), ("bcd", "a")], ids="|".join
)
def test_every_side_goes_on(sides: tuple[str, ...]) -> None:
    cluster = after_parting(1, *sides)
    before = {machine.name: len(machine.texts()) for machine in cluster.machines}
    for machine in cluster.machines:
        machine.cast()
    cluster.run(1.0)
    for side in sides:
        for name in side:
            assert sorted(members_at(cluster, name)) == [f"p{other}" for other in side]
    for machine in cluster.machines:
        (side,) = [side for side in sides if machine.name in side]
        assert len(machine.texts()) == before[machine.name] + len(side)
    cluster.heal()
    assert cluster.run_until(cluster.is_whole, BOUND)
    cluster.check()


def test_servers_that_come_from_a_side_say_so_in_the_next_change() -> None:
    """So their members are not named with those whose views they have left."""
    cluster = after_parting(1, "a", "b", "c", "d")
    first = cluster.hosts["a"].life
    assert first is not None
    before = first.membership.configuration
    cluster.heal()
    assert cluster.run_until(lambda: first.membership.configuration is not before, BOUND)
    step = first.membership.snapshot().step
    assert step is not None
    assert (step.apart, step.without) == ((1, 2, 3, 4), ())


def test_who_hears_only_some_of_a_side_goes_on_without_them() -> None:
    """The one between them, who hears enough others, does not wait for a configuration that too
    few can go on to."""
    cluster = PartingCluster(1)
    cluster.begin(5)
    cluster.divide("a", "b", "cde")
    cluster.cut("c", "e")
    cluster.run(8.0)
    assert len(members_at(cluster, "d")) == 2
    assert sorted([members_at(cluster, "c"), members_at(cluster, "e")], key=len) == [
        ("pc",) if "pe" in members_at(cluster, "d") else ("pe",),
        members_at(cluster, "d"),
    ]


def test_who_is_left_of_a_cluster_that_is_lost_goes_on_with_its_members() -> None:
    """A server without them ends: it could never form the next configuration."""
    cluster = after_parting(1, "ab", "c")
    for name in "ab":
        cluster.crash(cluster.hosts[name])
    cluster.heal()
    cluster.run(5.0)
    (left,) = [machine for machine in cluster.machines if machine.is_running]
    said = len(left.texts())
    left.cast()
    assert len(left.texts()) == said + 1
    left.leave()
    cluster.run(5.0)
    assert left.life is not None
    assert left.life.excluded is not None


def test_who_leaves_in_different_sides_has_left_different_views() -> None:
    """Although these have the same number and the same members, namely none."""
    cluster = PartingCluster(1)
    cluster.begin(4)
    cluster.divide("a", "b", "c", "d")
    for machine in cluster.machines:
        machine.cast()
        machine.leave()
    cluster.run(5.0)
    lasts = [machine.views[-1] for machine in cluster.machines]
    assert {(view.number, view.members) for view in lasts} == {(2, ())}
    assert len(set(lasts)) == 4
    assert len({tuple(machine.texts()) for machine in cluster.machines}) == 4
    cluster.check()


def test_while_nobody_stands_still_sides_say_nothing() -> None:
    cluster = PartingCluster(1)
    cluster.begin(3)
    lives = [machine.life for machine in cluster.machines]
    assert not any(life is not None and life.membership._sides.is_active for life in lives)


def run_schedule(seed: int) -> Counter[str]:
    """Parts, crashes, stops and requests, then peace; what was seen."""
    cluster = PartingCluster(seed)
    random = cluster.random
    cluster.begin(random.choice((3, 4, 5)))
    names = sorted(cluster.hosts)
    crashed = 0
    for _ in range(random.randrange(4, 10)):
        for machine in random.choices(cluster.machines, k=random.randrange(8)):
            machine.cast()
        machine = random.choice(cluster.machines)
        match random.randrange(8):
            case 0:
                cluster.heal()
            case 1 if 2 * (crashed + 1) < len(names):
                cluster.fault_at = cluster.effects_done + random.randrange(1, 60)
                cluster.fault = cluster.crash
                crashed += 1
            case 2:
                cluster.stop(machine)
                cluster.later(random.choice(PAUSES), partial(cluster.go_on, machine))
            case 3:
                cluster.cut(*random.sample(names, 2))
            case 4:
                machine.leave()
            case 5:
                machine.join()
            case _:
                shuffled = random.sample(names, len(names))
                place = random.randrange(1, len(names))
                cluster.divide(shuffled[:place], shuffled[place:])
                if random.random() < 0.3:
                    cluster.part({shuffled[0]})
        cluster.run(random.choice(PAUSES) * random.random())
        cluster.check()
    cluster.fault_at = None
    cluster.heal()
    for host in cluster.machines:
        cluster.go_on(host)
    cluster.run(8.0)
    for machine in cluster.machines:
        if machine.is_running:
            machine.join()
    is_whole = cluster.run_until(lambda: is_lost(cluster) or cluster.is_whole(), BOUND)
    assert is_whole, cluster.configurations()
    for machine in cluster.machines:
        machine.cast()
    cluster.run(1.0)
    cluster.check()
    return Counter(
        lost=is_lost(cluster),
        views=sum(len(machine.views) for machine in cluster.machines),
        excluded=sum(life.excluded is not None for life in cluster.lives),
        crashed=sum(not machine.is_running for machine in cluster.machines),
        leftovers=sum(life.leftovers for life in cluster.lives),
    )


def run_schedules(seeds: Iterable[int]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen += run_schedule(seed)
        except Exception as error:
            raise AssertionError(f"schedule of seed {seed}: {error}") from error
    return seen


def test_whatever_happens_all_are_in_one_view_in_the_end() -> None:
    seen = run_schedules(range(SEEDS))
    assert seen["lost"] < SEEDS / 8
    for what in "views", "excluded", "crashed", "leftovers":
        assert seen[what] > SEEDS / 4, seen
