"""Tests as coroutines, each on an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import pytest

P = ParamSpec("P")

LAST_RESORT = 240.0
"""A test that hangs should fail. Nothing that passes comes near it."""


def on_a_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def limited() -> None:
            async with asyncio.timeout(LAST_RESORT):
                await test(*args, **kwargs)

        asyncio.run(limited())

    return run


def run_on_uvloop(test: Any) -> None:
    """A test that was marked with `on_a_loop`, where there is uvloop."""
    pytest.importorskip("uvloop").run(test.__wrapped__())
