"""The processes of a simulation, with what the simulator keeps of each."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Stored
from flexgroup.core.message import NO_MESSAGE
from flexgroup.core.stack import Stack

DEPTHS_KEPT: Final = 1 << 16
"""Of how many messages a process remembers the depth at which it last heard of them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class StackFactory:
    """Builds the stack of a process, at the start and after a crash."""

    def build(self, process: int) -> Stack:
        raise NotImplementedError


@final
class Channel:
    """From one process to another; what is kept of it is what FIFO order needs."""

    __slots__ = ("last_arrival",)

    def __init__(self) -> None:
        self.last_arrival = 0


@final
class Host:
    """A process of the simulation."""

    __slots__ = (
        "busy_until",
        "channels",
        "crash_at",
        "depths",
        "process",
        "saved",
        "stack",
        "step",
        "timers",
        "up",
    )

    def __init__(self, process: int, stack: Stack, crash_at: int) -> None:
        self.process = process
        self.stack = stack
        self.up = True
        self.step = 0
        """How many events of its history have been recorded."""
        self.busy_until = 0
        self.channels: list[Channel] = []
        """To every process and client; empty until the first packet is sent."""
        self.crash_at = crash_at
        self.saved: list[Stored] = [None] * len(stack.layers)
        self.timers: dict[tuple[int, str], int] = {}
        self.depths: dict[int, int] = {}
        """Communication steps since its multicast, for messages heard of and kept waiting."""

    def remember_depth(self, message: int, depth: int) -> None:
        depths = self.depths
        if message != NO_MESSAGE and depth > depths.get(message, 0):
            if len(depths) >= DEPTHS_KEPT:
                del depths[next(iter(depths))]
            depths[message] = depth

    def forget_depth(self, message: int) -> int:
        depth = self.depths.get(message, 0)
        if depth:
            del self.depths[message]
        return depth
