"""Domains: what servers that host one stack know of each other's messages."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.core.message import Message, message_id
from flexgroup.core.varints import varints
from flexgroup.membership.configuration import (
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    Server,
)
from flexgroup.membership.flush import Report, merge_reports
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.worlds.network.envelope import seal
from flexgroup.worlds.network.faults import Faults

SERVERS = tuple(Server(number, f"s{number}", f"localhost:{7400 + number}") for number in range(3))


def configuration_of(stack: str) -> Configuration:
    """Three servers, with a group that has members at the last two, and a sender at the first."""
    members = tuple(Member(f"m{server}", server, 1) for server in (1, 2))
    group = GroupEntry("g", 5, stack, None, True, None, 1, members, senders=(0,))
    return Configuration(1, SERVERS, (group,), 3, 6, (DomainEntry(1, stack, "", (0, 1, 2)),), 2)


def domains(stack: str) -> list[HostedDomain]:
    configuration = configuration_of(stack)
    hosted = []
    for me in range(3):
        deployment = Deployment(Faults(), lambda *_: None)
        deployment.install(configuration, me, (), 0)
        hosted += deployment.domains
    return hosted


def exchange(hosted: list[HostedDomain], among: tuple[int, ...]) -> None:
    """Let these hand over packets until there are none, deliver, and tell how far they are."""
    for _ in range(10):
        for me in among:
            hosted[me].domain.end_timers(1_000_000)
            for other in among:
                packets = bytes(hosted[me].domain.outgoing[other])
                hosted[me].domain.outgoing[other] = bytearray()
                if packets:
                    hosted[other].domain.receive(0, me, packets, 0)
            hosted[me].take_delivered()
    for me in among:
        counts = hosted[me].counts(set())
        for other in among:
            if other != me:
                hosted[other].counted(me, counts, 0)


@pytest.mark.parametrize(("stack", "is_kept"), [("causal", True), ("fifo", False)])
def test_a_message_is_kept_until_all_whom_its_stack_sends_it_to_have_it(
    stack: str, is_kept: bool
) -> None:
    """The stack `causal` sends everything to everybody, also to servers without members."""
    hosted = domains(stack)
    hosted[1].cast(0, (5,), 1, b"contents")
    exchange(hosted, (1, 2))
    assert bool(hosted[1].stability.kept) is is_kept
    assert bool(hosted[2].stability.kept) is is_kept


@pytest.mark.parametrize("stack", ["causal", "fifo"])
def test_at_a_change_whoever_the_stack_sends_a_message_to_gets_it(stack: str) -> None:
    """Also a server without members, if the stack sends everything to everybody."""
    hosted = domains(stack)
    hosted[1].cast(0, (5,), 1, b"contents")
    exchange(hosted, (1, 2))
    reports = {server: Report([hosted[server].report()]) for server in range(3)}
    before = configuration_of(stack)
    (flush,) = merge_reports(before, reports, [1])
    delivered = [len(one.finish(flush, before)) for one in hosted]
    assert delivered == ([1, 0, 0] if stack == "causal" else [0, 0, 0])


@pytest.mark.parametrize(
    ("stack", "pasts"), [("causal-rst", [(1, 1, 0), (1, 2, 0)]), ("fifo", [(), ()])]
)
def test_in_causal_order_messages_tell_what_precedes_them(
    stack: str, pasts: list[tuple[int, ...]]
) -> None:
    """Also what the stack has delivered and nobody has taken yet, and what precedes that."""
    hosted = domains(stack)
    hosted[0].cast(0, (5,), 1, b"first")
    exchange(hosted, (0, 1))
    hosted[1].cast(0, (5,), 1, b"second")
    exchange(hosted, (0, 1, 2))
    hosted[1].cast(0, (5,), 1, b"third")
    hand_over(hosted, 1, 2)
    hosted[2].cast(0, (5,), 1, b"fourth")
    assert [m.past for one in hosted for m in one.report().own] == pasts


def hand_over(hosted: list[HostedDomain], source: int, target: int) -> None:
    """Let the packets of one for another arrive."""
    packets = bytes(hosted[source].domain.outgoing[target])
    hosted[source].domain.outgoing[target] = bytearray()
    hosted[target].domain.receive(0, source, packets, 0)


def test_what_a_stack_holds_back_is_delivered_at_a_change() -> None:
    """Server 1 delivers when server 2 has acknowledged, and fails before server 2 knows that."""
    hosted = domains("reliable safe")
    hosted[1].cast(0, (5,), 1, b"contents")
    hand_over(hosted, 1, 2)
    hosted[2].domain.end_timers(1)
    hand_over(hosted, 2, 1)
    assert [envelope.contents for envelope in hosted[1].take_delivered()] == [b"contents"]
    assert hosted[2].take_delivered() == []
    before = configuration_of("reliable safe")
    reports = {server: Report([hosted[server].report()]) for server in (0, 2)}
    reports |= {2: Report([hosted[2].report()])}  # for another attempt
    (flush,) = merge_reports(before, reports, [1])
    delivered = [[m.contents for m in hosted[one].finish(flush, before)] for one in (0, 2)]
    assert delivered == [[], [b"contents"]]


def test_nothing_is_kept_about_servers_that_do_not_exist() -> None:
    hosted = domains("fifo")
    with pytest.raises(PeerError, match="counts of process 3; there are 3"):
        hosted[0].counted(1, varints([5, 3, 1]), 0)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        seal(((6, 0),), 1, b"contents"),  # a group that is not there
        seal(((5, 0),), 1 << 40, b"contents"),  # more messages than bytes
    ],
)
def test_an_envelope_that_cannot_be_opened_is_delivered_nowhere(payload: bytes) -> None:
    """Whoever sent it is a server, and through which others it came is not known any more."""
    hosted = domains("fifo")
    hosted[2].domain.cast(0, Message(message_id(2, 0), (1, 2), payload))
    hosted[2].cast(0, (5,), 1, b"contents")
    exchange(hosted, (1, 2))
    assert hosted[1].messages_delivered == hosted[2].messages_delivered == 1


def test_counts_of_groups_that_are_not_there_leave_nothing_behind() -> None:
    hosted = domains("fifo")
    hosted[1].counted(
        2, varints([number for group in range(100, 200) for number in (group, 1, 7)]), 0
    )
    assert hosted[1].stability.lows() == []
    assert hosted[1].stability._known == {}


def test_what_others_create_meanwhile_is_not_of_the_domain_that_a_server_brings_from_its_side() -> (
    None
):
    """That domain waits for its end. The next one may be without this server."""
    members = (Member("m1", 1, 1), Member("m2", 2, 1))
    known = GroupEntry("g", 5, "fifo", None, True, None, 1, members, partitionable=True)
    created = GroupEntry("h", 6, "fifo", None, True, None, 1, members[:1], partitionable=True)
    both = DomainEntry(1, "fifo", "", (1, 2), partitionable=True)
    other = DomainEntry(2, "fifo", "", (1,), partitionable=True)
    deployment = Deployment(Faults(), lambda *_: None)
    deployment.install(Configuration(1, SERVERS, (known,), 3, 6, (both,), 2), 2, (), 0)
    apart = Configuration(2, SERVERS, (known, created), 3, 7, (both,), 2)
    deployment.install(apart, 2, (), 0, is_apart=True)
    assert deployment.is_drained(((6, 1, 3),))
    deployment.install(Configuration(3, SERVERS, (created,), 3, 7, (other,), 3), 2, (), 0)
    assert deployment.is_drained(((6, 1, 3),))
    assert deployment.domain_of == {}
