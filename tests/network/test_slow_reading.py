"""A member that takes nothing from its connection: large messages count by their bytes."""

from __future__ import annotations

import asyncio

from flexgroup import connect
from flexgroup.server.settings import Limits

from ..client.loops import on_a_loop
from .in_process import servers

LIMITS = Limits(queue_bytes=1 << 20, under_way_bytes=1 << 20, slow_seconds=1.0)
MESSAGES, BYTES = 300, 100_000


@on_a_loop
async def test_senders_are_held_up_until_it_is_excluded() -> None:
    async with servers(1, LIMITS) as (server,), connect(server.address, name="a") as a:
        lazy = await connect(server.address, name="lazy")
        group = await a.join("g", "fifo", own=False)
        await lazy.join("g")
        transport = lazy.connection._transport
        assert transport is not None
        transport.pause_reading()
        (session,) = [s for s in server.members.sessions.values() if s.name == "lazy"]
        (seat,) = session.seats.values()
        sending = asyncio.create_task(group.send_all([bytes(BYTES)] * MESSAGES))
        most = 0
        while session.number in server.members.sessions:
            most = max(most, seat.queued_bytes)
            await asyncio.sleep(0.01)
        assert LIMITS.queue_bytes < most < MESSAGES * BYTES / 3
        await sending
        transport.abort()
