"""The event loop that servers and clients run on: uvloop's where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what `asyncio.run` does, on that loop."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
