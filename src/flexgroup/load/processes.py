"""Processes of a measurement; those of the members begin and end at the same moment.

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
from contextlib import contextmanager, suppress
from pathlib import Path

from flexgroup.core.errors import FlexGroupError
from flexgroup.load.closed_loops import ClosedLoops
from flexgroup.load.measurement import Load, cpu_seconds

WARM_UP = 1.0
"""How many seconds pass before messages count."""

PATIENCE = 60.0
"""How many seconds a process may take to answer."""

STEP = 0.1
"""How many seconds pass between two reports of progress."""


class ProcessFailedError(FlexGroupError):
    """A process of a measurement does not answer."""


class ChildProcess:
    """A process that is told and tells lines; its input ends whatever way this process ends."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        self.command = command
        errors = None if log is None else log.open("ab")
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,  # so that Ctrl-C reaches only us, and we end it in order
            )
        finally:
            if errors is not None:
                errors.close()
        self._read = b""

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def read_line(self, seconds: float = PATIENCE) -> str:
        """Return the next line that the process prints."""
        output = self.process.stdout
        assert output is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._read:
            readable, _, _ = select.select([output], [], [], max(0.0, until - time.monotonic()))
            more = os.read(output.fileno(), 1 << 16) if readable else b""
            if not more:
                raise ProcessFailedError(f"this command does not answer: {' '.join(self.command)}")
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def write_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end(self, patience: float = 0.0) -> None:
        """End the process; a while after the end of its input, if that has to be in good order."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def started(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
) -> Iterator[list[ChildProcess]]:
    """Start processes, give them when all are ready, and end them afterwards."""
    processes: list[ChildProcess] = []
    try:
        for command in commands:
            processes.append(ChildProcess(command, environment=environment))
        for process in processes:
            process.read_line()
        yield processes
    finally:
        for process in processes:
            process.end()


def measure(
    members: Sequence[ChildProcess],
    seconds: float,
    server_cpu: Callable[[], float],
    progress: Callable[[float], None] = lambda share: None,
    warm_up: float = WARM_UP,
) -> Load:
    """Let the members send for so many seconds, and return what they saw.

    `server_cpu` tells the processor time of all servers so far.
    """
    pids = [member.process.pid for member in members]
    begin = time.monotonic() + warm_up
    end = begin + seconds
    for member in members:
        member.write_line(f"{begin} {end}")
    time.sleep(begin - time.monotonic())
    by_members, by_servers = cpu_seconds(pids), server_cpu()
    while (left := end - time.monotonic()) > 0:
        progress(1 - left / seconds)
        time.sleep(min(left, STEP))
    total = Load(server_cpu=server_cpu() - by_servers, member_cpu=cpu_seconds(pids) - by_members)
    for member in members:
        total.add(Load.from_json(json.loads(member.read_line())))
    return total


# In a member process.


def wait_for_times() -> tuple[float, float]:
    """Return the times between which messages count, as soon as all members are ready."""
    print("ready", flush=True)
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)  # whoever started this process has ended
    begin, end = map(float, line.split())
    return begin, end


def wait_to_begin(loops: ClosedLoops) -> tuple[list[bytes], float]:
    """Return the first messages to send, and when to end, as soon as all members are ready."""
    begin, end = wait_for_times()
    return loops.begin(begin, end), end


def report(loops: ClosedLoops) -> None:
    print(json.dumps(vars(loops.load)), flush=True)
