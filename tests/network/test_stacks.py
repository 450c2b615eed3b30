"""Groups with all kinds of stacks, side by side on three servers; and what their owners may do.

Sections 3.4, 3.5.5, 3.5.6 and table 4.1 of the text that the environment follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from flexgroup import Group, connect
from flexgroup.client.errors import (
    BadStack,
    GroupDestroyed,
    GroupExists,
    MixedStacks,
    NoSuchGroup,
    NotAllowed,
    NotMember,
    NotOwner,
    Refusal,
)
from flexgroup.client.group import Link
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.stack import guarantees_above
from flexgroup.protocols.catalogue import PROTOCOLS, parse_stack
from flexgroup.worlds.network.faults import Faults

from ..client.loops import on_a_loop
from .servers import Cluster

pytestmark = pytest.mark.xdist_group("stacks")

MEANT_FOR_USE = tuple(
    name
    for name, row in PROTOCOLS.items()
    if not name.endswith("-published") and not row.layer.NEEDS_REPLICAS
)
"""The others are kept as their papers print them, to be proven wrong."""

COMPOSED = (
    "reliable fifo",
    "reliable causal",
    "reliable atomic",
    "reliable abcast",
    "abcast safe",
    "fifo causal-rst",
    "fifo dcc/rv",
    "causal causal-rst",
    "xamp-reliable causal-rst",
    "xamp-causal atomic",
    "heartbeat skeen",
    "vcube-detector fifo dcc",
)

HEEDS_A_DETECTOR = (
    "heartbeat all2all-atomic",
    "heartbeat xamp-reliable",
    "heartbeat xamp-atomic",
    "vcube-detector vcube-best-effort",
    "vcube-detector vcube-reliable",
    "vcube-detector vcube-atomic",
    "vcube-detector vcube-atomic-majority",
)

EACH = 5
"""Messages of every member to every group."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three that all tests here share; names of groups differ."""
    with Cluster(tmp_path_factory.mktemp("stacks")) as started:
        yield started


@pytest.fixture
def cluster(servers: Cluster) -> list[str]:
    return servers.addresses


@asynccontextmanager
async def processes(cluster: Sequence[str]) -> AsyncIterator[list[Link]]:
    """One at each server: a, b, c."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(connect(address, name=name))
            for name, address in zip("abc", cluster, strict=True)
        ]


async def bodies(group: Group[bytes], count: int) -> list[bytes]:
    return [(await group.receive()).body for _ in range(count)]


def promised(stack: str) -> Guarantees:
    return guarantees_above(parse_stack(stack).layers, Faults().channels())


MEMBERS = {"wide": "abc", "narrow": "ac"}


Seats = dict[tuple[str, str], Group[bytes]]


async def take_seats(links: Sequence[Link], stack: str) -> Seats:
    """In two groups of one stack: one with a member at every server, one that leaves one out."""
    by_name = {link.name: link for link in links}
    return {
        (kind, member): await by_name[member].join(f"{kind} {stack}", stack)
        for kind, members in MEMBERS.items()
        for member in members
    }


async def exchange(seats: Seats) -> dict[tuple[str, str], list[bytes]]:
    """Every member gets all that was sent to its group, once; in which order, is returned."""

    async def send(member: str, group: Group[bytes]) -> None:
        for number in range(EACH):
            await group.send(f"{member} {number}".encode())

    sending = asyncio.gather(*(send(member, group) for (_, member), group in seats.items()))
    received: dict[tuple[str, str], list[bytes]] = {}
    for (kind, member), group in seats.items():
        got = await bodies(group, EACH * len(MEMBERS[kind]))
        assert len(set(got)) == len(got)
        assert {body.split()[0].decode() for body in got} == set(MEMBERS[kind])
        received[kind, member] = got
    await sending
    for kind in MEMBERS:
        await seats[kind, "a"].destroy()
        for member in MEMBERS[kind]:
            assert [message async for message in seats[kind, member]] == []
    return received


async def carries(links: Sequence[Link], stack: str) -> None:
    """Messages arrive, in the order that the stack promises."""
    received = await exchange(await take_seats(links, stack))
    if Guarantee.FIFO in promised(stack):
        for got in received.values():
            for origin in "abc":
                of_it = [body for body in got if body.startswith(origin.encode())]
                assert of_it == sorted(of_it)
    if Guarantee.TOTAL in promised(stack):
        for kind, members in MEMBERS.items():
            assert all(received[kind, member] == received[kind, "a"] for member in members)


@pytest.mark.parametrize("stack", [*MEANT_FOR_USE, *COMPOSED])
def test_every_protocol_carries_messages_on_a_network(stack: str, cluster: list[str]) -> None:
    @on_a_loop
    async def carry() -> None:
        async with processes(cluster) as links:
            await carries(links, stack)

    carry()


@pytest.mark.parametrize("stack", HEEDS_A_DETECTOR)
def test_who_is_suspected_wrongly_lacks_nothing_after_the_next_change_of_the_group(
    stack: str, servers: Cluster
) -> None:
    """Detectors count milliseconds here, and these protocols leave out whom they suspect."""

    @on_a_loop
    async def stand_still() -> None:
        first = servers.addresses[0]
        async with processes(servers.addresses) as links, connect(first, name="guest") as guest:
            received = asyncio.create_task(exchange(await take_seats(links, stack)))
            servers.servers[2].suspend()
            await asyncio.sleep(0.1)
            servers.servers[2].resume()
            while not received.done():
                await asyncio.wait([received], timeout=0.1)
                for kind in MEMBERS:
                    with suppress(
                        NoSuchGroup, GroupDestroyed
                    ):  # they have received all, and ended it
                        await (await guest.join(f"{kind} {stack}")).leave()
            await received

    stand_still()


def test_a_different_stack_for_each_group_at_the_same_time(cluster: list[str]) -> None:
    @on_a_loop
    async def all_at_once() -> None:
        async with processes(cluster) as links:
            stacks = ("best-effort", "reliable fifo", "reliable causal", "reliable atomic", "df")
            await asyncio.gather(*(carries(links, stack) for stack in stacks))

    all_at_once()


def test_a_protocol_above_another_in_one_group_and_below_it_in_the_next(
    cluster: list[str],
) -> None:
    """The example of section 3.4: failure detection and order, either way round."""

    @on_a_loop
    async def both_ways() -> None:
        async with processes(cluster) as links:
            stacks = ("heartbeat fifo", "fifo heartbeat", "causal-rst fifo", "fifo causal-rst")
            await asyncio.gather(*(carries(links, stack) for stack in stacks))

    both_ways()


def test_an_impossible_stack_is_refused_by_the_name_of_what_is_missing(cluster: list[str]) -> None:
    @on_a_loop
    async def refused() -> None:
        async with processes(cluster) as (a, *_):
            with pytest.raises(BadStack, match=r"Dcc needs .*, but Skeen gives .*: missing fifo"):
                await Group(a, "impossible").create("skeen dcc")
            with pytest.raises(BadStack, match="unknown protocol 'magic'; choose from: best-"):
                await Group(a, "impossible").create("reliable magic")
            with pytest.raises(BadStack, match="'skeen' has no option 'fast'"):
                await Group(a, "impossible").create("skeen/fast")
            assert not await Group(a, "impossible").exists()

    refused()


@pytest.mark.parametrize(
    ("stack", "why"),
    [
        (
            "atomic best-effort",
            "'best-effort' does not keep what 'atomic' below it gives: causal, total; the stack "
            "'atomic best-effort' would promise only: fifo, reliable; write 'best-effort "
            "atomic' or 'best-effort' or 'atomic' instead",
        ),
        ("skeen causal", "'causal' does not keep what 'skeen' below it gives: total; "),
        ("causal skeen", "'skeen' does not keep what 'causal' below it gives: causal, fifo; "),
        ("reliable fifo skeen", "promise only: reliable, total; write 'reliable skeen' or "),
        (
            "leader paxos",
            "'leader paxos' works in groups of replicas, and .* created with create_replicated",
        ),
    ],
)
def test_a_stack_that_loses_what_its_layers_give_or_lacks_what_they_need_is_refused(
    stack: str, why: str, cluster: list[str]
) -> None:
    @on_a_loop
    async def refused() -> None:
        async with processes(cluster) as (a, *_):
            with pytest.raises(BadStack, match=why):
                await a.join("lossy", stack)
            assert not await Group(a, "lossy").exists()

    refused()


def test_a_group_tells_what_its_stack_promises(cluster: list[str]) -> None:
    @on_a_loop
    async def told() -> None:
        async with processes(cluster) as (a, *_):
            little = await a.join("promises little", "best-effort")
            assert (await little.info()).promises == (
                "integrity", "validity", "agreement", "fifo order", "minimality",
            )  # fmt: skip
            much = await a.join("promises much", "reliable atomic")
            promised = (await much.info()).promises
            assert {"causal order", "acyclic order"} <= set(promised)
            stacks = {one["stack"]: one for one in (await a.inspect())["stacks"]}
            assert tuple(stacks["reliable atomic"]["promises"]) == promised

    told()


def test_a_group_tells_how_much_is_certain_of_what_is_delivered(cluster: list[str]) -> None:
    @on_a_loop
    async def told() -> None:
        async with processes(cluster) as (a, *_):
            stacks = ["reliable causal", "reliable atomic", "reliable safe"]
            groups = [await Group(a, f"of {stack}").create(stack) for stack in stacks]
            levels = [(await group.info()).level for group in groups]
            assert levels == ["reliable", "agreed", "safe"]

    told()


def test_of_three_servers_that_create_a_group_at_once_exactly_one_succeeds(
    cluster: list[str],
) -> None:
    @on_a_loop
    async def race() -> None:
        async with processes(cluster) as links:
            for name in ("first", "second", "third"):
                outcomes = await asyncio.gather(
                    *(Group(link, name).create("fifo", owner=link.name) for link in links),
                    return_exceptions=True,
                )
                created = [outcome for outcome in outcomes if isinstance(outcome, Group)]
                refused = [outcome for outcome in outcomes if isinstance(outcome, GroupExists)]
                assert (len(created), len(refused)) == (1, 2)
                owners = {(await Group(link, name).info()).owner for link in links}
                assert owners == {created[0].link.name}

    race()


def test_only_the_owner_destroys_a_group_until_it_leaves(cluster: list[str]) -> None:
    @on_a_loop
    async def owned() -> None:
        async with processes(cluster) as (a, b, c):
            await Group(a, "owned").create("fifo", owner="a")
            mine, other = await a.join("owned"), await b.join("owned")
            for process in (b, c):
                with pytest.raises(NotOwner, match="only 'a' may destroy"):
                    await Group(process, "owned").destroy()
            await mine.leave()
            assert (await other.info()).owner is None
            with pytest.raises(NotMember, match="'c' is none"):
                await Group(c, "owned").destroy()
            await other.destroy()
            assert not await mine.exists()

    owned()


def test_of_two_that_destroy_a_group_at_once_both_succeed(cluster: list[str]) -> None:
    @on_a_loop
    async def together() -> None:
        async with processes(cluster) as (a, b, c):
            both_succeeded = False
            while not both_succeeded:
                group, other = await a.join("ended twice", "fifo"), await b.join("ended twice")
                wishes = group.destroy(), other.destroy()
                results = await asyncio.gather(*wishes, return_exceptions=True)
                # On a busy machine the second may come when the group is gone already.
                assert all(r is None or isinstance(r, NoSuchGroup) for r in results)
                both_succeeded = not any(results)
                assert not await Group(c, "ended twice").exists()

    together()


def test_members_of_a_destroyed_group_receive_the_rest_first(cluster: list[str]) -> None:
    @on_a_loop
    async def drained() -> None:
        async with processes(cluster) as links:
            groups = [await link.join("drained", "reliable atomic") for link in links]
            sent = [b"%d" % number for number in range(200)]
            for body in sent:
                await groups[0].send(body)
            assert await bodies(groups[0], len(sent)) == sent
            await groups[0].destroy()
            for group in groups[1:]:
                # Delivered at one member, so at all, before the group ends.
                assert [message.body async for message in group] == sent
                with pytest.raises(GroupDestroyed):
                    await group.receive()
                with pytest.raises(Refusal):
                    await group.send(b"too late")
            again = await links[2].join("drained", "fifo")
            assert again.members == ("c",)

    drained()


def test_outsiders_send_to_open_groups_only(cluster: list[str]) -> None:
    @on_a_loop
    async def opened() -> None:
        async with processes(cluster) as (a, b, c):
            inside = [await a.join("open", "reliable causal", open=True), await b.join("open")]
            outside = await c.attach("open")
            await outside.send(b"from outside")
            for group in inside:
                message = await group.receive()
                assert (message.sender, message.body) == ("c", b"from outside")
                assert group.members == ("a", "b")
            await a.join("closed", "fifo")
            with pytest.raises(NotAllowed, match="only members may send to 'closed'"):
                await c.attach("closed")

    opened()


def test_only_processes_on_the_list_join(cluster: list[str]) -> None:
    @on_a_loop
    async def listed() -> None:
        async with processes(cluster) as (a, b, c):
            await Group(a, "listed").create("fifo", allow=["a", "c"])
            with pytest.raises(NotAllowed, match="'b' is not among those who may join 'listed'"):
                await b.join("listed")
            await a.join("listed")
            assert (await c.join("listed")).members == ("a", "c")

    listed()


def test_what_a_process_sends_comes_back_to_it_unless_it_declines(cluster: list[str]) -> None:
    """Section 3.5.9 never returns a message to its sender; here that is `own=False`."""

    @on_a_loop
    async def own() -> None:
        async with processes(cluster) as (a, b, _):
            kept = await a.join("own", "reliable atomic")
            declined = await b.join("own", own=False)
            await declined.send(b"of b")
            assert await bodies(kept, 1) == [b"of b"]
            await kept.send(b"of a")
            assert await bodies(declined, 1) == await bodies(kept, 1) == [b"of a"]

    own()


@pytest.mark.parametrize("stack", ["skeen", "reliable atomic", "fifo dcc", "vcube-atomic"])
def test_a_message_to_two_groups_has_one_place_in_one_order(stack: str, cluster: list[str]) -> None:
    """a is in the left group, c in the right one, b in both; all send to both groups at once."""

    @on_a_loop
    async def to_both() -> None:
        left, right = f"left of {stack}", f"right of {stack}"
        async with processes(cluster) as (a, b, c):
            at_a = [await a.join(left, stack, open=True)]
            at_b = [await b.join(left), await b.join(right, stack, open=True)]
            at_c = [await c.join(right)]
            sources = {
                a: [*at_a, await a.attach(right)],
                b: at_b,
                c: [await c.attach(left), *at_c],
            }

            async def send(link: Link) -> None:
                for number in range(20):
                    await link.multicast(sources[link], f"{link.name}{number}".encode())

            await asyncio.gather(*(send(link) for link in sources))
            received = [await bodies(group, 60) for group in (at_a[0], at_b[0], at_c[0])]
            assert received[0] == received[1] == received[2]
            assert len(set(received[0])) == 60
            # b had each of them through its first group, and none again through the other.
            await at_c[0].send(b"last")
            assert await bodies(at_b[1], 1) == [b"last"]
            other = await a.join(f"other than {stack}", "best-effort")
            with pytest.raises(MixedStacks):
                await a.multicast([at_a[0], other], b"")

    to_both()
