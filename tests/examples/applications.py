"""What the applications of examples/ promise, with the servers at some addresses."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    """A file of examples/, as a module."""
    full = f"example_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


async def a_read_at_one_copy_sees_what_was_written_at_another(addresses: list[str]) -> None:
    open_store = example("kv_store").open_store
    async with open_store(addresses[0], "a") as a, open_store(addresses[-1], "b") as b:
        for number in range(20):
            await a.put("number", number)
            assert await b.get("number") == number
        await b.delete("number")
        assert await a.get("number") is None


async def of_swaps_at_the_same_time_exactly_one_succeeds(addresses: list[str]) -> None:
    open_store = example("kv_store").open_store
    async with open_store(addresses[0], "a") as a, open_store(addresses[-1], "b") as b:
        for turn in range(10):
            swaps = (a.swap("owner", turn or None, turn + 1), b.swap("owner", turn or None, -1))
            won = await asyncio.gather(*swaps)
            assert sorted(won) == [False, True]
            await a.put("owner", turn + 1)


async def a_copy_that_comes_late_has_everything(addresses: list[str]) -> None:
    open_store = example("kv_store").open_store
    async with open_store(addresses[0], "old") as old:
        await old.put("before", 1)

        async def go_on_writing() -> None:
            for number in range(50):
                await old.put("meanwhile", number)

        writing = asyncio.create_task(go_on_writing())
        async with open_store(addresses[-1], "new") as new:
            assert await new.get("before") == 1
            await writing
            assert await new.get("meanwhile") == 49
            await old.put("after", 2)
            async with open_store(addresses[0], "newest") as newest:
                assert await newest.get("after") == 2


async def the_oldest_copy_may_leave(addresses: list[str]) -> None:
    open_store = example("kv_store").open_store
    async with open_store(addresses[0], "first") as first:
        await first.put("kept", "yes")
        second_opened = open_store(addresses[-1], "second")
        second = await second_opened.__aenter__()
    async with open_store(addresses[0], "third") as third:
        assert await third.get("kept") == "yes"
        assert await second.get("kept") == "yes"
    await second_opened.__aexit__(None, None, None)


class Person:
    """Somebody in the chat, who writes when told to."""

    def __init__(self, address: str, name: str) -> None:
        self.seen: list[str] = []
        self._news = asyncio.Event()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        chat = example("chat").chat
        self._chat = asyncio.create_task(chat(address, name, "room", self._typed(), self._show))

    async def _typed(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    def _show(self, line: str) -> None:
        self.seen.append(line)
        self._news.set()

    def write(self, line: str) -> None:
        self._lines.put_nowait(line)

    async def reads(self, line: str) -> None:
        while line not in self.seen:
            if self._chat.done():
                await self._chat
            self._news.clear()
            await self._news.wait()

    async def leave(self) -> None:
        self._lines.put_nowait(None)
        await self._chat


async def nobody_reads_an_answer_before_what_it_answers(addresses: list[str]) -> None:
    people = []
    for number, name in enumerate(("alice", "bob", "carol")):
        people.append(Person(addresses[number % len(addresses)], name))
        await people[0].reads(f"* {name} is here")
    alice, bob, carol = people
    for turn in range(10):
        alice.write(f"question {turn}")
        await bob.reads(f"alice: question {turn}")
        bob.write(f"answer {turn}")
        await alice.reads(f"bob: answer {turn}")
    await carol.reads("bob: answer 9")
    said = [line for line in carol.seen if not line.startswith("*")]
    assert said == [
        line for turn in range(10) for line in (f"alice: question {turn}", f"bob: answer {turn}")
    ]
    await bob.leave()
    await carol.reads("* bob has left")
    await asyncio.gather(alice.leave(), carol.leave())


async def every_audit_finds_all_the_money(addresses: list[str]) -> None:
    totals = await example("bank").run(addresses, transfers=10)
    assert set(totals) == {12 * 100}
    assert len(totals) > 1


async def nobody_pays_what_they_do_not_have(addresses: list[str]) -> None:
    bank = example("bank")
    async with bank.open_bank(addresses) as branches:
        first: Any = branches[0]
        assert await first.transfer(0, 1, 60)
        assert not await first.transfer(0, 2, 60)
        assert await first.transfer(0, 3, 40)
        assert await first.audit() == 12 * 100
        assert [branch.balances[0] for branch in branches[:1]] == [0]
        assert branches[2].balances[1] == branches[3].balances[1] == 160
        assert first.balances[3] == 140


PROMISES = [
    a_read_at_one_copy_sees_what_was_written_at_another,
    of_swaps_at_the_same_time_exactly_one_succeeds,
    a_copy_that_comes_late_has_everything,
    the_oldest_copy_may_leave,
    nobody_reads_an_answer_before_what_it_answers,
    every_audit_finds_all_the_money,
    nobody_pays_what_they_do_not_have,
]
