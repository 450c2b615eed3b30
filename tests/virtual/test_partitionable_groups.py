"""Partitionable groups of whole servers: views split with the network, and merge with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from flexgroup.client.connecting import connect
from flexgroup.client.errors import BadStack, GroupDestroyed, MixedStacks
from flexgroup.client.group import Group, Link
from flexgroup.client.message import GroupInfo, View
from flexgroup.core.errors import UsageError
from flexgroup.membership import side_view
from flexgroup.membership.flush import DomainFlush
from flexgroup.membership.operations import Merge
from flexgroup.membership.side_view import Part
from flexgroup.virtual.campaign import LOADS, execute
from flexgroup.virtual.checks import GroupRecord, problems
from flexgroup.virtual.clients import Life, Membership
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.internet import Process
from flexgroup.virtual.network import Latency
from flexgroup.virtual.schedule import Schedule, draw_schedule, parse_schedule

STACK = "RELIABLE ATOMIC"
PATIENCE = 1.0
LONG_ENOUGH = 4 * PATIENCE
"""By then servers have noticed that the network has parted, or that it is whole again."""


class Person:
    """A process at one of the servers, and what it saw of the group `chat`."""

    def __init__(self, cluster: Servers, name: str, server: int) -> None:
        self.name = name
        self.process: Process = cluster.process(f"m{server}", name)
        self.link: Link
        self.chat: Group[bytes]
        self.seen: list[View | str] = []
        self._cluster = cluster
        self._address = f"m{server}:7400"

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have it done, however long that takes, and return the result."""
        task = self.process.create_task(work)
        self._cluster.run_until(task.done)
        return task.result()

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.process.create_task(work)

    def connect(self) -> Group[bytes]:
        async def connected() -> Link:
            return await connect(self._address, name=self.name)

        self.link = self.do(connected())
        self.chat = Group(self.link, "chat")
        return self.chat

    def join(self) -> None:
        self.do(self.chat.join())
        self.begin(self._read())

    async def _read(self) -> None:
        async for event in self.chat.events():
            self.seen.append(event if isinstance(event, View) else event.body.decode())

    def say(self, text: str) -> None:
        self.do(self.chat.send(text.encode()))

    @property
    def views(self) -> list[View]:
        return [item for item in self.seen if isinstance(item, View)]

    @property
    def heard(self) -> list[str]:
        return [item for item in self.seen if isinstance(item, str)]


class Servers(Execution):
    """Servers that all run, without clients of a schedule."""

    def __init__(self, servers: int) -> None:
        latency = Latency(0.0002, 0.001)
        super().__init__(Schedule(1, STACK, servers, (), (), latency, PATIENCE))
        self._begin()

    def run_until(self, is_done: Callable[[], bool]) -> None:
        self._wait("what a process does", is_done)
        assert self.problems == []

    def wait(self, seconds: float = LONG_ENOUGH) -> None:
        self.world.run(self.world.now + seconds)

    def part(self, *sides: Iterable[int]) -> None:
        for side in sides:
            for other in sides:
                if other is not side:
                    for one, another in product(side, other):
                        self.network.cut(f"m{one}", f"m{another}")
        self.wait()

    def heal(self) -> None:
        self.network.heal()
        self.wait()

    def end(self) -> None:
        for process in self.processes:
            process.end()

    def check(self) -> None:
        """Nothing failed, and the orders hold in what the servers recorded."""
        for server in self.servers:
            server.finish_trace()
        self.end()
        assert [error for process in self.processes for error in process.errors] == []
        assert list(self.recordings.violations()) == []


@pytest.fixture
def servers() -> Iterator[Callable[[int], Servers]]:
    """Starts so many servers, which end with the test."""
    started: list[Servers] = []

    def start(count: int) -> Servers:
        started.append(Servers(count))
        return started[-1]

    yield start
    for cluster in started:
        cluster.end()


Chatting = Callable[..., tuple[Servers, list[Person]]]


@pytest.fixture
def chatting(servers: Callable[[int], Servers]) -> Chatting:
    """Starts so many servers, with a member of a partitionable group at each."""

    def start(count: int, stack: str = STACK) -> tuple[Servers, list[Person]]:
        cluster = servers(count)
        people = [Person(cluster, f"p{number}", number) for number in range(count)]
        for person in people:
            person.connect()
        people[0].do(people[0].chat.create(stack, partitionable=True))
        for person in people:
            person.join()
        return cluster, people

    return start


@pytest.mark.parametrize("stack", ["RELIABLE ATOMIC", "FIFO DCC"])
def test_both_sides_go_on_and_come_together_in_one_view(chatting: Chatting, stack: str) -> None:
    cluster, people = chatting(5, stack)
    cluster.part({0, 1, 2}, {3, 4})
    for person in people:
        person.say(f"from {person.name}")
    cluster.wait(1.0)
    for side in people[:3], people[3:]:
        for person in side:
            assert sorted(person.heard) == [f"from {other.name}" for other in side]
            assert set(person.views[-1].members) == {other.name for other in side}
            assert person.heard == side[0].heard
            assert person.views[-1].merged == ()
            assert person.views[-1] == side[0].views[-1]
    agreed, formed = people[0].views[-1].side, people[3].views[-1].side
    assert agreed == (0, 0) != formed
    cluster.heal()
    people[4].say("back")
    cluster.wait(1.0)
    for person in people:
        assert person.heard[-1] == "back"
        assert person.views[-1] == people[0].views[-1]
        assert sorted(person.views[-1].members) == ["p0", "p1", "p2", "p3", "p4"]
    merges = [set(map(frozenset, view.merged)) for view in people[0].views if view.merged]
    assert frozenset({"p0", "p1", "p2"}) in merges[0]
    assert frozenset().union(*merges[-1]) == {"p0", "p1", "p2", "p3", "p4"}
    cluster.check()


def test_where_nobody_may_go_on_with_the_configuration_everybody_goes_on_alone(
    chatting: Chatting,
) -> None:
    cluster, people = chatting(4)
    cluster.part({0}, {1}, {2}, {3})
    for person in people:
        person.say(f"from {person.name}")
    cluster.wait(1.0)
    for person in people:
        assert person.heard == [f"from {person.name}"]
        assert person.views[-1].members == (person.name,)
    cluster.heal()
    for person in people:
        assert set(person.views[-1].members) == {"p0", "p1", "p2", "p3"}
        assert person.views[-1] == people[0].views[-1]
    # They may meet one after another; each comes as a component of its own.
    components = {part for person in people for view in person.views for part in view.merged}
    assert {("p0",), ("p1",), ("p2",), ("p3",)} <= components
    cluster.check()


def test_a_side_that_parts_again_meets_the_others_in_any_order(chatting: Chatting) -> None:
    cluster, people = chatting(5)
    cluster.part({0, 1}, {2, 3}, {4})
    cluster.network.heal()
    cluster.part({0}, {1, 4}, {2, 3})
    assert set(people[4].views[-1].members) == {"p1", "p4"}
    assert sorted(people[4].views[-1].merged) == [("p1",), ("p4",)]
    assert people[0].views[-1].members == ("p0",)
    cluster.heal()
    for person in people:
        assert person.views[-1] == people[0].views[-1]
        assert len(person.views[-1].members) == 5
    cluster.check()


def told_of(views_of: dict[str, list[View]]) -> list[str]:
    """What the checks find in the views that each process was given."""
    memberships = [
        Membership(process, "chat", 0.0, [(1.0, view) for view in views])
        for process, views in views_of.items()
    ]
    lives = [Life(one.process, 0, memberships=[one]) for one in memberships]
    return [str(problem) for problem in GroupRecord(STACK, "chat", lives, {}).given_wrongly()]


def test_who_is_cut_off_when_it_has_agreed_to_a_view_is_named_in_it_and_goes_on_alone(
    chatting: Chatting,
) -> None:
    """It cannot know whether the others have that view, and does not wait until it does. When it
    comes back, it is a component of its own."""
    cluster, people = chatting(4)
    cluster.part({0, 1, 2}, {3})
    for name in "guest", "friend":  # so that the side has had more views than the others
        visitor = Person(cluster, name, 3)
        visitor.connect()
        visitor.join()
    together = people[2].views[-1]
    server = cluster.servers[2].server
    assert server is not None
    cluster.network.heal()
    until = cluster.world.now + LONG_ENOUGH
    while cluster.world.now < until:
        cluster.wait(0.0001)
        accepted = server.membership.machine.snapshot().accepted
        if accepted and any(isinstance(r.operation, Merge) for r in accepted[1].requests):
            break
    cluster.part({0, 1, 3}, {2})
    alone = people[2].views[-1]
    assert alone.members == ("p2",)
    (met,) = [view for view in people[0].views if view.merged]
    assert set(map(frozenset, met.merged)) == {
        frozenset({"p0", "p1", "p2"}),
        frozenset({"p3", "guest", "friend"}),
    }
    assert people[2].views[-2:] == [together, alone]
    assert people[0].views[people[0].views.index(met) - 1] == together
    cluster.heal()
    for person in people:
        assert ("p2",) in person.views[-1].merged
        assert len(person.views[-1].members) == 6
    assert told_of({person.name: person.views for person in people}) == []
    cluster.check()


def test_components_that_were_not_in_one_view_are_found() -> None:
    whole = View(1, ("ann", "bob", "eve"), "chat")
    parted = [View(2, ("ann", "bob"), "chat"), View(2, ("eve",), "chat")]
    met = View(3, ("ann", "bob", "eve"), "chat", merged=(("ann", "bob"), ("eve",)))
    wrong = View(3, ("ann", "bob", "eve"), "chat", merged=(("ann", "eve"), ("bob",)))
    later = View(4, ("ann", "eve"), "chat")
    ann, eve = [whole, parted[0]], [whole, parted[1]]
    assert told_of({"ann": [*ann, met], "bob": [*ann, met], "eve": [*eve, met]}) == []
    for last in wrong, later:  # whether it is given the view that names it or not
        (found,) = told_of({"ann": [*ann, wrong], "eve": [*eve, last]})
        assert "ann, eve are one component in view 3" in found


def test_views_of_different_components_are_different_whatever_their_members() -> None:
    """Each may list somebody who has just gone on in the other, and has been given less."""
    whole, seen = View(1, ("ann", "bob"), "chat"), View(2, ("ann", "bob"), "chat")
    formed = View(2, ("ann", "bob"), "chat", side=(7, 1))
    assert seen != formed
    assert len({seen, formed, View(2, ("ann", "bob"), "chat", position=9)}) == 2
    assert told_of({"ann": [whole, seen], "bob": [whole, formed]}) == []


def test_an_ordinary_group_goes_on_with_the_primary_partition_only(chatting: Chatting) -> None:
    cluster, people = chatting(3)
    board = [Group(person.link, "board") for person in people]
    people[0].do(board[0].create(STACK))
    for person, group in zip(people, board, strict=True):
        person.do(group.join())
    cluster.part({0, 1}, {2})
    for person, group in zip(people, board, strict=True):
        person.do(group.send(b"pinned"))
        person.say("said")
    cluster.wait(1.0)
    assert len(people[0].do(board[0].receive_all(1.0))) == 2
    waiting = people[2].begin(board[2].receive())
    cluster.wait(1.0)
    assert not waiting.done()
    assert people[2].heard == ["said"]
    cluster.heal()
    with pytest.raises(GroupDestroyed, match="excluded"):
        waiting.result()
    people[2].say("still here")
    cluster.wait(1.0)
    assert people[0].heard[-1] == "still here"
    cluster.check()


@pytest.mark.parametrize("leaves", [True, False])
def test_what_waits_for_an_ordinary_group_keeps_nobody_in_a_partitionable_one(
    chatting: Chatting, leaves: bool
) -> None:
    """Neither while the network is parted, nor afterwards, when it can be multicast no more."""
    cluster, people = chatting(3)
    stays = Person(cluster, "stays", 2)
    stays.connect()
    stays.join()
    leaver = people[2]
    boards = [Group(person.link, "board") for person in (people[0], leaver)]
    people[0].do(boards[0].create(STACK))
    leaver.do(boards[1].join())
    cluster.part({0, 1}, {2})
    leaver.do(boards[1].send(b"pinned"))
    if leaves:
        leaver.do(leaver.chat.leave())
        assert stays.views[-1].members == ("stays",)
    cluster.heal()
    if not leaves:
        leaver.process.kill()
        cluster.wait(1.0)
    assert set(people[0].views[-1].members) == {"p0", "p1", "stays"}
    cluster.check()


@pytest.mark.parametrize("others", [[{0, 1}], [{0}, {1}]], ids=["excluded", "standing still"])
def test_a_client_that_vanishes_while_an_ordinary_group_waits_is_a_member_no_more(
    chatting: Chatting, others: list[set[int]]
) -> None:
    """What it has sent to the ordinary group is multicast after healing, if its server stays."""
    cluster, people = chatting(3)
    stays = Person(cluster, "stays", 2)
    stays.connect()
    stays.join()
    boards = [Group(person.link, "board") for person in (people[0], people[2])]
    people[0].do(boards[0].create(STACK))
    for person, board in zip((people[0], people[2]), boards, strict=True):
        person.do(board.join())
    cluster.part(*others, {2})
    people[2].do(boards[1].send(b"pinned"))
    people[2].process.kill()
    cluster.wait(1.0)
    assert stays.views[-1].members == ("stays",)
    cluster.heal()
    assert set(people[0].views[-1].members) == {"p0", "p1", "stays"}
    if len(others) > 1:
        assert people[0].do(boards[0].receive()).body == b"pinned"
    assert people[0].do(boards[0].info()).members == ("p0",)
    cluster.check()


def test_who_sends_without_being_a_member_goes_on_when_its_server_is_admitted_again(
    chatting: Chatting,
) -> None:
    """Also to an ordinary group, if it has stayed connected, when others there have not."""
    cluster, people = chatting(3)
    boards = [Group(person.link, "board") for person in (people[0], people[2])]
    people[0].do(boards[0].create(STACK, open=True))
    people[0].do(boards[0].join())
    people[2].do(boards[1].attach())
    Person(cluster, "other", 2).connect()
    cluster.part({0, 1}, {2})
    cluster.heal()
    people[2].do(boards[1].send(b"again"))
    assert people[0].do(boards[0].receive()).body == b"again"
    cluster.check()


def test_a_server_that_was_excluded_does_not_stay_a_sender_for_who_is_gone(
    chatting: Chatting,
) -> None:
    cluster, people = chatting(3)
    wire = Group(people[0].link, "wire")
    people[0].do(wire.create(STACK, open=True, partitionable=True))
    people[0].do(wire.join())
    sender = Person(cluster, "sender", 2)
    sender.connect()
    sender.do(Group(sender.link, "wire").attach())
    cluster.part({0, 1}, {2})
    cluster.heal()
    server = cluster.servers[2].server
    assert server is not None
    assert server.deployment.configuration.group_named["wire"].senders == ()
    cluster.check()


def test_processes_join_leave_and_have_confirmed_what_they_send_in_a_minority(
    chatting: Chatting,
) -> None:
    cluster, people = chatting(5)
    cluster.part({0, 1, 2}, {3, 4})
    late = Person(cluster, "late", 4)
    late.connect()
    late.join()
    late.say("hello")
    late.do(late.chat.confirm())
    people[3].do(people[3].chat.leave())
    info: GroupInfo = late.do(late.chat.info())
    assert info.partitionable
    assert set(info.members) == {"p4", "late"}
    assert info.servers == ("s4",)
    assert people[4].heard == ["hello"]
    cluster.heal()
    assert set(people[0].views[-1].members) == {"p0", "p1", "p2", "p4", "late"}
    cluster.check()


def test_a_join_that_is_under_way_when_the_network_parts_stops_nobody(chatting: Chatting) -> None:
    """The others may have been told to send nothing more before they agree on it."""
    cluster, people = chatting(3)
    late = Person(cluster, "late", 0)
    late.connect()

    async def join_soon() -> None:
        await asyncio.sleep(PATIENCE / 10)
        await late.chat.join()

    late.begin(join_soon())
    cluster.part({0}, {1, 2})
    assert people[0].views[-1].members == ("p0", "late")
    people[0].say("alone")
    cluster.wait(1.0)
    assert people[0].heard == ["alone"]
    cluster.heal()
    assert set(people[1].views[-1].members) == {"p0", "p1", "p2", "late"}
    assert people[1].heard == []
    cluster.check()


def test_a_client_that_vanishes_in_a_minority_is_no_member_when_sides_have_met(
    chatting: Chatting,
) -> None:
    cluster, people = chatting(3)
    cluster.part({0, 1}, {2})
    other = Person(cluster, "other", 2)
    other.connect()
    other.join()
    people[2].process.kill()
    cluster.wait(1.0)
    assert other.views[-1].members == ("other",)
    cluster.heal()
    assert set(people[0].views[-1].members) == {"p0", "p1", "other"}
    cluster.check()


def test_of_two_with_one_name_the_one_stays_that_was_with_most_servers(chatting: Chatting) -> None:
    cluster, people = chatting(3)
    people[0].do(people[0].chat.leave())
    cluster.part({0, 1}, {2})
    twins = [Person(cluster, "twin", server) for server in (0, 2)]
    for twin in twins:
        twin.connect()
        twin.join()
    cluster.heal()
    twins[0].say("here")
    with pytest.raises(GroupDestroyed, match="another process 'twin' is in it"):
        twins[1].say("here, too")
    assert sorted(people[2].views[-1].members) == ["p1", "p2", "twin"]
    cluster.check()


def test_a_group_that_was_destroyed_meanwhile_ends_for_those_who_were_apart(
    chatting: Chatting,
) -> None:
    cluster, people = chatting(3)
    cluster.part({0, 1}, {2})
    people[0].do(people[0].chat.destroy())
    people[2].say("alone")
    cluster.wait(1.0)
    cluster.heal()
    assert people[2].heard == ["alone"]
    with pytest.raises(GroupDestroyed, match="the group was destroyed"):
        people[2].say("more")


def test_a_group_is_created_with_the_primary_partition_only(chatting: Chatting) -> None:
    cluster, people = chatting(3)
    cluster.part({0, 1}, {2})
    creating = people[2].begin(Group(people[2].link, "new").create(STACK, partitionable=True))
    cluster.wait(1.0)
    assert not creating.done()
    people[0].do(Group(people[0].link, "new").create(STACK, partitionable=True))


def test_partitionable_groups_share_no_domain_with_others(chatting: Chatting) -> None:
    cluster, people = chatting(1)
    (person,) = people
    board = Group(person.link, "board")
    person.do(board.create(STACK))
    person.do(board.join())
    person.do(person.link.multicast([person.chat, board], b"to both"))
    cluster.wait(1.0)
    with pytest.raises(MixedStacks, match="partitionable 'reliable atomic'"):
        person.do(board.send(b"more"))


def test_a_stack_that_promises_more_than_sides_can_keep_is_refused(
    servers: Callable[[int], Servers],
) -> None:
    cluster = servers(1)
    person = Person(cluster, "ann", 0)
    chat = person.connect()
    with pytest.raises(BadStack, match="Leave out safe"):
        person.do(chat.create("RELIABLE SAFE", partitionable=True))
    with pytest.raises(UsageError, match="partitionable='yes'; give True or False"):
        person.do(chat.create(STACK, partitionable="yes"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seed", "stack"),
    [*enumerate(["reliable causal", "reliable atomic", "fifo dcc", "skeen"]), (52, "fifo dcc")],
)
def test_whatever_happens_whoever_goes_on_together_was_given_the_same(
    seed: int, stack: str
) -> None:
    schedule = draw_schedule(seed, stack, LOADS["sides"])
    found = problems(execute(schedule))
    assert not found, "\n".join([*map(str, found[:10]), str(schedule)])


def test_a_view_without_what_was_under_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(parts: Iterable[Part]) -> list[DomainFlush]:
        return []

    monkeypatch.setattr(side_view, "flushes", nothing)
    found = problems(execute(draw_schedule(1, "reliable fifo", LOADS["sides"])))
    assert "virtual synchrony is violated in a trace" in [problem.kind for problem in found]


def test_a_schedule_of_partitionable_groups_prints_itself() -> None:
    schedule = draw_schedule(1, STACK, LOADS["sides"])
    assert schedule.partitionable
    assert parse_schedule(str(schedule)) == schedule
