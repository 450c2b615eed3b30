"""The applications of examples/ and of the README, with real servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from flexgroup.client.errors import ConnectionLost

from ..client.loops import LAST_RESORT, on_a_loop
from ..docs.fences import ROOT, fences
from ..examples.applications import EXAMPLES, PROMISES, example
from .servers import Cluster

pytestmark = pytest.mark.xdist_group("applications")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all: the applications leave empty groups behind, or use others."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def cluster(servers: Cluster) -> list[str]:
    return servers.addresses


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_with_three_servers(
    promise: Callable[[list[str]], Awaitable[None]], cluster: list[str]
) -> None:
    @on_a_loop
    async def keep() -> None:
        await promise(cluster)

    keep()


def test_the_program_of_the_readme(cluster: list[str], tmp_path: Path) -> None:
    [code] = [fence.text for fence in fences(ROOT / "README.md") if "connect(" in fence.text]
    assert len([line for line in code.splitlines() if line]) <= 15
    program = tmp_path / "counter.py"
    program.write_text(code)
    running = [
        subprocess.Popen(
            [sys.executable, str(program), address, name], stdout=subprocess.PIPE, text=True
        )
        for name, address in zip("ab", cluster, strict=False)
    ]
    printed = [process.communicate(timeout=LAST_RESORT)[0].splitlines() for process in running]
    assert printed[0] == printed[1]
    for name in "ab":
        sent = [line for line in printed[0] if line.startswith(name)]
        assert sent == [f"{name}{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("name", "options", "typed", "printed"),
    [
        (
            "kv_store",
            ["--name", "x"],
            "put tea green\nget tea\nget\n",
            "None\ngreen\nput KEY VALUE",
        ),
        ("chat", ["--name", "x", "--room", "den"], "hello\n", "* x is here\n"),
        ("bank", ["--transfers", "2"], "", "every audit found the same: {1200}"),
    ],
)
def test_the_examples_are_programs(
    cluster: list[str], name: str, options: list[str], typed: str, printed: str
) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--server", cluster[0], *options]
    done = subprocess.run(
        command, input=typed, capture_output=True, text=True, timeout=LAST_RESORT, check=True
    )
    assert printed in done.stdout


def test_the_store_goes_on_when_a_server_is_killed(servers: Cluster) -> None:
    """Last, as it leaves two servers."""
    open_store = example("kv_store").open_store

    async def be_killed(ready: asyncio.Event) -> None:
        async with open_store(servers.addresses[2], "c") as store:
            await store.put("c was", "here")
            ready.set()
            await asyncio.Event().wait()

    @on_a_loop
    async def go_on() -> None:
        async with (
            open_store(servers.addresses[0], "a") as a,
            open_store(servers.addresses[1], "b") as b,
        ):
            ready = asyncio.Event()
            killed = asyncio.create_task(be_killed(ready))
            await ready.wait()
            writing = asyncio.gather(*(a.put(f"key {n}", n) for n in range(100)))
            await b.put("at", "once")
            servers.servers[2].kill()
            await writing
            assert [await b.get(f"key {n}") for n in range(100)] == list(range(100))
            assert await a.get("c was") == await b.get("c was") == "here"
            [outcome] = await asyncio.gather(killed, return_exceptions=True)
            assert isinstance(outcome, ExceptionGroup)
            assert outcome.subgroup(ConnectionLost)

    go_on()
