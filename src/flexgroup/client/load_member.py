"""A member process of `flexgroup bench`: closed loops over one link to one server."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Coroutine

from flexgroup.client.group import Group
from flexgroup.client.link import connect
from flexgroup.client.load import ClosedLoops
from flexgroup.client.load_processes import report, wait_for_the_word
from flexgroup.core.errors import FlexGroupError


async def run(options: argparse.Namespace) -> None:
    loops = ClosedLoops(options.number, options.loops, options.payload)
    name = f"member-{options.number}"
    async with connect(options.address, name=name, tls=options.tls) as link:
        group = await link.join(options.group)
        first, end = wait_for_the_word(loops)
        going_round = asyncio.create_task(go_round(group, loops, first))
        await asyncio.wait([going_round], timeout=end - time.monotonic())
        if going_round.done():
            going_round.result()
        going_round.cancel()
        report(loops)


async def go_round(group: Group[bytes], loops: ClosedLoops, first: list[bytes]) -> None:
    await group.send_all(first)
    delivered = loops.delivered
    while True:
        answers = []
        for message in await group.receive_all():
            answer = delivered(message.body)
            if answer is not None:
                answers.append(answer)
        if answers:
            await group.send_all(answers)


def run_fast(coroutine: Coroutine[None, None, None]) -> None:
    """On uvloop, where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--group", required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--loops", type=int, required=True)
    parser.add_argument("--payload", type=int, required=True)
    parser.add_argument("--tls", help="a folder with a certificate for this member")
    try:
        run_fast(run(parser.parse_args()))
    except FlexGroupError as error:
        print(f"flexgroup: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
