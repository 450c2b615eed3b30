"""Frames that no client should send, other ones each time, against a server that is in use."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from pathlib import Path

import pytest

from flexgroup import Group, connect
from flexgroup.wire.frames import MOST_BYTES

from .agreement import belief_of
from .fuzzing import Fuzzer, RawClient, wrong_frames
from .servers import LAST_RESORT, Cluster

FRAMES = 40_000
AT_ONCE = 400
MOST_BYTES_A_FRAME = 500
"""What a frame may leave behind, on average."""


def tolerated(address: str, fuzzer: Fuzzer, frames: int) -> int:
    """Valid nonsense, until the server has had enough of the connection."""
    client = RawClient(address)
    drain = threading.Thread(target=client.is_closed_by_server)
    drain.start()
    sent = 0
    try:
        while sent < frames:
            client.send_raw(b"".join(client.writer.frame(fuzzer.tolerable()) for _ in range(20)))
            sent += 20
    except OSError:
        pass
    with contextlib.suppress(OSError):
        client.socket.shutdown(1)
    drain.join()
    client.close()
    return sent


def refused(address: str, fuzzer: Fuzzer) -> int:
    """A broken frame; the server closes the connection, or waits for the rest."""
    client = RawClient(address, greet=fuzzer.random.random() < 0.7)
    try:
        if fuzzer.random.random() < 0.5:
            client.send(fuzzer.broken())
        else:
            client.send_raw(wrong_frames(fuzzer))
        client.socket.shutdown(1)
        assert client.is_closed_by_server()
    except OSError:
        pass
    client.close()
    return 1


@pytest.mark.slow
def test_fuzzed_frames_do_no_harm(tmp_path: Path) -> None:
    seed = random.randrange(2**32)

    async def play(cluster: Cluster) -> None:
        server = cluster.servers[0]
        begun, over = asyncio.Event(), asyncio.Event()

        async def legitimate() -> int:
            exchanged = 0
            async with (
                connect(cluster.addresses[0], name="ann") as ann,
                connect(cluster.addresses[1], name="bob") as bob,
            ):
                await Group(ann, "held").create(
                    "RELIABLE ATOMIC", owner="ann", allow=["ann", "bob"]
                )
                await Group(ann, "open").create("SKEEN", owner="ann", open=True, allow=[])
                sender = await ann.join("held")
                receiver = await bob.join("held")
                begun.set()
                while not over.is_set():
                    await sender.send(b"%d" % exchanged)
                    assert int((await receiver.receive(30)).body) == exchanged
                    await sender.receive(30)
                    exchanged += 1
            return exchanged

        exchanging = asyncio.create_task(legitimate())
        await asyncio.wait_for(begun.wait(), LAST_RESORT)
        before = server.memory()
        fuzzer = Fuzzer(seed)
        frames = 0
        while frames < FRAMES:
            frames += await asyncio.to_thread(tolerated, server.address, fuzzer, AT_ONCE)
            for _ in range(4):
                frames += await asyncio.to_thread(refused, server.address, fuzzer)
        over.set()
        assert await exchanging > 0
        assert server.process.poll() is None
        assert server.memory() - before < FRAMES * MOST_BYTES_A_FRAME
        assert (await belief_of(server.address))[1] == ("s1", "s2")
        async with connect(server.address, name="ann") as link:
            counted = (await link.inspect())["refused"]
        assert sum(counted.values()) > 100

    with Cluster(tmp_path, 2, "--log", "none", "--patience", "10") as cluster:
        try:
            asyncio.run(play(cluster))
        except BaseException as error:
            error.add_note(f"the seed was {seed}")
            raise


def test_a_frame_sent_twice_is_refused(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        client = RawClient(cluster.addresses[0])
        frame = client.writer.frame(Fuzzer(1).tolerable())
        client.send_raw(frame + frame)
        assert client.is_closed_by_server()
        client.close()
        assert "replayed" in cluster.servers[0].log.read_text()


def test_a_recorded_session_cannot_be_played_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        first = RawClient(cluster.addresses[0])
        recorded = first.writer.frame(Fuzzer(1).tolerable())
        first.send_raw(recorded)
        assert first.receive()
        first.close()
        second = RawClient(cluster.addresses[0])
        second.send_raw(recorded)
        assert second.is_closed_by_server()
        second.close()


def test_an_oversized_frame_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        client = RawClient(cluster.addresses[0], greet=False)
        client.send_raw((MOST_BYTES + 1).to_bytes(4, "big") + bytes(4))
        assert client.is_closed_by_server()
        client.close()


def test_who_says_nothing_is_disconnected_and_who_is_half_way_waits(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        client = RawClient(cluster.addresses[0], greet=False)
        client.send_raw(b"\0\0")
        client.socket.settimeout(0.2)
        assert not client.is_closed_by_server()
        client.close()
