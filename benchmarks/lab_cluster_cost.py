"""What it costs a server to be looked at by the lab, which does so once a second.

    python benchmarks/lab_cluster_cost.py

One server with a hundred groups, each with a member, is inspected again and again; its processor
time is what it tells itself, without what it uses when nobody asks.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from flexgroup import connect
from flexgroup._pure import compiled
from flexgroup.load.local_cluster import LocalCluster

GROUPS = 100
INSPECTIONS = 200
IDLE_SECONDS = 5.0
STACK = "RELIABLE ATOMIC"


async def cost(address: str) -> tuple[float, float]:
    """Return the milliseconds of processor time of an inspection, and of a second without one."""
    async with connect(address) as link:
        for number in range(GROUPS):
            await link.join(f"group-{number}", STACK)

        async def used() -> float:
            return float((await link.inspect())["totals"]["cpu_seconds"])

        before = await used()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (await used() - before) / IDLE_SECONDS
        before, began = await used(), time.monotonic()
        for _ in range(INSPECTIONS - 1):
            await link.inspect()
            await asyncio.sleep(0.01)  # so that it makes a document of its own each time
        busy = await used() - before
        seconds = time.monotonic() - began
    return 1000 * (busy - idle * seconds) / INSPECTIONS, 1000 * idle


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(1, Path(folder)) as cluster:
        inspection, idle = asyncio.run(cost(cluster.addresses[0]))
    print(f"{'compiled' if compiled() else 'pure Python'}, {GROUPS} groups")
    print(f"an inspection: {inspection:.2f} ms of processor time")
    print(f"a second without one: {idle:.1f} ms")


if __name__ == "__main__":
    main()
