"""The applications of examples/, with a stand-in for the servers."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ..client.loops import on_a_loop
from ..client.stand_in import stand_in
from .applications import PROMISES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@on_a_loop
async def test_with_a_stand_in(promise: Callable[[list[str]], Awaitable[None]]) -> None:
    async with stand_in() as server:
        await promise([server.address])


@pytest.mark.parametrize("name", ["bank.py", "chat.py", "kv_store.py"])
def test_without_a_server_they_say_so_in_a_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [] if name == "bank.py" else ["--name", "alice"]
    monkeypatch.setattr(sys, "argv", [name, "--server", "127.0.0.1:1", *named])
    with pytest.raises(
        SystemExit, match=f"^{name}: cannot connect to 127.0.0.1:1 .*start a server"
    ):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
