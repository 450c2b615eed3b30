"""Confirmations, by servers on the test's event loop."""

from __future__ import annotations

import asyncio

import pytest

from flexgroup import connect
from flexgroup.client.errors import NoAnswer, NotMember, TooLarge
from flexgroup.membership.messages import Commit
from flexgroup.server.settings import Limits
from flexgroup.wire import requests

from ..client.loops import on_a_loop
from .in_process import Held, servers


@pytest.mark.parametrize("stack", ["RELIABLE", "RELIABLE SAFE", "RELIABLE ATOMIC SAFE"])
@on_a_loop
async def test_what_is_confirmed_is_at_all_servers_with_members(stack: str) -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        sender = await a.join("g", stack)
        await b.join("g")
        for count in range(1, 4):
            await sender.send(b"m")
            await sender.confirm()
            (hosted,) = second.deployment.domains
            held_back = hosted.domain.host.stack.held_back()
            assert hosted.messages_delivered + len(held_back) == count


@on_a_loop
async def test_who_only_sends_is_confirmed_as_well() -> None:
    """Its own server has no members, and delivers nothing."""
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        member = await b.join("g", "RELIABLE SAFE", open=True)
        sender = await a.attach("g")
        await sender.send(b"m")
        await sender.confirm()
        assert (await member.receive()).body == b"m"


@on_a_loop
async def test_what_is_held_during_a_change_is_confirmed_after_it() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b", timeout=0.2) as b,
        connect(first.address, name="c") as c,
    ):
        await a.join("g", "RELIABLE")
        sender = await b.join("g")
        commits = Held(first, Commit)
        await c.join("g")
        while not second.deployment.is_changing:
            await asyncio.sleep(0)
        await sender.send(b"m")
        with pytest.raises(NoAnswer):
            await sender.confirm()
        commits.release()
        await sender.confirm()
        assert first.deployment.domains[0].messages_delivered == 1


@on_a_loop
async def test_what_was_refused_is_not_confirmed() -> None:
    async with (
        servers(1, Limits(largest_message=10)) as (server,),
        connect(server.address) as link,
    ):
        group = await link.join("g", "RELIABLE")
        link.connection.outgoing.largest = 100
        await group.send(b"too large to be taken")
        with pytest.raises(TooLarge):
            await group.confirm()


@on_a_loop
async def test_a_message_to_several_groups_is_refused_in_all_of_them() -> None:
    """One of them is destroyed before its member knows; whoever reads meanwhile takes notice, and
    nothing is confirmed all the same."""
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        stays, ends = await a.join("stays", "RELIABLE"), await a.join("ends", "RELIABLE")
        ended = asyncio.ensure_future((await b.join("ends")).destroy())
        while first.deployment.domain_key(ends.inbox().handle) is not None:
            await asyncio.sleep(0)
        await a.multicast([stays, ends], b"m")  # its client has not been told yet
        await ended
        with pytest.raises(NotMember):
            await a.receive()
        with pytest.raises(NotMember):
            await stays.confirm()
        await stays.confirm()


@on_a_loop
async def test_a_group_that_one_is_not_in_has_nothing_to_confirm() -> None:
    async with servers(1) as (server,), connect(server.address) as link:
        with pytest.raises(NotMember, match="nothing to confirm"):
            await link.connection.ask(lambda number: requests.Confirm(number, 7), requests.Done)
