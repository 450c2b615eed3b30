"""A node of PySyncObj, a replicated state machine (Raft) in Python, loaded by closed loops.

    python -m peers.pysyncobj_node --number 0 --ports 7001,7002,7003 --loops 21 --batch off

The member is in the node's own process, as users of PySyncObj have it: it has no hop between a
client and its server, which the others in this comparison have.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import ClassVar

from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, replicated
from pysyncobj.batteries import ReplDict

from flexgroup.load.closed_loops import LOOP_BYTES, ClosedLoops
from flexgroup.load.processes import report, wait_to_begin


class Everyone(SyncObj):  # type: ignore[misc]
    """Tells the loops of this process every message, in the order of the replicated log."""

    # Of the class, because PySyncObj saves what instances hold when it compacts its log.
    loops: ClassVar[ClosedLoops]

    @replicated  # type: ignore[untyped-decorator]
    def cast(self, body: bytes) -> list[bytes]:
        return self.loops.delivered([body])

    def send(self, body: bytes) -> None:
        def applied_here(following: list[bytes], error: int) -> None:
            for each in [body] if error != FAIL_REASON.SUCCESS else following:
                self.send(each)

        self.cast(body, callback=applied_here)


class Dictionary:
    """PySyncObj's own dictionary, in which the loops of this process put values."""

    def __init__(self, here: str, others: list[str], conf: SyncObjConf, loops: ClosedLoops) -> None:
        self._dictionary = ReplDict()
        self._node = SyncObj(here, others, conf, consumers=[self._dictionary])
        self._loops = loops

    def isReady(self) -> bool:  # its name there
        return bool(self._node.isReady())

    def send(self, body: bytes) -> None:
        def applied_here(_: object, error: int) -> None:
            done = error == FAIL_REASON.SUCCESS
            for each in self._loops.delivered([body]) if done else [body]:
                self.send(each)

        self._dictionary.set(body[:LOOP_BYTES], body, callback=applied_here)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--ports", required=True)
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--batch", choices=("on", "off"), default="off")
    parser.add_argument("--dictionary", action="store_true", help="put values in a ReplDict")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # it warns of every repeated entry, which is slow as well
    addresses = [f"127.0.0.1:{port}" for port in options.ports.split(",")]
    here = addresses.pop(options.number)
    loops = ClosedLoops(options.number, options.loops, options.payload)
    Everyone.loops = loops
    conf = SyncObjConf(appendEntriesUseBatch=options.batch == "on")
    node: Everyone | Dictionary = (
        Dictionary(here, addresses, conf, loops)
        if options.dictionary
        else Everyone(here, addresses, conf)
    )
    while not node.isReady():
        time.sleep(0.01)
    first, end = wait_to_begin(loops)
    for body in first:
        node.send(body)
    time.sleep(end - time.monotonic())
    report(loops)


if __name__ == "__main__":
    main()
