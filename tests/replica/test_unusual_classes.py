"""Classes that are written in other ways than the examples, and what their methods raise."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, ClassVar

import pytest

from flexgroup import Group, Replica, connect, errors, ordered
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.replicated import Dict, Lock

from ..client.loops import on_a_loop
from ..network.in_process import servers


class Left(Replica):
    counted = 0

    @ordered
    def count(self) -> int:
        self.counted += 1
        return self.counted

    @ordered
    def both(self) -> str:
        return "left"


class Right(Replica):
    @ordered
    def both(self) -> str:
        return "right"

    @ordered
    def second(self, first: int, *, by: int, times: int = 1) -> int:
        return first * by * times


class Heir(Left, Right):
    @ordered
    def count(self) -> int:
        self.counted += 10
        return self.counted


class CannotTell(Exception):  # noqa: N818 (it is a name for a test)
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Moody(Replica):
    applied = 0

    @ordered
    def fail(self, how: str) -> None:
        self.applied += 1
        if how == "without a text":
            raise CannotTell
        if how == "in surrogates":
            raise ValueError("\udcff")
        raise asyncio.CancelledError

    @ordered
    def count(self) -> int:
        return self.applied


class Holder(Replica):
    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    @ordered
    def hold(self, name: str, value: Any) -> None:
        self.held[name] = value


class Defaults(Replica):
    counts: dict[str, int]

    def __init__(self) -> None:
        self.counts = defaultdict(int)


class SharedList(Replica):
    KINDS = ["constant"]
    known: ClassVar[list[str]] = []
    items: list[int] = []


@dataclass(slots=True)
class Slotted(Replica):
    items: list[int] = field(default_factory=list)


@on_a_loop
async def test_a_class_has_the_ordered_methods_of_all_its_bases_and_its_own_before_theirs() -> None:
    async with servers(1) as (server,), Heir().join("it", server.address) as heir:
        assert await heir.count() == 10
        assert await heir.both() == "left"
        assert await heir.second(2, by=3) == 6
        assert await heir.second(first=2, times=2, by=3) == 12


@on_a_loop
async def test_a_method_may_raise_what_has_no_text_and_what_ends_tasks() -> None:
    async with servers(1) as (server,), Moody().join("it", server.address) as moody:
        kinds = ("without a text", "in surrogates", "as if cancelled")
        with pytest.raises(CannotTell):
            await moody.fail(kinds[0])
        with pytest.raises(ValueError, match="udcff"):
            await moody.fail(kinds[1])
        with pytest.raises(errors.CallFailed, match="CancelledError"):
            await moody.fail(kinds[2])
        assert await moody.count() == 3


@on_a_loop
async def test_what_is_not_equal_to_itself_reaches_newcomers() -> None:
    async with servers(1) as (server,), Holder().join("it", server.address) as first:
        await first.hold("x", nan)
        async with Holder().join("it", server.address) as second:
            assert isnan(second.held["x"])


@on_a_loop
async def test_many_large_items_reach_newcomers() -> None:
    async with servers(1) as (server,):
        first = Holder()
        first.held = {str(number): bytes(600_000) for number in range(30)}
        async with (
            first.join("it", server.address),
            Holder().join("it", server.address) as second,
        ):
            assert second.held == first.held


@on_a_loop
async def test_a_container_that_would_come_back_as_another_is_refused_though_it_fits_its_type() -> (
    None
):
    async with servers(1) as (server,), Defaults().join("it", server.address):
        with pytest.raises(PeerError, match="counts of Defaults would come back"):
            await Defaults().join("it", server.address)


def test_what_only_looks_like_an_attribute_of_the_object_is_refused() -> None:
    with pytest.raises(UsageError, match=r"SharedList\.items is one list for all objects"):
        SharedList().join("it")
    with pytest.raises(UsageError, match="Slotted has a slot for items"):
        Slotted().join("it")


@on_a_loop
async def test_a_call_that_is_too_large_fails_and_those_behind_it_are_applied() -> None:
    async with servers(1) as (server,), Holder().join("it", server.address) as holder:
        calls = [holder.hold(str(number), number) for number in range(3_000)]
        too_large = holder.hold("all", bytes(2 << 20))
        results = await asyncio.gather(
            *calls, too_large, holder.hold("last", None), return_exceptions=True
        )
        assert [r for r in results if r is not None] == [results[3_000]]
        assert isinstance(results[3_000], errors.TooLarge)
        assert len(holder.held) == 3_001


@on_a_loop
async def test_who_may_not_join_is_told_at_once() -> None:
    async with servers(1) as (server,), connect(server.address, name="owner") as link:
        group = Group(link, "it")
        await group.create("ABCAST SAFE", allow=["owner"])
        with pytest.raises(errors.NotAllowed):
            await Holder().join("it", server.address, name="stranger")


@on_a_loop
async def test_a_dictionary_remembers_nothing_of_keys_that_are_gone() -> None:
    async with servers(1) as (server,), Dict().join("it", server.address) as entries:
        seen = entries.watch("0")
        assert await anext(seen) is None
        for number in range(20):
            await entries.put(str(number), number)
        assert await anext(seen) == 0
        for number in range(20):
            await entries.pop(str(number))
        assert await anext(seen) is None
        assert entries.entries == {}
        assert entries.changes == {}


@on_a_loop
async def test_tasks_of_one_process_hold_a_lock_one_after_another() -> None:
    async with servers(1) as (server,), Lock().join("it", server.address) as lock:
        inside = 0

        async def hold() -> None:
            nonlocal inside
            async with lock.held():
                inside += 1
                assert inside == 1
                await lock.caught_up()
                inside -= 1

        await asyncio.gather(*[hold() for _ in range(3)])
        assert lock.fence == 3


@pytest.mark.parametrize("timeout", [None, 0, "long"])
def test_a_time_that_is_none_is_refused(timeout: Any) -> None:
    with pytest.raises(UsageError, match="give seconds above 0"):
        Holder().join("it", timeout=timeout)


class Text(Replica):
    def snapshot(self) -> Any:
        return ["text"]


@on_a_loop
async def test_a_newcomer_is_told_that_a_snapshot_is_not_made_of_bytes() -> None:
    async with servers(1) as (server,), Text().join("it", server.address):
        with pytest.raises(PeerError, match="a snapshot is made of bytes, not of 'text'"):
            await Text().join("it", server.address)


@on_a_loop
async def test_whatever_goes_wrong_with_the_connection_ends_what_is_waited_for() -> None:
    tls: Any = "no folder", "and no context"
    with pytest.raises(errors.ConnectionLost, match=r"no connection any more \(TypeError: "):
        await Holder().join("it", "localhost:1", tls=tls)
