"""What the objects that are ready to use do, with several processes and servers that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from flexgroup.replica.membership import member_of
from flexgroup.replicated import Barrier, Counter, Dict, Election, Lock, Queue

from ..client.loops import on_a_loop
from .test_replicated_objects import addresses


@on_a_loop
async def test_no_two_processes_count_the_same_number() -> None:
    async with (
        addresses() as (one, two),
        Counter().join("n", one) as a,
        Counter().join("n", two) as b,
    ):
        numbers = await asyncio.gather(*(counter.add() for counter in (a, b) * 20))
        assert sorted(numbers) == list(range(1, 41))
        assert [await a.set_if(40, 7), await b.set_if(40, 8)] == [True, False]


@on_a_loop
async def test_who_watches_a_key_sees_its_value_and_its_last_one() -> None:
    async with (
        addresses() as (one, two),
        Dict().join("d", one) as a,
        Dict().join("d", two) as b,
    ):
        await a.put("colour", "red")
        assert await b.get("colour") == "red"
        seen = []

        async def watch() -> None:
            async for value in b.watch("colour"):
                seen.append(value)
                if value is None:
                    return

        watching = asyncio.ensure_future(watch())
        assert await a.swap("colour", "red", "green")
        assert not await b.swap("colour", "red", "blue")
        await a.update({"colour": "white", "size": 3})
        assert await a.pop("colour") == "white"
        assert await a.pop("colour") is None
        await watching
        assert seen[-1] is None
        await b.caught_up()
        assert b.entries == {"size": 3}


@on_a_loop
async def test_each_item_of_a_queue_is_taken_once() -> None:
    async with (
        addresses() as (one, two),
        Queue().join("q", one) as a,
        Queue().join("q", two) as b,
    ):
        takers = [asyncio.ensure_future(queue.get()) for queue in (a, b) * 10]
        for item in range(20):
            await a.put(item)
        assert sorted(await asyncio.gather(*takers)) == list(range(20))
        with pytest.raises(IndexError, match="empty"):
            await b.take()


@on_a_loop
async def test_who_is_cancelled_while_it_gets_an_item_has_taken_none() -> None:
    async with addresses(1) as (one,), Queue().join("q", one) as queue:
        for item in range(100):
            await queue.put(item)
        got = []
        for _ in range(50):
            with suppress(TimeoutError):
                got.append(await asyncio.wait_for(queue.get(), 0.0005))
        while queue.items:
            got.append(await queue.get())
        assert sorted(got) == list(range(100))


@on_a_loop
async def test_one_process_at_a_time_holds_a_lock_and_fences_grow() -> None:
    async with (
        addresses() as (one, two),
        Lock().join("l", one, name="a") as a,
        Lock().join("l", two, name="b") as b,
        Lock().join("l", two, name="c") as c,
    ):
        inside: list[str] = []
        fences: list[int] = []

        async def work(lock: Lock) -> None:
            for _ in range(5):
                async with lock.held() as fence:
                    assert inside == []
                    inside.append(lock.process)
                    fences.append(fence)
                    await asyncio.sleep(0.001)
                    inside.remove(lock.process)

        await asyncio.gather(work(a), work(b), work(c))
        assert fences == sorted(set(fences))
        await a.caught_up()
        assert a.holder is None


@on_a_loop
async def test_what_a_dead_holder_held_goes_to_the_next_in_line() -> None:
    async with (
        addresses() as (one, two),
        Lock().join("l", one, name="a") as a,
        held_by_who_dies(two) as fence,
    ):
        waiting = asyncio.ensure_future(a.acquire())
        await a.until(lambda: a.line == ["b", "a"])
        assert not waiting.done()
        fence.die()
        assert await waiting > fence.number


class Dying:
    def __init__(self, lock: Lock, number: int) -> None:
        self._lock = lock
        self.number = number

    def die(self) -> None:
        """Close the connection without a word, and never come back."""
        member_of(self._lock)._running.cancel()


@asynccontextmanager
async def held_by_who_dies(address: str) -> AsyncIterator[Dying]:
    lock = await Lock().join("l", address, name="b")
    yield Dying(lock, await lock.acquire())


@on_a_loop
async def test_a_lease_that_is_not_renewed_ends_when_others_wait() -> None:
    async with (
        addresses(1) as (one,),
        Lock(lease=0.05).join("l", one, name="a") as a,
        Lock(lease=0.05).join("l", one, name="b") as b,
    ):
        first = await a.acquire()
        assert await b.acquire() > first
        assert a.holder == "b"


@on_a_loop
async def test_a_cancelled_wait_leaves_the_line() -> None:
    async with (
        addresses(1) as (one,),
        Lock().join("l", one, name="a") as a,
        Lock().join("l", one, name="b") as b,
    ):
        await a.acquire()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await b.acquire()
        assert b.line == ["a"]


@on_a_loop
async def test_when_the_leader_leaves_the_next_one_leads() -> None:
    async with addresses() as (one, two), Election().join("e", two, name="b") as b:
        async with Election().join("e", one, name="a") as a:
            assert a.leader == b.leader == "b"
            follower = asyncio.ensure_future(a.lead())
            await b.leave()
            await follower
            assert a.leads
        await b.join("e", two, name="b")


@on_a_loop
async def test_nobody_passes_a_barrier_before_all_are_there() -> None:
    async with (
        addresses() as (one, two),
        Barrier(3).join("b", one) as a,
        Barrier(3).join("b", two) as b,
        Barrier(3).join("b", two) as c,
    ):
        for number in range(1, 4):
            early = [asyncio.ensure_future(barrier.wait()) for barrier in (a, b)]
            await c.until(lambda: len(c.waiting) == 2)
            assert not any(waiting.done() for waiting in early)
            assert await c.wait() == number
            assert await asyncio.gather(*early) == [number, number]
