"""A chat in which no answer is seen before what it answers.

The stack is RELIABLE CAUSAL: if Bob writes after he has read what Alice wrote, everybody reads
Alice first. What two people write at the same time may appear in either order.

    flexgroup server &
    python examples/chat.py --name alice        # and in another terminal: --name bob
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress

from flexgroup import FlexGroupError, Group, View, connect

STACK = "RELIABLE CAUSAL"


async def chat(
    address: str | None,
    name: str,
    room: str,
    lines: AsyncIterable[str],
    show: Callable[[str], None],
) -> None:
    """Send lines, and show what the others write and who comes and goes, until lines end."""
    async with connect(address, name=name) as link, asyncio.TaskGroup() as tasks:
        group = await link.join(room, STACK, own=False)
        tasks.create_task(follow(group, show))
        async for line in lines:
            await group.send(line.encode())
        await group.leave()


async def follow(group: Group[bytes], show: Callable[[str], None]) -> None:
    here: tuple[str, ...] = ()
    async for event in group.events():
        if isinstance(event, View):
            for name in event.members:
                if name not in here:
                    show(f"* {name} is here")
            for name in here:
                if name not in event.members:
                    show(f"* {name} has left")
            here = event.members
        else:
            show(f"{event.sender}: {event.body.decode(errors='replace')}")


async def typed_lines() -> AsyncIterator[str]:
    """Standard input, read by a thread that may be left waiting when the program ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with open(sys.stdin.fileno(), closefd=False) as typed, suppress(RuntimeError):
            for line in typed:
                loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\n"))
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


def main(address: str | None = None) -> None:
    parser = argparse.ArgumentParser(description="A chat on the terminal; Ctrl-D ends it.")
    parser.add_argument("--server", default=address, help="host:port or unix:PATH")
    parser.add_argument("--name", required=True)
    parser.add_argument("--room", default="lobby")
    options = parser.parse_args()
    problem: Exception | None = None
    try:
        asyncio.run(chat(options.server, options.name, options.room, typed_lines(), print))
    except* FlexGroupError as raised:
        problem = raised.exceptions[0]
    except* KeyboardInterrupt:
        pass
    if problem is not None:
        sys.exit(f"chat.py: {problem}")


if __name__ == "__main__":
    main()
