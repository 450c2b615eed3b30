"""Domains: what servers that host one stack know of each other's messages."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import varints
from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.membership.flush import merge_reports
from flexgroup.server.hosting.deployment import Deployment, HostedDomain
from flexgroup.worlds.network.faults import Faults

SERVERS = tuple(Server(number, f"s{number}", f"localhost:{7400 + number}") for number in range(3))


def configuration_of(stack: str) -> Configuration:
    """Three servers, with a group that has members at the last two only."""
    members = tuple(Member(f"m{server}", server, 1) for server in (1, 2))
    group = GroupEntry("g", 5, stack, None, False, None, 1, members)
    return Configuration(1, SERVERS, (group,), 3, 6)


def domains(stack: str) -> list[HostedDomain]:
    configuration = configuration_of(stack)
    hosted = []
    for me in range(3):
        deployment = Deployment(Faults(), lambda _: lambda *_: None)
        deployment.install(configuration, me, 0)
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
    reports = {server: [hosted[server].report()] for server in range(3)}
    before = configuration_of(stack)
    (flush,) = merge_reports(before, reports)
    delivered = [len(one.finish(flush, before)) for one in hosted]
    assert delivered == ([1, 0, 0] if stack == "causal" else [0, 0, 0])


def test_nothing_is_kept_about_servers_that_do_not_exist() -> None:
    hosted = domains("fifo")
    with pytest.raises(PeerError, match="counts of process 3; there are 3"):
        hosted[0].counted(1, varints([5, 3, 1]), 0)
