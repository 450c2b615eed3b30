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
            self._start().wait_until_ready()
            others = [self._start() for _ in range(1, self._size)]
            for server in others:
                server.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _start(self) -> LocalServer:
        number = len(self.servers)
        name = f"server-{number}"
        joining = ["--join", self.servers[0].address] if self.servers else []
        port = 0 if self._first_port is None else self._first_port + number
        command = [sys.executable, "-m", "flexgroup.cli.main", "server", "--json"]
        command += ["--until-input-ends", "--name", name, "--listen", f"{HOST}:{port}", *joining]
        if self._keeps_data:
            command += ["--data", str(self._directory / name)]
        if number in self._attacks:
            command += ["--attack", self._attacks[number], "--yes-this-server-lies", name]
        server = LocalServer(name, [*command, *self._options], self._directory / f"{name}.log")
        self.servers.append(server)
        return server

    def stop(self) -> None:
        """Stop the youngest first, since the oldest leads the changes that their leaving makes."""
        for server in reversed(self.servers):
            server.end(STOP_SECONDS)
        self.servers.clear()
