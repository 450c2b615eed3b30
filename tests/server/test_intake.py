"""What the intake holds while too much is under way, when it may go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flexgroup import Group, connect
from flexgroup.membership.effects import Freeze
from flexgroup.server.clients.session import Session
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Limits
from flexgroup.wire.requests import Send

from ..client.loops import on_a_loop
from ..network.in_process import servers


@asynccontextmanager
async def holding() -> AsyncIterator[tuple[GroupServer, int, int]]:
    """A server that holds a message of each of two clients to a group with members at this server
    only; the group, and another of the same domain that has a member elsewhere."""
    async with (
        servers(2, Limits(under_way=1)) as (first, second),
        connect(first.address, name="a") as a,
        connect(first.address, name="b") as b,
        connect(first.address, name="c") as c,
        connect(second.address, name="d") as d,
    ):
        await a.join("here", "reliable")
        await b.join("here")
        await c.join("everywhere", "reliable")
        await d.join("everywhere")
        here, everywhere = [group.number for group in first.deployment.configuration.groups]
        for _ in range(3):
            for session in list(first.members.sessions.values())[:2]:
                first.intake.cast(session, [Send([here], [b"contents"])])
            first._switchboard.flush()
        assert first.intake.is_holding
        yield first, here, everywhere
        # A change ends what the test has begun.
        await Group(a, "another").create("fifo")


@on_a_loop
async def test_what_goes_on_while_a_change_stops_a_group_is_told() -> None:
    async with holding() as (server, here, everywhere):
        (hosted,) = server.deployment.domains
        sender = list(server.members.sessions.values())[2]
        # With the packets of this message others are told how far the server is, so that it finds
        # out that there is room for what it holds.
        server.intake.cast(sender, [Send([everywhere], [b"contents"])])
        hosted.reported = 0
        report = server._switchboard.freeze(Freeze(0, (0, 0), (), hold_groups=(here,)))
        server._switchboard.flush()
        assert not server.intake.is_holding
        assert dict(report.casts)[here] == hosted.cast_to(here)


@on_a_loop
async def test_who_is_told_that_nothing_is_held_may_have_more_multicast() -> None:
    async with holding() as (server, here, _):
        (hosted,) = server.deployment.domains
        emptied: list[str] = []

        def go_on(session: Session) -> None:
            emptied.append(session.name)
            server.intake.cast_held()

        server.intake.emptied = go_on
        hosted.stability.settle((here, hosted.process))
        server.intake.cast_held()
        assert emptied == ["a", "b"]
        assert not server.intake.is_holding
