"""Hosts of their own for servers: network namespaces on a bridge, between which a cut is real."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Coroutine
from itertools import count
from types import TracebackType
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")

TERMINATED = 128 + signal.SIGTERM
"""The exit code of who ends because it was asked to terminate."""


def run_until_terminated(work: Coroutine[Any, Any, Found]) -> Found:
    """Run it; a signal to terminate cancels it, as an interrupt from the keyboard does, so that it
    ends its servers and removes their hosts."""

    async def work_until_then() -> Found:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(work_until_then())
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def can_make_namespaces() -> bool:
    name = f"fgtry{os.getpid()}"
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
    except OSError:
        return False
    return True


needs_namespaces = pytest.mark.skipif(
    not can_make_namespaces(), reason="needs root and iproute2, to make network namespaces"
)


def _free_network(made: int) -> str:
    """The first three bytes of addresses that nobody uses: tests run side by side, and servers of
    two of them must not find each other."""
    used = subprocess.run(["ip", "-o", "-4", "addr"], capture_output=True, text=True).stdout
    networks = (f"10.{100 + os.getpid() % 150}.{place % 250}" for place in count(made))
    return next(network for network in networks if f" {network}." not in used)


class Hosts:
    """Numbered from 1; the test itself is on the same network."""

    _made = count()

    def __init__(self, size: int) -> None:
        self.size = size
        self._cut: set[tuple[int, int]] = set()
        made = next(Hosts._made)  # the kernel takes its time to forget the ones before
        self._tag = f"fg{os.getpid() % 100_000}x{made}"
        self._net = _free_network(made)

    def address(self, host: int) -> str:
        return f"{self._net}.{host}"

    def inside(self, host: int) -> tuple[str, ...]:
        return ("ip", "netns", "exec", f"{self._tag}n{host}")

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between these two, without anybody being told."""
        self.cut_way(one, other)
        self.cut_way(other, one)

    def cut_way(self, source: int, target: int) -> None:
        """Nothing passes from the first to the second any more."""
        if (source, target) not in self._cut:
            self._route("add", source, target)
            self._cut.add((source, target))

    def heal(self, one: int, other: int) -> None:
        for source, target in ((one, other), (other, one)):
            self._route("del", source, target)
            self._cut.discard((source, target))

    def heal_all(self) -> None:
        for source, target in self._cut:
            self._route("del", source, target)
        self._cut.clear()

    def _route(self, how: str, source: int, target: int) -> None:
        space = f"{self._tag}n{source}"
        run("ip", "-n", space, "route", how, "blackhole", self.address(target))

    def __enter__(self) -> Hosts:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def _make(self) -> None:
        bridge = f"{self._tag}b"
        run("ip", "link", "add", bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.address(254)}/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        for host in range(1, self.size + 1):
            space, here, there = f"{self._tag}n{host}", f"{self._tag}h{host}", f"{self._tag}t{host}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
            run("ip", "link", "set", here, "master", bridge, "up")
            run("ip", "link", "set", there, "netns", space)
            inside = self.inside(host)
            run(*inside, "ip", "addr", "add", f"{self.address(host)}/24", "dev", there)
            run(*inside, "ip", "link", "set", there, "up")
            run(*inside, "ip", "link", "set", "lo", "up")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for host in range(1, self.size + 1):
            subprocess.run(["ip", "netns", "del", f"{self._tag}n{host}"], capture_output=True)
        subprocess.run(["ip", "link", "del", f"{self._tag}b"], capture_output=True)
