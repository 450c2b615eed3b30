"""Real servers for tests: each a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

LAST_RESORT = 240.0
"""Seconds after which a test gives up waiting for what should have happened long ago."""


class ServerProcess:
    """`flexgroup server`, started and ready."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *options: str,
        wait: bool = True,
        listen: str = "127.0.0.1:0",
        inside: tuple[str, ...] = (),
    ) -> None:
        """`inside` is a command that runs the server somewhere else, as in a namespace."""
        self.name = name
        self.log = folder / f"{name}.log"
        self._log = self.log.open("ab")
        self.process = subprocess.Popen(
            [
                *inside, sys.executable, "-m", "flexgroup.cli.main", "server", "--name", name,
                "--listen", listen, "--json", *options,
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
        )  # fmt: skip
        self.address = ""
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LAST_RESORT)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.kill()
            raise AssertionError(f"{self.name} did not start:\n{self.log.read_text()}")
        self.address = json.loads(line)["address"]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self.process.wait()

    def suspend(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """In good order; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LAST_RESORT)

    def memory(self) -> int:
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()


class Cluster:
    """Servers that know each other."""

    def __init__(self, folder: Path, size: int = 3, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.servers: list[ServerProcess] = []
        try:
            for _ in range(size):
                self.add()
        except BaseException:
            self.end()
            raise

    def add(self, *options: str, through: int = 0) -> ServerProcess:
        name = f"s{len(self.servers) + 1}"
        join = ("--join", self.servers[through].address) if self.servers else ()
        server = ServerProcess(name, self.folder, *join, *self.options, *options)
        self.servers.append(server)
        return server

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    def stop(self) -> list[int]:
        """All of them, one after another and in good order."""
        return [server.stop() for server in reversed(self.servers)]

    def end(self) -> None:
        for server in self.servers:
            server.end()

    def logs(self) -> str:
        """What the servers said, except of those who only ask what they believe."""
        return "\n".join(
            "\n".join([f"== {s.name}", *(line for line in lines if "client=observer" not in line)])
            for s in self.servers
            for lines in [s.log.read_text().splitlines()]
        )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()
        if error is not None:
            error.add_note(self.logs()[-6000:])
