"""The links between servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flexgroup.membership.configuration import Server

from ..client.loops import on_a_loop
from ..network.in_process import servers


def test_a_connection_that_ends_before_it_is_a_link_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the server that ended it would be taken for being dialled for ever."""

    @on_a_loop
    async def dials() -> None:
        async with servers(1) as (server,):
            loop = asyncio.get_running_loop()
            connect = loop.create_connection

            async def connect_and_end(*arguments: Any, **named: Any) -> object:
                transport, protocol = await connect(*arguments, **named)
                transport.abort()
                await asyncio.sleep(0)
                return transport, protocol

            monkeypatch.setattr(loop, "create_connection", connect_and_end)
            other = Server(5, "other", server.address)
            assert await server.links.dial(server.address, other) is None
            assert not server.links.open

    dials()
