"""Frames that are well-formed and wrong in content, at servers that are in use.

`python -m tests.network.hostile_trial --frames 5000000` makes more of them.
"""

from __future__ import annotations

import asyncio
from math import inf
from pathlib import Path

import pytest

from flexgroup import Group, connect
from flexgroup.core.varints import varints
from flexgroup.membership.configuration import Server
from flexgroup.membership.messages import (
    AskToJoin,
    Beat,
    Introduced,
    Meet,
    NotMember,
    Overtaken,
    Prepare,
)
from flexgroup.membership.suspicion import NEVER
from flexgroup.protocols.table import PROTOCOLS
from flexgroup.server.peers.introduction import (
    VERSION,
    PeerHello,
    PeerWelcome,
    decode_hello,
    decode_welcome,
    encode_introduction,
)
from flexgroup.server.peers.links import CONTROL, PACKETS
from flexgroup.wire.authority import make_certificates
from flexgroup.wire.frames import FrameReader, FrameWriter

from ..client.loops import LAST_RESORT, on_a_loop
from .hostile import encoded, hostile_peer
from .hostile_trial import CLIENTS, MOST_OBJECTS_LEFT, Trial
from .in_process import servers
from .strangers import stranger


@pytest.mark.parametrize(("with_tls", "is_insider"), [(False, False), (True, False), (True, True)])
def test_hostile_frames_do_no_harm(with_tls: bool, is_insider: bool, tmp_path: Path) -> None:
    if with_tls:
        make_certificates(tmp_path, CLIENTS)
    trial = Trial(10_000, 1, tmp_path if with_tls else None, is_insider)
    found = asyncio.run(asyncio.wait_for(trial.run(), LAST_RESORT))
    assert found.frames >= 10_000
    assert found.errors == []
    assert found.excluded == []
    assert found.exchanged > 0
    assert ("impostor" in found.refusals) == (not is_insider)
    assert found.left_open == 0
    assert found.objects_after < found.objects_before + MOST_OBJECTS_LEFT


@pytest.mark.parametrize("number", [1, 2, 7])
def test_who_knows_only_the_number_of_a_server_is_not_taken_for_it(number: int) -> None:
    @on_a_loop
    async def pretend() -> None:
        async with servers(2) as (first, second):
            link, before = first.links.by_server[2], first.deployment.number
            impostor = await hostile_peer(first, number, is_insider=False)
            await impostor.swallow()
            await impostor.close()
            assert first.acceptor.refusals == {"impostor": 1}
            assert first.links.by_server == {2: link}
            assert link.connection.is_open
            async with connect(second.address) as client:
                await Group(client, "for a change").create("fifo")
            assert first.deployment.number == before + 1  # so no link was taken for replaced

    pretend()


@on_a_loop
async def test_who_answers_at_the_address_of_a_server_is_not_taken_for_it() -> None:
    """It says what that one would say, but all that it can show is what it was shown."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while (content := frames.next_frame()) is None:
            frames.feed(await reader.read(1 << 16))
        hello = decode_hello(content)
        asked.append(hello.proof)
        known = sorted(PROTOCOLS)
        welcome = PeerWelcome(VERSION, hello.cluster, "s3", 3, 0, known, hello.proof)
        writer.write(FrameWriter().frame(encode_introduction(welcome)))
        await reader.read()
        writer.close()

    async with servers(2) as (first, _):
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            first.links.connect(Server(3, "s3", f"127.0.0.1:{port}", attempt=5))
            while not (first.acceptor.refusals or 3 in first.links.by_server):
                await asyncio.sleep(0.01)
            taken_for = sorted(first.links.by_server)
            first.links.forget(3)
        assert taken_for == [2]
        assert list(first.acceptor.refusals) == ["impostor"]
        assert all(asked)


@on_a_loop
async def test_no_secret_is_told_to_who_has_not_shown_that_it_knows_it() -> None:
    async with servers(1) as (server,):
        assert server.membership.secret
        for number in (None, 1):
            (reader, writer) = await stranger(server)
            hello = PeerHello(VERSION, server.identity.cluster, "m", "127.0.0.1:1", number, [])
            writer.write(FrameWriter().frame(encode_introduction(hello)))
            frames = FrameReader()
            while (content := frames.next_frame()) is None:
                frames.feed(await reader.read(1 << 16))
            assert decode_welcome(content).proof == b""
            writer.close()


@on_a_loop
async def test_who_is_no_member_cannot_tell_a_server_that_it_is_none() -> None:
    async with servers(1) as (server,):
        for number in (None, 7):
            stranger = await hostile_peer(server, number)
            await stranger.send([control(NotMember(number or 1, 1000))])
            await stranger.send([control(Beat(number or 1, 1, 0.0, NEVER, (), (0, 0), 2.0, 0.0))])
            await stranger.close()
            await stranger.swallow()
        assert server.membership.is_member


@on_a_loop
async def test_nor_that_it_is_a_newcomer_which_another_is() -> None:
    """It would be at the address of a server, which would then be taken for dead."""
    async with servers(2) as (first, second):
        stranger = await hostile_peer(first, None)
        await stranger.send([control(AskToJoin("s9", second.address)), control(Introduced(3))])
        while "s9" not in str(first.links._wanted):
            await asyncio.sleep(0)
        await stranger.send([control(Introduced(3))])
        await stranger.close()
        await stranger.swallow()
        async with connect(first.address) as link:
            await Group(link, "for a change").create("fifo")
        assert len(first.deployment.configuration.servers) == 2
        assert second.membership.is_member


@on_a_loop
async def test_of_who_is_no_member_no_packets_are_kept_and_no_link_is_missed() -> None:
    async with servers(1) as (server,):
        before = server.deployment.number
        for _ in range(3):
            stranger = await hostile_peer(server, 7)
            await stranger.send([varints([PACKETS, 1000, 0]) + bytes(1000)] * 100)
            await stranger.close()
            await stranger.swallow()
        async with connect(server.address) as link:
            await Group(link, "for a change").create("fifo")
        assert server._switchboard._ahead_bytes == 0
        assert server.deployment.number == before + 1


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Prepare(2, 2, (1 << 62, 2)), "a change in round"),
        (Prepare(2, 2, (-1, 2)), "a change in round -"),
        (Prepare(2, 2, (1, 1)), "server leads a change of another"),
        (Overtaken(2, 2, (1 << 62, 1)), "a change in round"),
        (Beat(2, 2, 0.0, NEVER, (), (1 << 62, 1), 2.0, 0.0), "a change in round"),
        (Beat(2, 2, 0.0, NEVER, (), (0, 0), inf, 0.0), "a beat asks for a patience of inf s"),
        (Meet(2, 2, Server(1, "s9", "127.0.0.1:1")), "server is no newcomer"),
    ],
)
def test_what_no_server_says_is_refused(message: object, why: str) -> None:
    @on_a_loop
    async def refuse() -> None:
        async with servers(2) as (first, _):
            peer = await hostile_peer(first, 2)
            await peer.send([control(message)])
            await peer.swallow()
            assert any(reason.startswith(why) for reason in first.acceptor.refusals)
            await peer.close()

    refuse()


def control(message: object) -> bytes:
    return bytes([CONTROL]) + encoded(message)
