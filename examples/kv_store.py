"""A replicated key-value store: every process has a copy, and all copies change in one order.

Commands are messages to a group with the stack RELIABLE ATOMIC. All members deliver them in the
same order, so their copies stay equal without locks. A read sends a marker and waits until that
is delivered: everything that was written before the read began comes before the marker, so the
answer is never old (the store is linearizable).

A newcomer asks nobody for the state. The view that lets it in has the same place in the order at
all members, so the oldest one sends its copy as of that place; the newcomer keeps the commands
that follow, and applies them to the copy when it comes.

    flexgroup server &
    python examples/kv_store.py --name a        # and in another terminal: --name b
    put colour green
    get colour
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from flexgroup import FlexGroupError, Group, Message, View, connect, values

STACK = "RELIABLE ATOMIC"


class Store:
    """One copy. Commands: put, delete, swap (if the old value is as expected), and get."""

    def __init__(self, group: Group[Any]) -> None:
        self._group = group
        self._data: dict[str, Any] | None = None
        """None until this copy is complete."""
        self._kept: list[Message[Any] | View] = []
        """What was delivered since this process joined, while the copy is not complete."""
        self._members: tuple[str, ...] = ()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._commands = 0
        self.complete = asyncio.Event()

    async def put(self, key: str, value: Any) -> None:
        await self._command("put", key, value)

    async def delete(self, key: str) -> None:
        await self._command("delete", key)

    async def swap(self, key: str, expected: Any, value: Any) -> bool:
        """Put the value if the key has the expected one; whether it had."""
        return bool(await self._command("swap", key, expected, value))

    async def get(self, key: str) -> Any:
        return await self._command("get", key)

    async def _command(self, *command: Any) -> Any:
        """Send it, and wait for its place in the order; the result."""
        self._commands += 1
        number = self._commands
        result = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._group.send([number, *command])
        return await result

    async def replicate(self) -> None:
        """Do what is delivered, until the group ends."""
        async for event in self._group.events():
            if isinstance(event, View):
                await self._see(event)
            elif event.body[0] == "copy":
                self._take_copy(*event.body[1:])
            elif self._data is None:
                self._kept.append(event)
            else:
                self._do(event)

    async def _see(self, view: View) -> None:
        newcomers = set(view.members) - set(self._members)
        was_oldest = self._members[:1] == (self._group.process,)
        self._members = view.members
        if self._data is None:
            self._kept.append(view)
        if view.members[0] != self._group.process:
            return
        if self._data is None:
            # Members are in the order they joined: nobody is left who has a complete copy.
            self._take_copy(view.number, {})
        if len(view.members) > 1 and (newcomers or not was_oldest):
            await self._group.send(["copy", view.number, self._data])

    def _take_copy(self, number: int, data: dict[str, Any]) -> None:
        """The copy as of a view: what was delivered since is still to be done."""
        since = [i for i, e in enumerate(self._kept) if isinstance(e, View) and e.number == number]
        if self._data is None and since:
            self._data = data
            for event in self._kept[since[0] :]:
                if isinstance(event, Message):
                    self._do(event)
            self._kept.clear()
            self.complete.set()

    def _do(self, message: Message[Any]) -> None:
        assert self._data is not None
        number, command, key, *rest = message.body
        result = None
        if command == "put":
            self._data[key] = rest[0]
        elif command == "delete":
            self._data.pop(key, None)
        elif command == "swap":
            result = self._data.get(key) == rest[0]
            if result:
                self._data[key] = rest[1]
        else:
            result = self._data.get(key)
        if message.sender == self._group.process:
            self._waiting.pop(number).set_result(result)


@asynccontextmanager
async def open_store(address: str | None, name: str, store: str = "kv") -> AsyncIterator[Store]:
    """A complete copy of the store of that name, kept up to date in the background."""
    async with connect(address, name=name) as link:
        group = await link.join(store, STACK, codec=values)
        copy = Store(group)
        async with asyncio.TaskGroup() as tasks:
            replication = tasks.create_task(copy.replicate())
            await copy.complete.wait()
            yield copy
            await group.leave()
            await replication


async def converse(address: str | None, name: str) -> None:
    async with open_store(address, name) as store:
        commands: dict[str, Callable[..., Awaitable[Any]]] = {
            "put": store.put,
            "get": store.get,
            "delete": store.delete,
            "swap": store.swap,
        }
        async for line in typed_lines():
            word, *arguments = line.split() or [""]
            try:
                print(await commands[word](*arguments))
            except (KeyError, TypeError):
                print("put KEY VALUE | get KEY | delete KEY | swap KEY OLD NEW")


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
    parser = argparse.ArgumentParser(description="A replicated key-value store.")
    parser.add_argument("--server", default=address, help="host:port or unix:PATH")
    parser.add_argument("--name", required=True, help="the name of this copy")
    options = parser.parse_args()
    problem: Exception | None = None
    try:
        asyncio.run(converse(options.server, options.name))
    except* FlexGroupError as raised:
        problem = raised.exceptions[0]
    except* KeyboardInterrupt:
        pass
    if problem is not None:
        sys.exit(f"kv_store.py: {problem}")


if __name__ == "__main__":
    main()
