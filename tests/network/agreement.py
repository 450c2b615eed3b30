"""Asking servers what they believe, and waiting until they believe the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from flexgroup import connect
from flexgroup.core.errors import FlexGroupError

from .servers import LAST_RESORT, ServerProcess

Belief = tuple[int, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]
"""The configuration's number, the servers, and the groups with their members."""


async def belief_of(address: str) -> Belief:
    async with connect(address, name="observer", timeout=5) as link:
        seen: dict[str, Any] = await link.inspect()
    return (
        seen["configuration"],
        tuple(server["name"] for server in seen["servers"]),
        tuple(
            (group["name"], tuple(member["process"] for member in group["members"]))
            for group in seen["groups"]
        ),
    )


async def agree(
    servers: Sequence[ServerProcess], like: Callable[[Belief], bool], what: str
) -> Belief:
    """What all these servers believe, once it is the same and as it should be."""
    beliefs: list[object] = []
    try:
        async with asyncio.timeout(LAST_RESORT):
            while True:
                beliefs = []
                for server in servers:
                    try:
                        beliefs.append(await belief_of(server.address))
                    except FlexGroupError as error:
                        beliefs.append(str(error))
                first = beliefs[0]
                same = all(belief == first for belief in beliefs)
                if same and isinstance(first, tuple) and like(first):
                    return first
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what}: never; last seen: {beliefs}") from None


def servers_are(*names: str) -> Callable[[Belief], bool]:
    return lambda belief: set(belief[1]) == set(names)


def members_are(group: str, *processes: str) -> Callable[[Belief], bool]:
    return lambda belief: dict(belief[2]).get(group) == processes
