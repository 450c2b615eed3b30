"""Member processes with closed loops, from outside: begun and ended at the same moment.

A member process prints `ready`, reads a line with the monotonic times between which messages
count, and prints one JSON document after the second.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from flexgroup.core.errors import FlexGroupError
from flexgroup.load.closed_loops import ClosedLoops, Load, cpu_seconds

WARM_UP = 1.0
"""Seconds before messages count."""

PATIENCE = 60.0
"""Seconds that a process may take to answer."""

STEP = 0.1


class ProcessFailedError(FlexGroupError):
    """A process of a measurement does not answer."""


class LoadProcess:
    """A process that takes part; its input ends when this process does."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None) -> None:
        self.command = command
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # so that Ctrl-C reaches only us
        )
        self._said = b""

    def hear(self, seconds: float = PATIENCE) -> str:
        """The next line that it prints."""
        output = self.process.stdout
        assert output is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._said:
            readable, _, _ = select.select([output], [], [], max(0.0, until - time.monotonic()))
            more = os.read(output.fileno(), 1 << 16) if readable else b""
            if not more:
                raise ProcessFailedError(f"this does not answer: {' '.join(self.command)}")
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def started(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
) -> Iterator[list[LoadProcess]]:
    """Processes that have said that they are ready; ended afterwards."""
    processes: list[LoadProcess] = []
    try:
        for command in commands:
            processes.append(LoadProcess(command, environment))
        for process in processes:
            process.hear()
        yield processes
    finally:
        for process in processes:
            process.end()


def measure(
    members: Sequence[LoadProcess],
    seconds: float,
    servers: Callable[[], float],
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[Load, float]:
    """What the members saw, and the processor time of the servers, which the function tells."""
    pids = [member.process.pid for member in members]
    begin = time.monotonic() + WARM_UP
    end = begin + seconds
    for member in members:
        member.tell(f"{begin} {end}")
    time.sleep(begin - time.monotonic())
    used, used_by_servers = cpu_seconds(pids), servers()
    while (left := end - time.monotonic()) > 0:
        progress(1 - left / seconds)
        time.sleep(min(left, STEP))
    used_by_servers = servers() - used_by_servers
    total = Load(cpu=cpu_seconds(pids) - used + used_by_servers)
    for member in members:
        total.add(Load.from_json(json.loads(member.hear())))
    return total, used_by_servers


# In a member process.


def wait_for_the_word(loops: ClosedLoops) -> tuple[list[bytes], float]:
    """The first messages to send, and when to end."""
    print("ready", flush=True)
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)  # whoever started this process has ended
    begin, end = map(float, line.split())
    return loops.begin(begin, end), end


def report(loops: ClosedLoops) -> None:
    print(json.dumps(loops.load.to_json()), flush=True)
