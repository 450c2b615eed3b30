"""A member process of `flexgroup bench`: closed loops over one link to one server."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group, Link
from flexgroup.client.message import Listener, Message
from flexgroup.core.errors import FlexGroupError
from flexgroup.load.closed_loops import ClosedLoops
from flexgroup.load.processes import report, wait_to_begin
from flexgroup.wire import event_loop


async def run(options: argparse.Namespace) -> None:
    loops = ClosedLoops(options.number, options.loops, options.payload)
    name = f"member-{options.number}"
    async with connect(options.address, name=name, tls=options.tls) as link:
        group = await link.join(options.group)
        others = [await link.attach(name) for name in options.also]
        first, end = wait_to_begin(loops)
        sender = LoopSender(link, group, others, loops)
        sender.begin(first)
        await asyncio.wait([sender.failed], timeout=end - time.monotonic())
        if sender.failed.done():
            sender.failed.result()
        sender.stop()
        report(loops)


class LoopSender(Listener[bytes]):
    """Sends the next message of a loop as soon as its last one has come back."""

    def __init__(
        self, link: Link, group: Group[bytes], others: list[Group[bytes]], loops: ClosedLoops
    ) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when no loop can go on, with the reason."""
        self._link = link
        self._group = group
        self._others = others
        """The groups that every message goes to besides."""
        self._next = loops.delivered
        self._unsent: list[bytes] = []
        self._sending: asyncio.Task[None] | None = None
        """Sends what there was no room for; until it ends, all that follows has to wait."""

    def begin(self, first: list[bytes]) -> None:
        self._send(first)
        self._group.listen(self)

    def stop(self) -> None:
        self._group.listen(None)
        if self._sending is not None:
            self._sending.cancel()

    def delivered(self, messages: list[Message[bytes]]) -> None:
        bodies = self._next([message.body for message in messages])
        if bodies:
            self._send(bodies)

    def refused(self, error: FlexGroupError) -> None:
        self._fail(error)

    def ended(self, error: FlexGroupError) -> None:
        self._fail(error)

    def _send(self, bodies: list[bytes]) -> None:
        try:
            if not self._others and self._sending is None and self._group.send_now(bodies):
                return
        except FlexGroupError as error:
            self._fail(error)
            return
        self._unsent += bodies
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_unsent())

    async def _send_unsent(self) -> None:
        try:
            while self._unsent:
                bodies, self._unsent = self._unsent, []
                if self._others:
                    for body in bodies:
                        await self._link.multicast([self._group, *self._others], body)
                else:
                    await self._group.send_all(bodies)
        except FlexGroupError as error:
            self._fail(error)
        else:
            self._sending = None

    def _fail(self, error: FlexGroupError) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--group", required=True)
    parser.add_argument("--also", action="append", default=[], help="one more group to send to")
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--loops", type=int, required=True)
    parser.add_argument("--payload", type=int, required=True)
    parser.add_argument("--tls", help="a folder with a certificate for this member")
    try:
        event_loop.run(run(parser.parse_args()))
    except FlexGroupError as error:
        print(f"flexgroup: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
