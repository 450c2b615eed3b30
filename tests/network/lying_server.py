"""A server that lies to the other replicas of its group, and a client that lies to servers.

    python -m tests.network.lying_server 1000000 [SEED]

Four servers have a group of PBFT in common, over TLS. Members at three of them exchange messages;
the fourth has valid certificates, keys and links, and sends mutated copies of what its replica
knows, a frame of its channel for each, while views change. A client sends servers mutated copies
of what clients say. Nothing may come of that but refusals.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from flexgroup import Group, Link, connect
from flexgroup.core.codec import Codec
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.varints import varints
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Fetch,
    Fetched,
    NewView,
    PrePrepare,
    Request,
)
from flexgroup.protocols.pbft import INTERVAL, Pbft
from flexgroup.server.hosting.replica import Replica
from flexgroup.server.server import GroupServer
from flexgroup.wire import requests
from flexgroup.wire.authority import make_certificates
from flexgroup.wire.certificates import client_context
from flexgroup.wire.seals import make_seal_keys

from ..protocols.mutated_packets import MOST_BYTES, mutated, size_of
from .hostile import encoded, hostile_client
from .hostile_trial import Errors, Found
from .in_process import servers

NAMES = ("s1", "s2", "s3", "s4")
LIAR = 3
MEMBERS = ("ann", "bob", "cleo")
BURST = 100
MOST_KEPT = 1 << 20
"""The bytes that the liar has under way to a server, at most."""

KEPT = 2_000
"""How many frames are remembered, to be mutated."""


class LyingServer:
    """The trial: a cluster, and who attacks it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.found = Found()
        self.codec = Codec(parse_stack("PBFT").layers)
        self.frames: list[bytes] = []
        self.refused = 0
        self.received = 0
        self.views = 0
        self.largest = 0
        self.sent: set[tuple[str, bytes]] = set()
        self.delivered: list[list[tuple[str, bytes]]] = []
        make_certificates(folder, ("mallory", *MEMBERS))
        make_seal_keys(folder / "keys", NAMES)

    async def run(self, frames: int) -> Found:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.found.errors.append(repr(context)[:3000])
        )
        errors = Errors(self.found)
        logger = logging.getLogger("flexgroup.server")
        logger.addHandler(errors)
        try:
            async with (
                servers(4, None, self.folder, names=NAMES, seals=self.folder / "keys") as started,
                self._members(started) as members,
            ):
                await self._attack(started, members, frames)
        finally:
            logger.removeHandler(errors)
        return self.found

    @asynccontextmanager
    async def _members(self, started: list[GroupServer]) -> AsyncIterator[list[Group[bytes]]]:
        async with AsyncExitStack() as stack:
            links: list[Link] = []
            for server, name in zip(started, MEMBERS, strict=False):
                link = connect(server.address, name=name, tls=self.folder)
                links.append(await stack.enter_async_context(link))
            await links[0].create_replicated("PBFT", {"a": NAMES})
            yield [await link.join("a") for link in links]

    async def _attack(
        self, started: list[GroupServer], members: list[Group[bytes]], frames: int
    ) -> None:
        self.delivered = [[] for _ in members]
        await self._exchange(members, [])
        replicas = [replica for server in started for replica in server.replicas.hosted.values()]
        while self.found.frames < frames:
            if self.found.frames == BURST * len(MEMBERS):
                self.found.objects_before = objects()
            self._learn(replicas[LIAR])
            for target in range(LIAR):
                await self._lie(started[LIAR], replicas[LIAR], target)
                self.found.frames += BURST
            if self.random.random() < 0.02:
                await self._lie_as_client(self.random.choice(started[:LIAR]))
            if self.random.random() < 0.1:
                await self._exchange(members, replicas[:LIAR])
                self._check(replicas[:LIAR])
        await self._exchange(members, replicas[:LIAR])
        self._check(replicas[:LIAR])
        self.found.objects_after = objects()
        self.refused = sum(replica.domain.packets_refused for replica in replicas[:LIAR])
        self.received = sum(replica.domain.packets_received for replica in replicas[:LIAR])
        for server in started:
            self.found.refusals.update(server.acceptor.refusals)

    # What the members do.

    async def _exchange(self, members: list[Group[bytes]], replicas: list[Replica]) -> None:
        """Each sends a message, and all wait until all of them are there; meanwhile views change,
        now and then."""
        body = b"%d" % self.found.exchanged
        for name, member in zip(MEMBERS, members, strict=True):
            self.sent.add((name, body))
            await member.send(body)
        while self.random.random() < 0.7:
            await asyncio.sleep(0.001)
            self._lose_patience(replicas)
        for place, member in enumerate(members):
            missing = {(name, body) for name in MEMBERS}
            while missing:
                message = await member.receive(120)
                self.delivered[place].append((message.sender, message.body))
                missing.discard((message.sender, message.body))
        self.found.exchanged += len(members)

    def _check(self, replicas: Iterable[Replica]) -> None:
        """Raise an AssertionError if what is promised does not hold."""
        known = [[one for one in order if one[0] in MEMBERS] for order in self.delivered]
        shortest = min(map(len, self.delivered))
        assert all(order[:shortest] == self.delivered[0][:shortest] for order in self.delivered)
        for order in known:
            assert self.sent.issuperset(order), "a message was delivered that nobody has sent"
            assert len(set(order)) == len(order), "a message was delivered twice"
        for replica in replicas:
            self.views = max(self.views, pbft(replica).view)
            self.largest = max(self.largest, size_of(pbft(replica)))
        assert self.largest < MOST_BYTES, f"the state of a replica has {self.largest} bytes"

    @staticmethod
    def _lose_patience(replicas: list[Replica]) -> None:
        """The timers of correct replicas run out early."""
        for replica in replicas:
            earliest = replica.domain.earliest_timer()
            if earliest is not None:
                replica.domain.end_timers(earliest)

    # What the liars do.

    def _learn(self, replica: Replica) -> None:
        """Remember what the replica of the liar knows, and can make of it."""
        layer = pbft(replica)
        for packet in [*known_to(layer), *made_by(layer, self.random)]:
            frame = self.codec.encode(packet)
            if len(self.frames) < KEPT:
                self.frames.append(frame)
            else:
                self.frames[self.random.randrange(KEPT)] = frame

    async def _lie(self, server: GroupServer, replica: Replica, target: int) -> None:
        channel = replica._channels[target]
        while channel.kept > MOST_KEPT or not channel.is_open:
            await asyncio.sleep(0.01)
        for _ in range(BURST):
            packet = mutated(self.random, self.frames)
            data = varints([len(packet), 1, 0]) + packet
            server.replicas._say(replica, target, channel.send(replica.incarnation, data))
        server._round.request()
        await asyncio.sleep(0)

    async def _lie_as_client(self, target: GroupServer) -> None:
        """Until the server has enough of it."""
        said = [
            encoded([requests.Join(1, "a", "mallory", False)]),
            encoded([requests.Send([self.random.randrange(8)], [b"x" * 50])]),
            encoded([requests.Confirm(2, self.random.randrange(8))]),
            encoded([requests.Info(3, "a")]),
        ]
        with contextlib.suppress(OSError):
            hostile = await hostile_client(
                target, "mallory", client_context(self.folder, "mallory")
            )
            reading = asyncio.create_task(hostile.swallow())
            for _ in range(BURST):
                if not hostile.is_open:
                    break
                await hostile.send([mutated(self.random, said)])
                self.found.frames += 1
                await asyncio.sleep(0)
            await hostile.close()
            await reading


def pbft(replica: Replica) -> Pbft:
    layer = replica.domain.host.stack.layers[0]
    assert isinstance(layer, Pbft)
    return layer


def known_to(layer: Pbft) -> list[Packet]:
    """What a replica has heard and said lately."""
    found: list[Packet] = [*layer.requests.pending.values(), *layer.checkpoints.told.values()]
    found += [*layer.checkpoints.proof, *layer.views.changes.values()]
    for number in sorted(layer.slots)[-4:]:
        slot = layer.slots[number]
        found += [*slot.prepares.values(), *slot.commits.values(), *slot.early.values()]
        found += [] if slot.accepted is None else [slot.accepted]
    return found


def made_by(layer: Pbft, random: Random) -> list[Packet]:
    """What the liar says that its replica would not, with its own seals."""
    number = layer.sequence.last + random.choice((0, 1, 1, 2, 300))
    m = Message(message_id(layer.process, random.randrange(1 << 20)), layer.quorums.group, b"x")
    request = Request(m, layer.seal(Request(m, b"")))
    said = Checkpoint(number // INTERVAL * INTERVAL, random.randbytes(20), layer.process, b"")
    V = tuple([change.quoted() for change in layer.views.changes.values()])
    return [
        request,
        said.with_seal(layer.seal(said)),
        PrePrepare(layer.view + random.choice((0, 1, 4)), number, (request,)),
        NewView(layer.view + random.choice((0, 1, 4)), V, ()),
        Fetch(max(number - 3, 1), number + random.choice((0, 100))),
        Fetched(number, (m,)),
    ]


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def main() -> None:
    frames = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else Random().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    logging.getLogger("flexgroup.server").propagate = False
    with tempfile.TemporaryDirectory() as folder:
        trial = LyingServer(Path(folder), seed)
        found = asyncio.run(trial.run(frames))
    for error in found.errors:
        print(error)
    print(
        f"{found.frames:,} frames; {trial.refused:,} of {trial.received:,} packets refused; views "
        f"up to {trial.views}; {found.exchanged:,} messages exchanged meanwhile, none of them "
        f"forged; objects before and after: {found.objects_before:,} {found.objects_after:,}; the "
        f"state of no replica larger than {trial.largest:,} bytes; errors: {len(found.errors)}"
    )
    print("refused:", dict(found.refusals.most_common(40)))


if __name__ == "__main__":
    main()
