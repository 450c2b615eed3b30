"""Crashes, stops and slow readers with real processes: the survivors agree, and go on."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.client.group import Group, Link
from flexgroup.core.errors import FlexGroupError

from .agreement import agree, belief_of, members_are, servers_are
from .servers import LAST_RESORT, Cluster, ServerProcess

QUICK = ("--patience", "1")
STACK = "RELIABLE ATOMIC"

MEMBER = """
import sys
from flexgroup import blocking
with blocking.connect(sys.argv[1], name="victim") as link:
    group = link.join("g")
    print("joined", flush=True)
    for message in group:
        pass
"""


async def members(cluster: Cluster, *names: str) -> tuple[list[Link], list[Group[bytes]]]:
    """Processes, each at a server of its own, in the group g."""
    links = [
        await connect(address, name=name)
        for address, name in zip(cluster.addresses, names, strict=False)
    ]
    return links, [await link.join("g", STACK) for link in links]


async def still_ordered(groups: list[Group[bytes]], messages: int = 50) -> None:
    """All send, and all receive the same in the same order."""
    marks = {
        b"%d %d" % (index, number) for index in range(len(groups)) for number in range(messages)
    }

    async def send(index: int, group: Group[bytes]) -> None:
        for number in range(messages):
            await group.send(b"%d %d" % (index, number))

    async def receive(group: Group[bytes]) -> list[bytes]:
        bodies: list[bytes] = []
        while len(bodies) < len(marks):
            body = (await group.receive(LAST_RESORT)).body
            if body in marks:
                bodies.append(body)
        return bodies

    results = await asyncio.gather(
        *(receive(group) for group in groups),
        *(send(index, group) for index, group in enumerate(groups)),
    )
    orders = results[: len(groups)]
    assert all(order == orders[0] for order in orders)
    assert set(orders[0] or ()) == marks


async def close(links: list[Link]) -> None:
    for link in links:
        with contextlib.suppress(FlexGroupError):
            await link.close()


def test_a_killed_client_leaves_its_groups_and_the_others_go_on(tmp_path: Path) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob")
        victim = subprocess.Popen(
            [sys.executable, "-c", MEMBER, cluster.addresses[2]], stdout=subprocess.PIPE
        )
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"joined\n"
        victim.kill()
        victim.wait()
        victim.stdout.close()
        await agree(cluster.servers, members_are("g", "ann", "bob"), "the victim is out")
        await still_ordered(groups)
        await close(links)

    with Cluster(tmp_path, 3, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_a_killed_server_is_excluded_with_its_processes(tmp_path: Path) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "cid")
        await still_ordered(groups)
        cluster.servers[2].kill()
        survivors = cluster.servers[:2]
        await agree(survivors, servers_are("s1", "s2"), "s3 is out")
        await agree(survivors, members_are("g", "ann", "bob"), "cid is out")
        await still_ordered(groups[:2])
        await close(links)

    with Cluster(tmp_path, 3, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_messages_under_way_when_a_server_is_killed_reach_all_survivors_or_none(
    tmp_path: Path,
) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "cid")
        got: list[list[bytes]] = [[], []]

        async def flood(group: Group[bytes], name: bytes) -> None:
            try:
                for number in range(100_000):
                    await group.send(b"%s %d" % (name, number))
                    if number % 20 == 0:
                        await asyncio.sleep(0)
            except FlexGroupError:
                pass  # its server was killed

        async def receive(index: int) -> None:
            async for message in groups[index]:
                got[index].append(message.body)
                if message.body == b"end":
                    return

        flooding = asyncio.create_task(flood(groups[2], b"cid"))
        receiving = [asyncio.create_task(receive(index)) for index in range(2)]
        while len(got[0]) < 200 or len(got[1]) < 200:
            await asyncio.sleep(0.01)
        cluster.servers[2].kill()
        await agree(cluster.servers[:2], servers_are("s1", "s2"), "s3 is out")
        await groups[0].send(b"end")
        await asyncio.wait_for(asyncio.gather(*receiving), LAST_RESORT)
        await flooding
        assert got[0] == got[1]
        assert len(set(got[0])) == len(got[0])
        await close(links)

    with Cluster(tmp_path, 3, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_the_coordinator_of_a_join_is_killed_and_the_join_is_aborted(tmp_path: Path) -> None:
    async def play(cluster: Cluster) -> None:
        coordinator, other, third = cluster.servers
        third.suspend()  # the change waits for it, so the join is under way
        newcomer = ServerProcess("s4", tmp_path, "--join", coordinator.address, *QUICK, wait=False)
        await asyncio.to_thread(wait_for_text, other.log, "frozen", newcomer)
        coordinator.kill()
        third.resume()
        assert await asyncio.to_thread(newcomer.process.wait, LAST_RESORT) == 2
        newcomer.end()
        assert coordinator.address in newcomer.log.read_text()
        await agree([other, third], servers_are("s2", "s3"), "two are left")
        links = [
            await connect(server.address, name=name)
            for server, name in ((other, "bob"), (third, "cid"))
        ]
        await still_ordered([await link.join("h", STACK) for link in links])
        await close(links)

    with Cluster(tmp_path, 3, "--patience", "3") as cluster:
        asyncio.run(play(cluster))


def wait_for_text(path: Path, text: str, server: ServerProcess) -> None:
    end = time.monotonic() + LAST_RESORT
    while text not in path.read_text():
        assert server.process.poll() is None, server.log.read_text()
        assert time.monotonic() < end, f"'{text}' never came in {path}"
        time.sleep(0.02)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_server_is_killed_during_the_creation_of_a_group(killed: int, tmp_path: Path) -> None:
    """The one that leads the creation, or another: it is created everywhere or nowhere."""

    async def play(cluster: Cluster) -> None:
        link = await connect(cluster.addresses[0], name="ann")
        cluster.servers[2].suspend()
        creating = asyncio.create_task(Group(link, "new").create(STACK))
        await asyncio.to_thread(wait_for_text, cluster.servers[1].log, "frozen", cluster.servers[0])
        cluster.servers[killed].kill()
        cluster.servers[2].resume()
        survivors = [server for index, server in enumerate(cluster.servers) if index != killed]
        names = tuple(server.name for server in survivors)
        belief = await agree(survivors, servers_are(*names), "two are left")
        if killed == 1:
            await creating
            belief = await agree(survivors, members_are("new"), "the group is there")
        else:
            with pytest.raises(FlexGroupError):
                await creating
        assert dict(belief[2]).keys() <= {"new"}
        others = [
            await connect(server.address, name=f"p{index}")
            for index, server in enumerate(survivors)
        ]
        await still_ordered([await other.join("new", STACK) for other in others])
        await close([link, *others])

    with Cluster(tmp_path, 3, "--patience", "3") as cluster:
        asyncio.run(play(cluster))


def test_a_server_that_stood_still_until_it_was_excluded_comes_back_as_a_new_one(
    tmp_path: Path,
) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "cid")
        cluster.servers[2].suspend()
        await agree(cluster.servers[:2], members_are("g", "ann", "bob"), "s3 is out")
        await still_ordered(groups[:2])
        cluster.servers[2].resume()
        with pytest.raises(FlexGroupError):
            async for _ in groups[2]:
                pass
        await agree(cluster.servers, servers_are("s1", "s2", "s3"), "s3 is back")
        back = await connect(cluster.addresses[2], name="cid")
        await still_ordered([*groups[:2], await back.join("g")])
        await close([*links, back])

    with Cluster(tmp_path, 3, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_a_client_that_never_reads_is_excluded_and_costs_little_memory(tmp_path: Path) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "lazy")
        server = cluster.servers[2]
        before = server.memory()
        received = asyncio.create_task(count(groups[1], 40_000))
        reading = asyncio.create_task(count(groups[0], 40_000))
        for _number in range(40_000):  # `lazy` never takes any of them
            await groups[0].send(b"x" * 1000)
        assert await asyncio.wait_for(received, LAST_RESORT) == 40_000
        await reading
        await agree(cluster.servers, members_are("g", "ann", "bob"), "the lazy one is out")
        assert server.memory() - before < 60 << 20
        await still_ordered(groups[:2])
        await close(links)

    with Cluster(tmp_path, 3, "--queue", "2000", "--slow-seconds", "1") as cluster:
        asyncio.run(play(cluster))


async def count(group: Group[bytes], messages: int) -> int:
    for _ in range(messages):
        await group.receive(LAST_RESORT)
    return messages


def test_a_server_that_stops_in_good_order_tells_its_clients_and_the_others(
    tmp_path: Path,
) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "cid")
        code = await asyncio.to_thread(cluster.servers[0].stop)
        assert code == 0
        with pytest.raises(FlexGroupError, match="shutting down"):
            await groups[0].receive(LAST_RESORT)
        await agree(cluster.servers[1:], members_are("g", "bob", "cid"), "s1 has left")
        await still_ordered(groups[1:])
        await close(links)

    with Cluster(tmp_path, 3) as cluster:
        asyncio.run(play(cluster))


def test_of_two_servers_the_one_that_is_left_goes_on(tmp_path: Path) -> None:
    async def play(cluster: Cluster) -> None:
        async with connect(cluster.addresses[1], name="ann") as link:
            await link.join("g", "fifo")  # so each of the two knows that the other hears it
        cluster.servers[0].kill()
        await agree(cluster.servers[1:], servers_are("s2"), "s1 is out")
        assert (await belief_of(cluster.addresses[1]))[1] == ("s2",)

    with Cluster(tmp_path, 2, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_a_server_that_cannot_come_back_is_stopped_all_the_same(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, *QUICK) as cluster:
        oldest, other = cluster.servers
        other.suspend()
        asyncio.run(agree([oldest], servers_are("s1"), "s2 is out"))
        oldest.kill()
        other.resume()
        wait_for_text(other.log, "excluded", other)
        assert other.stop() == 0


def test_a_server_that_hears_too_few_others_goes_on_when_it_hears_them_again(
    tmp_path: Path,
) -> None:
    async def play(cluster: Cluster) -> None:
        links, groups = await members(cluster, "ann", "bob", "cid")
        await still_ordered(groups)
        lonely = cluster.servers[0]
        before = lonely.log.read_text().count("frozen")
        for server in cluster.servers[1:]:
            server.suspend()
        while lonely.log.read_text().count("frozen") == before:
            await asyncio.sleep(0.05)
        ordering = asyncio.create_task(still_ordered(groups))
        await asyncio.sleep(1)
        assert not ordering.done()
        for server in cluster.servers[1:]:
            server.resume()
        await ordering
        await agree(cluster.servers, members_are("g", "ann", "bob", "cid"), "all are members")
        await close(links)

    with Cluster(tmp_path, 3, *QUICK) as cluster:
        asyncio.run(play(cluster))


def test_a_server_that_stands_still_is_stopped_all_the_same(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, *QUICK) as cluster:
        lonely, *others = cluster.servers
        before = lonely.log.read_text().count("frozen")
        for server in others:
            server.suspend()
        while lonely.log.read_text().count("frozen") == before:
            time.sleep(0.05)
        assert lonely.stop() == 0
        for server in others:
            server.resume()
        asyncio.run(agree(others, servers_are("s2", "s3"), "the others go on"))


def test_a_server_joins_through_whichever_of_several_runs(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, *QUICK) as cluster:
        first, second = cluster.servers
        address = first.address
        first.kill()
        joining = ("--join", address, "--join", second.address)
        again = ServerProcess("s1", tmp_path, *joining, *QUICK, listen=address)
        try:
            asyncio.run(agree([second, again], servers_are("s2", "s1"), "the first is back"))
        finally:
            again.end()
