"""What those can do to a server who are not, or not yet, known to mean well."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.client.errors import CannotConnect, ConnectionLost, NotAllowed, ServerClosing
from flexgroup.membership.messages import Commit
from flexgroup.server.connection import (
    LOGGED_IN_A_SECOND,
    MOST_KINDS_OF_REFUSALS,
    Connection,
)
from flexgroup.server.settings import Limits
from flexgroup.wire import requests
from flexgroup.wire.authority import make_certificates
from flexgroup.wire.certificates import client_context
from flexgroup.wire.event_loop import new_event_loop
from flexgroup.wire.frames import FrameWriter

from ..client.loops import LAST_RESORT, on_a_loop
from .in_process import Held, servers
from .strangers import as_client, encoded, introduction, stranger


@on_a_loop
async def test_of_too_many_that_say_nothing_the_oldest_has_to_go() -> None:
    async with servers(1, Limits(strangers=3)) as (server,):
        silent = [await stranger(server) for _ in range(5)]
        for reader, _ in silent[:2]:
            assert await reader.read() == b""
        async with connect(server.address) as link:
            assert (await link.inspect())["refused"] == {"silent": 3}
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop])
def test_who_has_not_shown_its_certificate_is_a_stranger(
    loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    folder = certificates_in(tmp_path)

    async def crowd() -> None:
        async with servers(1, Limits(strangers=3), folder) as (server,):
            silent = [await stranger(server) for _ in range(20)]
            for reader, _ in silent[:17]:
                assert await reader.read() == b""
            async with connect(server.address, name="alice", tls=folder) as link:
                assert (await link.inspect())["refused"] == {"silent": 18}
            for _, writer in silent:
                writer.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(crowd(), LAST_RESORT))


@on_a_loop
async def test_nothing_is_left_of_connections_that_were_refused() -> None:
    def there() -> int:
        gc.collect()
        return sum(isinstance(one, Connection) for one in gc.get_objects())

    async with servers(1) as (server,):
        before = there()
        for _ in range(200):
            reader, writer = await stranger(server)
            writer.write(b"\xff" * 8)
            assert await reader.read() == b""
            writer.close()
        while server.acceptor.connections:
            await asyncio.sleep(0)
        assert server.acceptor.refusals == {"a frame of bytes": 200}
        assert there() <= before + 1  # the last one may still be in use


@on_a_loop
async def test_a_flood_of_refusals_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with servers(1) as (server,):
        with caplog.at_level("WARNING", "flexgroup.server"):
            for _ in range(50 * LOGGED_IN_A_SECOND):
                server.acceptor.count_refusal("127.0.0.1:1", "silent: it never said who it was")
        # It may have taken until the next second.
        assert 1 <= len(caplog.records) <= 5 * LOGGED_IN_A_SECOND
        assert server.acceptor.refusals == {"silent": 50 * LOGGED_IN_A_SECOND}


def begun(frames: FrameWriter, size: int) -> bytes:
    """All of a frame but its last byte."""
    return frames.frame(bytes(size + 1))[:-1]


@pytest.mark.parametrize("with_tls", [False, True])
def test_of_those_who_do_not_finish_their_frames_whoever_holds_most_has_to_go(
    with_tls: bool, tmp_path: Path
) -> None:
    folder = certificates_in(tmp_path) if with_tls else None

    @on_a_loop
    async def begin() -> None:
        async with servers(1, Limits(unfinished_bytes=1 << 20), folder) as (server,):
            tls = client_context(folder, "mallory") if folder else None
            clients = [await as_client(server, "mallory", tls) for _ in range(4)]
            for (_, writer), frames in clients:
                writer.write(begun(frames, 300 << 10))
            ends = [asyncio.create_task(reader.read()) for (reader, _), _ in clients]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            assert server.acceptor.refusals == {"unfinished": 1}
            async with connect(server.address, name="alice", tls=folder) as link:
                assert len((await link.inspect())["clients"]) == 4
            for (_, writer), _ in clients:
                writer.close()
            await asyncio.wait(ends)

    begin()


@on_a_loop
async def test_who_does_not_finish_a_frame_in_time_has_to_go() -> None:
    async with servers(1, Limits(frame_seconds=0.1)) as (server,):
        (reader, writer), frames = await as_client(server)
        writer.write(begun(frames, 1000))
        assert await reader.read() == b""
        assert server.acceptor.refusals == {"unfinished": 1}
        writer.close()


@on_a_loop
async def test_clients_do_not_count_as_strangers() -> None:
    async with (
        servers(1, Limits(strangers=1)) as (server,),
        connect(server.address) as one,
        connect(server.address) as other,
    ):
        await one.inspect()
        assert (await other.inspect())["refused"] == {}


def certificates_in(folder: Path) -> Path:
    make_certificates(folder, ["alice", "mallory"])
    return folder


def test_who_does_not_get_through_the_handshake_is_disconnected(tmp_path: Path) -> None:
    folder = certificates_in(tmp_path)

    @on_a_loop
    async def connects_and_waits() -> None:
        async with servers(1, Limits(silent_seconds=0.1), folder) as (server,):
            reader, writer = await stranger(server)
            assert await reader.read() == b""
            writer.close()

    connects_and_waits()


def test_a_client_with_a_good_certificate_cannot_speak_as_a_server(tmp_path: Path) -> None:
    folder = certificates_in(tmp_path)

    @on_a_loop
    async def introduces_itself() -> None:
        async with servers(1, None, folder) as (server,):
            reader, writer = await stranger(server, client_context(folder, "mallory"))
            writer.write(introduction("mallory"))
            assert await reader.read() == b""
            writer.close()
            assert server.acceptor.refusals == {"unauthenticated": 1}

    introduces_itself()


def test_servers_join_over_tls_and_clients_are_who_their_certificates_say(tmp_path: Path) -> None:
    folder = certificates_in(tmp_path)

    @on_a_loop
    async def talk() -> None:
        async with (
            servers(2, None, folder) as (first, second),
            connect(first.address, name="alice", tls=folder) as alice,
            connect(second.address, name="mallory", tls=folder) as mallory,
        ):
            group, other = await alice.join("g", "fifo"), await mallory.join("g")
            await other.send(b"from mallory")
            assert (await group.receive()).sender == "mallory"
            with pytest.raises(NotAllowed, match="with the certificate of 'mallory'"):
                await connect(first.address, name="alice", tls=client_context(folder, "mallory"))

    talk()


def test_a_client_is_told_that_the_certificate_is_of_another_authority(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours, theirs = certificates_in(tmp_path / "ours"), certificates_in(tmp_path / "theirs")

    @on_a_loop
    async def distrust() -> None:
        async with servers(1, None, theirs) as (server,):
            with pytest.raises(CannotConnect, match="its certificate is not to be trusted"):
                await connect(server.address, name="alice", tls=ours)

    distrust()


def test_a_client_is_told_that_the_server_has_no_tls(tmp_path: Path) -> None:
    folder = certificates_in(tmp_path)

    @on_a_loop
    async def misunderstand() -> None:
        async with servers(1) as (server,):
            with pytest.raises(CannotConnect, match="does the server use TLS at all"):
                await connect(server.address, name="alice", tls=folder)

    misunderstand()


@on_a_loop
async def test_requests_that_wait_are_bounded() -> None:
    async with servers(2, Limits(requests=5)) as (_, server):
        (reader, writer), frames = await as_client(server)
        joins = [requests.Join(number, "none", "m", True) for number in range(10)]
        writer.write(frames.frame(encoded(*joins)))
        while await reader.read(4096):
            pass
        writer.close()
        assert list(server.acceptor.refusals) == ["more than requests without an answer"]


@on_a_loop
async def test_a_name_that_is_no_text_is_refused() -> None:
    async with servers(1) as (server,):
        (reader, writer), frames = await as_client(server)
        writer.write(
            frames.frame(encoded(requests.Exists(1, "abc")).replace(b"abc", b"\xed\xa0\x80"))
        )
        assert await reader.read() == b""
        writer.close()
        assert server.acceptor.refusals == {"malformed requests": 1}


@on_a_loop
async def test_what_strangers_say_does_not_fill_the_metrics() -> None:
    async with servers(1) as (server,):
        for number in range(MOST_KINDS_OF_REFUSALS + 10):
            reader, writer = await stranger(server)
            letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
            writer.write(introduction(f"another-{letters}", "not-this-one"))
            assert await reader.read() == b""
            writer.close()
        assert len(server.acceptor.refusals) <= MOST_KINDS_OF_REFUSALS + 1
        assert server.acceptor.refusals["other"] == 10


@on_a_loop
async def test_a_server_that_is_being_stopped_takes_no_new_clients() -> None:
    async with (
        servers(2) as (first, second),
        connect(second.address) as link,
    ):
        commits = Held(first, Commit)
        second.stop()
        with pytest.raises(ConnectionLost, match="shutting down"):
            await connect(second.address)
        commits.release()
        with pytest.raises(ServerClosing):
            await link.inspect()
