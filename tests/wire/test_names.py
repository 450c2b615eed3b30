"""Names of groups, processes and servers: what cannot be sent is refused where it is said."""

from __future__ import annotations

import pytest

from flexgroup import Group, connect
from flexgroup.core.errors import UsageError
from flexgroup.server.settings import Settings

from ..client.chat import in_chat
from ..client.loops import on_a_loop

HALF = "\ud800"


def test_a_process_cannot_be_called_half_a_character() -> None:
    with pytest.raises(
        UsageError, match=r"the name of a process cannot be sent: .* holds '\\ud800'"
    ):
        connect("localhost:7400", name=f"a{HALF}")


def test_nor_can_a_server() -> None:
    with pytest.raises(UsageError, match="the name of a server cannot be sent"):
        Settings(HALF)


@on_a_loop
async def test_nor_can_a_group_or_its_owner_or_its_members() -> None:
    async with in_chat() as (_, link, group):
        with pytest.raises(UsageError, match="the name of a group cannot be sent"):
            Group(link, HALF)
        with pytest.raises(UsageError, match="the name of an owner cannot be sent"):
            await group.create("fifo", owner=HALF)
        with pytest.raises(UsageError, match="the name of a process cannot be sent"):
            await group.create("fifo", allow=["ann", HALF])
        with pytest.raises(UsageError, match="a stack cannot be sent"):
            await group.create(HALF)
        with pytest.raises(UsageError, match="the name of a process cannot be sent"):
            await group.join(HALF)
