"""The lock service of the page, with processes and servers that are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from flexgroup.load.local_cluster import LocalCluster

from ..docs.fences import ROOT, fences

LAST_RESORT = 60.0


def program() -> str:
    page = fences(ROOT / "docs" / "replicas.md")
    [text] = [fence.text for fence in page if "import Lock" in fence.text]
    return text


class Holder:
    """A process that runs the program, and writes down when it holds the lock."""

    def __init__(self, folder: Path, name: str, servers: list[str]) -> None:
        self._log = folder / f"{name}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(folder / "lock.py"), name, ",".join(servers)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def fences(self) -> list[int]:
        return [int(fence) for fence in re.findall(r"holds (\d+)\n", self._log.read_text())]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LAST_RESORT
    while not is_so():
        assert time.monotonic() < until, "this never comes to pass"
        time.sleep(0.02)


def test_the_lock_goes_on_when_its_holder_a_waiter_and_a_server_are_killed(tmp_path: Path) -> None:
    text = program()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 25
    (tmp_path / "lock.py").write_text(text)
    holders: list[Holder] = []
    with LocalCluster(3, tmp_path) as cluster:
        addresses = cluster.addresses
        try:
            for number, name in enumerate("abc"):
                holders.append(
                    Holder(tmp_path, name, [addresses[number], addresses[(number + 1) % 3]])
                )
            a, b, c = holders
            wait_until(lambda: all(holder.fences() for holder in holders))
            a.kill()
            before = len(b.fences()), len(c.fences())
            wait_until(lambda: len(b.fences()) > before[0] + 1 and len(c.fences()) > before[1] + 1)
            os.kill(cluster.servers[2].process.pid, signal.SIGKILL)
            before = len(b.fences()), len(c.fences())
            wait_until(lambda: len(b.fences()) > before[0] + 1 and len(c.fences()) > before[1] + 1)
            holders.append(Holder(tmp_path, "d", [addresses[1], addresses[0]]))
            wait_until(lambda: len(holders[3].fences()) > 1)
        finally:
            for holder in holders:
                holder.kill()
    held = [fence for holder in holders for fence in holder.fences()]
    assert len(held) == len(set(held)), "no two holdings have the same number"
    assert all(holder.fences() == sorted(holder.fences()) for holder in holders)
    assert holders[3].fences()[0] > 3, "the newcomer came to the state that there was"
