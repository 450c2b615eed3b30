"""The trial of hostile frames: servers in use, attacked at both of their ports.

Who attacks knows the name of the cluster and the numbers of its servers, and has their certificate,
but not their secrets. An insider has these as well, so it is taken for the server that it says to
be; then it leaves out what servers have to believe each other (`BELIEVED`), since no server can
tell such lies from the truth.

Run as a script it takes the number of frames and a seed:

    python -m tests.network.hostile_trial --frames 5000000 --tls
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import ssl
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from flexgroup import Group, Listener, Message, connect
from flexgroup.server.server import GroupServer
from flexgroup.wire.authority import make_certificates
from flexgroup.wire.certificates import SERVER, client_context

from .hostile import STACKS, Hostile, Nonsense, hostile_client, hostile_peer
from .in_process import servers

BURST = 50

MOST_OBJECTS_LEFT = 3000
CLIENTS = ("ann", "bob", "mallory")


@dataclass
class Found:
    """What a trial has shown."""

    frames: int = 0
    exchanged: int = 0
    errors: list[str] = field(default_factory=list)
    """What servers or event loops have logged as errors of theirs."""
    excluded: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    objects_before: int = 0
    objects_after: int = 0
    left_open: int = 0
    """Connections of those who attacked that are still known to a server in the end."""


class Deaf(Listener[bytes]):
    def delivered(self, messages: list[Message[bytes]]) -> None:
        pass


class Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self, found: Found) -> None:
        super().__init__(logging.ERROR)
        self._found = found
        self._format = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._found.errors) < 20:
            self._found.errors.append(self._format.format(record)[-3000:])


class Trial:
    def __init__(
        self, frames: int, seed: int, certificates: Path | None, is_insider: bool = False
    ) -> None:
        self.found = Found()
        self._frames = frames
        self._nonsense = Nonsense(seed)
        self._certificates = certificates
        self._is_insider = is_insider

    def _tls(self, name: str) -> ssl.SSLContext | None:
        return client_context(self._certificates, name) if self._certificates else None

    async def run(self) -> Found:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.found.errors.append(repr(context)[:3000])
        )
        errors = Errors(self.found)
        logger = logging.getLogger("flexgroup.server")
        logger.addHandler(errors)
        try:
            async with servers(3, None, self._certificates) as started:
                await self._attack_all(started)
        finally:
            logger.removeHandler(errors)
        return self.found

    async def _attack_all(self, started: list[GroupServer]) -> None:
        first, _, third = started
        numbers = [server.membership.number for server in started]
        async with (
            connect(first.address, name="ann", tls=self._certificates) as ann,
            connect(third.address, name="bob", tls=self._certificates) as bob,
        ):
            for place, stack in enumerate(STACKS):
                await Group(ann, f"g{place}").create(stack, owner="ann", open=True)
            await Group(ann, "kept").create("reliable atomic", owner="ann", allow=["ann", "bob"])
            attacked = [
                await link.join(f"g{place}") for place in range(len(STACKS)) for link in (ann, bob)
            ]
            for group in attacked:
                group.listen(Deaf())  # what attackers send there is not to fill the inboxes
            mine, other = await ann.join("kept"), await bob.join("kept")
            mine.listen(Deaf())  # or the server would keep for ann what she has sent herself
            for server in started:
                self._nonsense.knows(server)
            await self._burst_of_each(started)  # what is loaded or cached is not counted as left
            before = self._objects()
            is_over = False

            async def exchange() -> None:
                while not is_over:
                    body = b"%d" % self.found.exchanged
                    await mine.send(body)
                    while (await other.receive(60)).body != body:
                        pass
                    self.found.exchanged += 1
                    await asyncio.sleep(0.01)

            exchanging = asyncio.create_task(exchange())
            while self.found.frames < self._frames:
                await self._burst_of_each(started)
            is_over = True
            await exchanging
            self.found.objects_before = before
            await self._settled(started, before)
            for server in started:
                self.found.refusals.update(server.acceptor.refusals)
            if [server.membership.number for server in started] != numbers:
                self.found.excluded.append(str([s.membership.number for s in started]))
            await Group(ann, "new").create("fifo")
            assert await Group(bob, "new").exists()

    @staticmethod
    def _objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    async def _settled(self, started: list[GroupServer], before: int) -> None:
        """Wait for the end of what attackers have begun: dials to newcomers are given up late."""
        for _ in range(200):
            sessions = [len(server.members.sessions) for server in started]
            links = [len(server.links.open) for server in started]
            self.found.objects_after = self._objects()
            self.found.left_open = sum(links) - 6 + sum(sessions) - 2
            if not self.found.left_open and self.found.objects_after < before + MOST_OBJECTS_LEFT:
                return
            await asyncio.sleep(0.1)

    async def _burst_of_each(self, started: list[GroupServer]) -> None:
        draw = self._nonsense.random
        for target in started:
            await self._attack_as_client(target)
            await self._attack_as_peer(target, None)
            await self._attack_as_peer(target, draw.choice((4, 77, 2**32 - 1)))
        if draw.random() < 0.7:
            target, *others = draw.sample(started, 3)
            await self._attack_as_peer(target, others[0].membership.number)

    async def _attack_as_client(self, target: GroupServer) -> None:
        with contextlib.suppress(OSError):
            hostile = await hostile_client(target, "mallory", self._tls("mallory"))
            await self._attack(
                hostile, [self._nonsense.client_frame() for _ in range(10 * BURST)], 10
            )

    async def _attack_as_peer(self, target: GroupServer, number: int | None) -> None:
        is_believed = self._is_insider and number is not None and number <= 3
        nonsense = self._nonsense
        nonsense.believable = {"at": target.deployment.number}
        if number is not None:
            nonsense.believable |= {"sender": number, "silent": []}
        with contextlib.suppress(OSError):
            hostile = await hostile_peer(target, number, self._tls(SERVER), self._is_insider)
            frames = [self._nonsense.peer_frame(is_believed) for _ in range(BURST)]
            await self._attack(hostile, frames, 1)

    async def _attack(self, hostile: Hostile, contents: list[bytes], at_once: int) -> None:
        reading = asyncio.create_task(hostile.swallow())
        try:
            for begin in range(0, len(contents), at_once):
                if not hostile.is_open:
                    break
                await hostile.send(contents[begin : begin + at_once])
                self.found.frames += len(contents[begin : begin + at_once])
                await asyncio.sleep(0)
        except OSError:
            pass
        await hostile.close()
        await reading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--insider", action="store_true")
    options = parser.parse_args()
    logging.getLogger("flexgroup.server").propagate = False
    with tempfile.TemporaryDirectory() as folder:
        if options.tls:
            make_certificates(Path(folder), CLIENTS)
        certificates = Path(folder) if options.tls else None
        trial = Trial(options.frames, options.seed, certificates, options.insider)
        found = asyncio.run(trial.run())
    for error in found.errors:
        print(error)
    print(found.frames, "frames;", found.exchanged, "messages exchanged meanwhile;",
          "objects before and after:", found.objects_before, found.objects_after)  # fmt: skip
    print("excluded:", found.excluded, "left open:", found.left_open)
    print("refused:", dict(found.refusals.most_common(40)))


if __name__ == "__main__":
    main()
