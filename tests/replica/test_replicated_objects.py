"""What an application sees of its replicas, with real servers and connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from flexgroup import Replica, connect, errors, ordered, values
from flexgroup.core.errors import PeerError, UsageError

from ..client.loops import on_a_loop
from ..network.in_process import servers


@dataclass
class Item:
    name: str
    price: int


class EmptyError(LookupError):
    """There is nothing to take."""


class Shelf(Replica):
    items: list[Item]
    taken_by: dict[str, int]
    colours: set[str]

    def __init__(self) -> None:
        self.items = []
        self.taken_by = {}
        self.colours = set()
        self._looked_at = 0

    @ordered
    def put(self, item: Item, times: int = 1) -> int:
        self.items += [item] * times
        return len(self.items)

    @ordered
    def take(self) -> Item:
        if not self.items:
            raise EmptyError("the shelf is empty")
        self.taken_by[self.caller] = self.taken_by.get(self.caller, 0) + 1
        return self.items.pop(0)

    @ordered
    def paint(self, colour: str) -> None:
        self.colours.add(colour)

    @ordered
    def look(self) -> int:
        self._looked_at += 1
        return self._looked_at

    @ordered
    def find(self, name: str) -> Item:
        return {item.name: item for item in self.items}[name]

    def left(self, member: str) -> None:
        self.taken_by.pop(member, None)


@asynccontextmanager
async def addresses(count: int = 2) -> AsyncIterator[list[str]]:
    async with servers(count) as running:
        yield [server.address for server in running]


@on_a_loop
async def test_a_call_returns_what_the_method_returned_at_its_place_in_the_order() -> None:
    async with (
        addresses() as (one, two),
        Shelf().join("shelf", one, name="a") as a,
        Shelf().join("shelf", two, name="b") as b,
    ):
        assert await a.put(Item("tea", 3)) == 1
        assert await b.put(Item("milk", 1), times=2) == 3
        assert await b.take() == Item("tea", 3)
        await a.caught_up()
        assert a.items == b.items == [Item("milk", 1)] * 2
        assert a.members == b.members == ("a", "b")
        assert a.taken_by == {"b": 1}
        assert (a.process, b.process) == ("a", "b")


@on_a_loop
async def test_calls_of_one_replica_are_applied_in_the_order_in_which_they_were_made() -> None:
    async with addresses(1) as (one,), Shelf().join("shelf", one) as shelf:
        sizes = await asyncio.gather(*(shelf.put(Item("tea", n)) for n in range(500)))
        assert sizes == list(range(1, 501))
        assert [item.price for item in shelf.items] == list(range(500))


@on_a_loop
async def test_a_newcomer_has_the_state_with_the_types_that_the_class_tells() -> None:
    async with addresses() as (one, two), Shelf().join("shelf", one, name="a") as a:
        for number in range(2_500):  # more than one piece
            a.items.append(Item("cup", number))
        await a.put(Item("tea", 3))
        await a.paint("green")
        await a.look()
        async with Shelf().join("shelf", two, name="b") as b:
            assert b.items == a.items
            assert b.colours == {"green"}
            assert await b.look() == 1  # what begins with an underscore is everybody's own


@on_a_loop
async def test_what_a_method_raises_is_raised_where_it_was_called_and_nowhere_else() -> None:
    async with (
        addresses() as (one, two),
        Shelf().join("shelf", one) as a,
        Shelf().join("shelf", two) as b,
    ):
        with pytest.raises(EmptyError, match="the shelf is empty"):
            await b.take()
        with pytest.raises(KeyError, match="tea"):
            await b.find("tea")
        assert await a.put(Item("tea", 3)) == 1
        assert await b.take() == Item("tea", 3)


@on_a_loop
async def test_arguments_are_checked_before_anything_is_sent() -> None:
    async with addresses(1) as (one,), Shelf().join("shelf", one) as shelf:
        wrong: Any = "tea"
        with pytest.raises(UsageError, match="put"):
            await shelf.put(wrong)
        with pytest.raises(TypeError, match=r"put\(\).*item"):
            await shelf.put(times=2)  # type: ignore[call-arg]
        assert shelf.items == []


@on_a_loop
async def test_all_replicas_are_told_who_has_left_at_the_same_place_in_the_order() -> None:
    async with addresses() as (one, two), Shelf().join("shelf", one, name="a") as a:
        await a.put(Item("tea", 3))
        async with Shelf().join("shelf", two, name="b") as b:
            await b.take()
            assert b.taken_by == {"b": 1}
        while a.members != ("a",):
            await asyncio.sleep(0.01)
        assert a.taken_by == {}


@on_a_loop
async def test_who_leaves_keeps_the_state_and_may_come_again() -> None:
    async with addresses(1) as (one,):
        shelf = Shelf()
        async with shelf.join("shelf", one):
            await shelf.put(Item("tea", 3))
        assert shelf.items == [Item("tea", 3)]
        with pytest.raises(errors.NotMember, match="in no group"):
            await shelf.take()
        async with shelf.join("another", one):
            assert await shelf.take() == Item("tea", 3)


@on_a_loop
async def test_one_can_wait_until_something_holds_of_the_state() -> None:
    async with (
        addresses() as (one, two),
        Shelf().join("shelf", one) as a,
        Shelf().join("shelf", two) as b,
    ):
        waiting = asyncio.ensure_future(b.until(lambda: b.items[2:]))
        for price in range(3):
            assert not waiting.done()
            await a.put(Item("tea", price))
        assert await waiting == [Item("tea", 2)]


class Nested(Replica):
    @ordered
    def inner(self) -> int:
        return 1

    @ordered
    def outer(self) -> None:
        self.inner()


@on_a_loop
async def test_an_ordered_method_that_calls_another_is_told_what_to_do_instead() -> None:
    async with addresses(1) as (one,), Nested().join("nested", one) as nested:
        with pytest.raises(errors.CallFailed, match="put what both do into a plain method"):
            await nested.outer()


@on_a_loop
async def test_a_call_that_nobody_waits_for_any_more_does_no_harm() -> None:
    async with addresses(1) as (one,), Shelf().join("shelf", one) as shelf:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await shelf.put(Item("tea", 1))
        assert await shelf.put(Item("milk", 1)) in (1, 2)


class Unclear(Replica):
    """Its attribute would come back as a list, and it does not say that it is a set."""

    def __init__(self) -> None:
        self.names = {"a"}


@on_a_loop
async def test_a_state_that_would_come_back_as_another_is_refused_and_says_what_to_do() -> None:
    async with addresses(1) as (one,), Unclear().join("unclear", one):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        with pytest.raises(PeerError, match="annotate its type in the class, as in `names: set`"):
            await Unclear().join("unclear", one)


class NewerShelf(Shelf):
    @ordered
    def empty(self) -> None:
        self.items.clear()


@on_a_loop
async def test_a_newcomer_of_another_class_is_refused_and_told_what_differs() -> None:
    async with addresses(1) as (one,), Shelf().join("shelf", one) as shelf:
        with pytest.raises(PeerError, match=r"another than the one here, in empty\(\)"):
            await NewerShelf().join("shelf", one)
        assert await shelf.put(Item("tea", 3)) == 1


@on_a_loop
async def test_a_stack_without_a_total_order_is_refused() -> None:
    async with addresses(1) as (one,):
        with pytest.raises(errors.BadStack, match=r"prefix order.*take ABCAST SAFE"):
            await Shelf().join("shelf", one, stack="RELIABLE CAUSAL")


@on_a_loop
async def test_nobody_at_any_address_is_told_at_once() -> None:
    async with addresses(1) as (one,):
        host = one.rpartition(":")[0]
        with pytest.raises(errors.CannotConnect):
            await Shelf().join("shelf", [f"{host}:1", f"{host}:2"])
        async with Shelf().join("shelf", [f"{host}:1", one]) as shelf:
            assert await shelf.put(Item("tea", 3)) == 1


@on_a_loop
async def test_what_is_no_message_of_a_replica_is_passed_over_by_all() -> None:
    async with addresses(1) as (one,), Shelf().join("shelf", one) as shelf:
        strange: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: strange.append(what))
        async with connect(one, name="stranger") as link:
            group = await link.join("shelf")
            await group.send(b"what is this?")
            await group.confirm()
            assert await shelf.put(Item("tea", 3)) == 1
        assert "a message of stranger" in strange[0]["message"]


@on_a_loop
async def test_a_method_without_a_place_in_the_order_is_told_when_it_is_written() -> None:
    with pytest.raises(UsageError, match="coroutine"):

        class Waits(Replica):
            @ordered
            async def wait(self) -> None: ...

    with pytest.raises(UsageError, match=r"takes \*names"):

        class Many(Replica):
            @ordered
            def call(self, *names: str) -> None: ...


class Large(Replica):
    """Tells its state in pieces of its own, as it was when the first one was drawn."""

    def __init__(self) -> None:
        self.pages: dict[int, str] = {}

    @ordered
    def write(self, page: int, text: str) -> None:
        self.pages[page] = text

    def snapshot(self) -> Iterator[bytes]:
        for page, text in list(self.pages.items()):
            yield values.encode([page, text * 10_000])

    def restore(self, piece: bytes) -> None:
        page, text = values.decode(piece)
        self.pages[page] = text[:1]


@on_a_loop
async def test_a_class_may_tell_its_state_in_its_own_way_while_calls_go_on() -> None:
    async with addresses() as (one, two), Large().join("pages", one) as writer:
        for page in range(50):
            await writer.write(page, "a")
        coming = asyncio.ensure_future(asyncio.wait_for(Large().join("pages", two)._begin(), 30))
        page = 0
        while not coming.done():
            await writer.write(page % 60, "b")
            page += 1
        reader = await coming
        await reader.caught_up()
        assert reader.pages == writer.pages
        await reader.leave()
