"""The library and a real server: what both must agree on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexgroup import Group, blocking, connect
from flexgroup.client.errors import (
    AlreadyMember,
    BadStack,
    CannotConnect,
    GroupDestroyed,
    GroupExists,
    NoSuchGroup,
    NotAllowed,
    NotMember,
    NotOwner,
    Refusal,
)
from flexgroup.wire.authority import make_certificates

from ..client.loops import on_a_loop
from .servers import ServerProcess

pytestmark = pytest.mark.xdist_group("one-server")


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server's local one; the same server has TLS at its port."""
    folder = tmp_path_factory.mktemp("server")
    make_certificates(folder / "certificates", ["alice", "bob"])
    path = folder / "socket"
    server = ServerProcess("s1", folder, "--unix", str(path), "--tls", str(folder / "certificates"))
    (folder / "address").write_text(server.address)
    yield f"unix:{path}"
    server.end()


@pytest.fixture
def folder(socket: str) -> Path:
    return Path(socket.removeprefix("unix:")).parent


@on_a_loop
async def every_refusal(socket: str) -> None:
    async with connect(socket, name="a") as a, connect(socket, name="b") as b:
        with pytest.raises(NoSuchGroup):
            await a.join("rights")
        with pytest.raises(BadStack):
            await Group(a, "rights").create("nonsense")
        await Group(a, "rights").create("FIFO", owner="a", allow=["a", "c"])
        with pytest.raises(GroupExists):
            await Group(b, "rights").create("FIFO")
        with pytest.raises(NotAllowed):
            await b.join("rights")
        with pytest.raises(NotAllowed):
            await b.attach("rights")
        with pytest.raises(NotOwner):
            await Group(b, "rights").destroy()
        group = await a.join("rights", "fifo")
        async with connect(socket, name="a") as impostor:
            with pytest.raises(AlreadyMember):
                await impostor.join("rights")
        await Group(b, "other").create("FIFO")
        with pytest.raises(BadStack, match="'fifo', not 'SKEEN'"):
            await b.join("other", "SKEEN")
        await group.leave()
        with pytest.raises(NotMember):
            await group.send(b"")
        assert (await group.info()).members == ()


def test_every_refusal_is_the_error_that_the_library_documents(socket: str) -> None:
    every_refusal(socket)


@on_a_loop
async def flow(socket: str) -> None:
    async with connect(socket, name="a") as a, connect(socket, name="b") as b:
        group, other = await a.join("flow", "FIFO"), await b.join("flow", own=False)
        count = 5000

        async def send_all() -> None:
            for number in range(count):
                await group.send(number.to_bytes(4, "big") * 100)

        sending = asyncio.create_task(send_all())
        for members in (group, other):
            received = [(await members.receive()).body[:4] for _ in range(count)]
            assert received == [number.to_bytes(4, "big") for number in range(count)]
        await sending
        await group.send(bytes(1 << 20))
        assert len((await other.receive()).body) == 1 << 20


def test_more_messages_than_any_window_arrive_in_order(socket: str) -> None:
    flow(socket)


@on_a_loop
async def ends(socket: str) -> None:
    async with connect(socket, name="a") as a, connect(socket, name="b") as b:
        group, other = await a.join("ends", "FIFO", open=True), await b.join("ends")
        for number in range(3000):
            await group.send(b"%d" % number)
        marker = (await other.receive()).body
        assert marker == b"0"
        await group.destroy()
        received = [int(message.body) async for message in other]
        assert received == list(range(1, len(received) + 1))
        with pytest.raises(GroupDestroyed):
            await other.send(b"")
        again = await b.join("ends", "FIFO")
        await again.leave()
        await again.join()
        await again.send(b"as new")
        assert (await again.receive()).body == b"as new"


def test_a_destroyed_group_drains_and_its_name_is_free(socket: str) -> None:
    ends(socket)


@on_a_loop
async def attached(socket: str) -> None:
    async with connect(socket, name="a") as a, connect(socket, name="b") as b:
        await a.join("open", "FIFO", open=True)
        outside = await b.attach("open")
        await Group(a, "open").destroy()
        await outside.send(b"to nobody")
        assert not await outside.exists()
        with pytest.raises(Refusal, match=r"does not exist any more|destroyed"):
            await outside.send(b"")


def test_who_is_attached_learns_of_the_end_of_the_group(socket: str) -> None:
    attached(socket)


@on_a_loop
async def secured(address: str, folder: Path) -> None:
    async with (
        connect(address, name="alice", tls=folder) as alice,
        connect(address, name="bob", tls=folder) as bob,
    ):
        sender, receiver = await alice.join("secret", "FIFO"), await bob.join("secret")
        await sender.send(bytes(300_000))
        assert await receiver.receive() == await sender.receive()
        with pytest.raises(NotAllowed, match="under its own name"):
            await bob.join("another", "FIFO", process="alice")
    with pytest.raises(CannotConnect, match="does it want TLS"):
        await connect(address, name="mallory")


def test_tls_with_the_certificates_of_a_folder(socket: str, folder: Path) -> None:
    secured((folder / "address").read_text(), folder / "certificates")


def test_the_blocking_form(socket: str) -> None:
    with blocking.connect(socket, name="a") as a, blocking.connect(socket, name="b") as b:
        group, other = a.join("blocking", "FIFO"), b.join("blocking")
        for number in range(3000):
            group.send(b"%d" % number)
        assert [int(other.receive().body) for _ in range(3000)] == list(range(3000))
        assert other.members == ("a", "b")
        other.leave()
        group.destroy()
        assert [int(message.body) for message in group] == list(range(3000))
