"""A member of a closed process group of Corosync, loaded by closed loops.

    python -m peers.corosync_member --number 0 --nodes 3 --loops 21 --library libcpg.so.4

Corosync, in C, orders messages by passing a token around (Totem); the group is reached through its
library libcpg, here with ctypes. Messages are sent with agreed order: total, and causal.
"""

from __future__ import annotations

import argparse
import ctypes
import select
import time
from collections import deque
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_int,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

from flexgroup.load.closed_loops import ClosedLoops
from flexgroup.load.processes import report, wait_to_begin

OK = 1
TRY_AGAIN = 6
AGREED_ORDER = 2
DISPATCH_ALL = 2
GROUP = b"flexgroup-bench"


class Name(Structure):
    _fields_ = [("length", c_uint32), ("value", c_char * 128)]


class Part(Structure):
    """A part of a message, as C has it: struct iovec."""

    _fields_ = [("base", c_void_p), ("length", c_size_t)]


Delivered = CFUNCTYPE(None, c_uint64, POINTER(Name), c_uint32, c_uint32, c_void_p, c_size_t)
Changed = CFUNCTYPE(
    None, c_uint64, POINTER(Name), c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t
)


class Callbacks(Structure):
    _fields_ = [("deliver", Delivered), ("change", Changed)]


class Member:
    """A member of the group, which sends what its loops say as fast as Corosync takes it."""

    def __init__(self, library: str, loops: ClosedLoops, nodes: int) -> None:
        self._cpg = ctypes.CDLL(library)
        self._loops = loops
        self._handle = c_uint64()
        self._outgoing: deque[bytes] = deque()
        self._members = 0
        self._callbacks = Callbacks(Delivered(self._delivered), Changed(self._changed))
        self._wait_for(
            lambda: self._cpg.cpg_initialize(byref(self._handle), byref(self._callbacks))
        )
        name = Name(len(GROUP), GROUP)
        self._wait_for(lambda: self._cpg.cpg_join(self._handle, byref(name)))
        descriptor = c_int()
        self._wait_for(lambda: self._cpg.cpg_fd_get(self._handle, byref(descriptor)))
        self._poll = select.poll()
        self._poll.register(descriptor.value, select.POLLIN)
        while self._members < nodes:
            self._turn(1.0)

    def run(self) -> None:
        first, end = wait_to_begin(self._loops)
        self._outgoing.extend(first)
        while (left := end - time.monotonic()) > 0:
            self._send()
            self._turn(min(left, 0.001) if self._outgoing else left)

    def _turn(self, seconds: float) -> None:
        if self._poll.poll(seconds * 1000):
            self._cpg.cpg_dispatch(self._handle, DISPATCH_ALL)

    def _send(self) -> None:
        while self._outgoing:
            body = self._outgoing[0]
            part = Part(ctypes.cast(ctypes.c_char_p(body), c_void_p), len(body))
            status = self._cpg.cpg_mcast_joined(self._handle, AGREED_ORDER, byref(part), 1)
            if status == TRY_AGAIN:
                return
            check(status)
            self._outgoing.popleft()

    def _delivered(
        self, handle: int, group: Name, node: int, process: int, data: int, length: int
    ) -> None:
        self._outgoing += self._loops.delivered([ctypes.string_at(data, length)])

    def _changed(
        self, handle: int, group: Name, members: int, count: int, *left_and_joined: int
    ) -> None:
        self._members = count

    def _wait_for(self, call: Callable[[], int]) -> None:
        """Repeat the call, since Corosync is not ready for a moment after it has started."""
        for _ in range(1_000):
            status = call()
            if status == OK:
                return
            time.sleep(0.01)
        check(status)


def check(status: int) -> None:
    if status != OK:
        raise RuntimeError(f"libcpg answers with error {status}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--payload", type=int, default=64)
    options = parser.parse_args()
    loops = ClosedLoops(options.number, options.loops, options.payload)
    Member(options.library, loops, options.nodes).run()
    report(loops)


if __name__ == "__main__":
    main()
