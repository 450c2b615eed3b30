"""A process with a replica of `flexgroup.replicated.Dict`, in which closed loops put values.

python -m peers.dictionary_member localhost:7400 --number 0 --loops 21
"""

from __future__ import annotations

import argparse
import asyncio
import time

from flexgroup.load.closed_loops import ClosedLoops
from flexgroup.load.processes import report, wait_to_begin
from flexgroup.replicated import Dict
from flexgroup.wire import event_loop


async def run(options: argparse.Namespace) -> None:
    loops = ClosedLoops(options.number, options.loops, options.payload)
    async with Dict().join("dictionary", options.address, stack=options.stack) as dictionary:
        # In a thread, so that others are told the state meanwhile.
        first, end = await asyncio.to_thread(wait_to_begin, loops)

        async def loop(key: str, body: bytes) -> None:
            following = [body]
            while following:
                await dictionary.put(key, following[0])
                following = loops.delivered(following)

        working = [
            asyncio.create_task(loop(f"{options.number} {number}", body))
            for number, body in enumerate(first)
        ]
        if working:
            await asyncio.wait(working, timeout=end - time.monotonic())
        else:
            await asyncio.sleep(end - time.monotonic())
        for task in working:
            if task.done():
                task.result()
            task.cancel()
        report(loops)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--stack", default="ABCAST SAFE")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=event_loop.new_event_loop) as runner:
        runner.run(run(options))


if __name__ == "__main__":
    main()
