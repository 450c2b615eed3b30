"""The same without async: ordered methods wait and return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flexgroup import BlockingReplica, ordered

from ..network.in_process import servers


class Counter(BlockingReplica):
    value = 0

    @ordered
    def add(self, n: int = 1) -> int:
        self.value += n
        return self.value


@contextmanager
def one_server() -> Iterator[str]:
    """The address of a server that runs in a thread of its own."""
    ready: list[str] = []
    has_begun = threading.Event()
    loop = asyncio.new_event_loop()
    is_over = asyncio.Event()

    async def serve() -> None:
        async with servers(1) as (server,):
            ready.append(server.address)
            has_begun.set()
            await is_over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    has_begun.wait()
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()


def test_threads_call_and_each_call_has_its_place() -> None:
    with (
        one_server() as address,
        Counter().join("counter", address) as a,
        Counter().join("counter", address) as b,
    ):
        results: list[int] = []

        def count(counter: Counter) -> None:
            results.extend(counter.add() for _ in range(50))

        threads = [threading.Thread(target=count, args=(counter,)) for counter in (a, b, a)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == list(range(1, 151))
        a.caught_up()
        assert a.value == 150
        assert set(a.members) == {a.process, b.process}


class Slow(BlockingReplica):
    value = 0

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._is_applying = threading.Event()
        self._goes_on = threading.Event()

    @ordered
    def add(self, n: int) -> int:
        if n == 1:
            self._is_applying.set()
            self._goes_on.wait()
        self.value += n
        return self.value

    def joined(self, member: str) -> None:
        self.sizes.append(len(self.members))


def test_one_thread_calls_while_a_call_of_another_is_being_applied() -> None:
    results = []
    with one_server() as server, Slow().join("slow", server) as slow:
        first = threading.Thread(target=lambda: results.append(slow.add(1)))
        first.start()
        slow._is_applying.wait()
        threading.Timer(0.05, slow._goes_on.set).start()
        assert slow.add(2) == 3
        first.join()
        assert results == [1]


def test_what_is_applied_before_joining_has_returned_sees_the_members() -> None:
    with (
        one_server() as server,
        Slow().join("slow", server) as first,
        Slow().join("slow", server) as second,
    ):
        second.caught_up()
        first.caught_up()
        assert first.sizes == second.sizes == [1, 2]
