"""A cluster of real server processes on this machine: started, watched and stopped together.

Each server runs until its standard input ends, which it does whatever way this process ends: no
server outlives it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from flexgroup.core.errors import UsageError
from flexgroup.load.processes import ChildProcess, ProcessFailedError

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 10.0
MOST_SERVERS = 64


class LocalServer(ChildProcess):
    """One server process."""

    is_cut = False
    """Whether it is cut off from the others."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        super().__init__(command, log=log)
        self.name = name
        self.log = log
        self.address = ""
        """The address is known when the server is ready."""

    def wait_until_ready(self) -> None:
        """Wait for the line in which the server says where it listens."""
        try:
            line = self.read_line(START_SECONDS)
        except ProcessFailedError:
            raise UsageError(f"{self.name} did not start: {self.last_log_line()}") from None
        self.address = str(json.loads(line)["address"])

    def cut(self, is_cut: bool) -> None:
        """Cut the server off from the others, or end that; it has to be `--cut-by-input`."""
        self.write_line("cut" if is_cut else "mend")
        self.is_cut = is_cut

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self.end()

    def last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        if not lines:
            return f"it said nothing within {START_SECONDS:g} s"
        return lines[-1].removeprefix("flexgroup: error: ")


class LocalCluster:
    """Servers that start on entry and stop on exit; each has a file for its log in a folder."""

    def __init__(
        self,
        size: int,
        directory: Path,
        options: Sequence[str] = (),
        first_port: int | None = None,
        keeps_data: bool = False,
        attacks: Mapping[int, str] | None = None,
    ) -> None:
        if not 1 <= size <= MOST_SERVERS:
            raise UsageError(f"{size} servers cannot be started here; give 1 to {MOST_SERVERS}")
        self.servers: list[LocalServer] = []
        self._size = size
        self._directory = directory
        self._options = list(options)
        """The options of `flexgroup server` that all servers are given."""
        self._first_port = first_port
        self._keeps_data = keeps_data
        """Each server has a folder for its data, beside its log."""
        self._attacks = attacks or {}
        """Which servers lie, and how, in trials."""

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self.servers.append(self._start(0, []))
            self.servers[0].wait_until_ready()
            oldest = ["--join", self.servers[0].address]
            for number in range(1, self._size):
                self.servers.append(self._start(number, oldest))
            for server in self.servers[1:]:
                server.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start_again(self, number: int) -> LocalServer:
        """Start a server that has ended once more, where it was, and join it to those that run."""
        before = self.servers[number]
        if before.is_running:
            raise UsageError(f"{before.name} is running")
        others = [server.address for server in self.servers if server.is_running]
        joining = [word for address in others for word in ("--join", address)]
        server = self._start(number, joining, before.address)
        try:
            server.wait_until_ready()
        except BaseException:
            server.end()
            raise
        self.servers[number] = server
        return server

    def _start(self, number: int, joining: Sequence[str], address: str = "") -> LocalServer:
        name = f"server-{number}"
        port = 0 if self._first_port is None else self._first_port + number
        address = address or f"{HOST}:{port}"
        command = [sys.executable, "-m", "flexgroup.cli.main", "server", "--json"]
        command += ["--until-input-ends", "--name", name, "--listen", address, *joining]
        if self._keeps_data:
            command += ["--data", str(self._directory / name)]
        if number in self._attacks:
            command += ["--attack", self._attacks[number], "--yes-this-server-lies", name]
        return LocalServer(name, [*command, *self._options], self._directory / f"{name}.log")

    def stop(self) -> None:
        """Stop the youngest first, since the oldest leads the changes that their leaving makes."""
        for server in reversed(self.servers):
            server.end(STOP_SECONDS)
        self.servers.clear()
