"""The applications of examples/, with a stand-in for the servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ..client.loops import on_a_loop
from ..client.stand_in import stand_in
from .applications import PROMISES


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@on_a_loop
async def test_with_a_stand_in(promise: Callable[[list[str]], Awaitable[None]]) -> None:
    async with stand_in() as server:
        await promise([server.address])
