"""The handoff of what is recorded, usually through a pipe to the process that writes the trace."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from flexgroup.trace.run import Run
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS, FrameReader, FrameWriter

log = logging.getLogger("flexgroup.server")

WRITER = "flexgroup.server.recording.trace_writer"
"""The module that the other process runs."""

PIPE_BYTES = 1 << 20
"""The pipe takes this much at a time, which makes three hundred thousand events a second."""


class RunBegan(Struct, frozen=True, array_like=True, tag=True):
    """A run has begun."""

    run: Run
    """Its row in `runs`, as far as it is known."""
    servers: tuple[str, ...]
    """Who records it, as file names have it, by process."""
    steps: int = 0
    """How much of the history of this server's process was recorded by one that was killed: what
    that has recorded from this step on is not so."""


class Events(Struct, frozen=True, array_like=True, tag=True):
    """Events of a run, as columns of a log, with the labels and destination sets that are new."""

    run: str
    columns: list[bytes]
    labels: list[tuple[str | None, str | None]]
    destination_sets: list[tuple[int, ...]]


class RunEnded(Struct, frozen=True, array_like=True, tag=True):
    """A run is over; these processes are not in the next configuration."""

    run: str
    missed: tuple[int, ...]


class ServerEnded(Struct, frozen=True, array_like=True, tag=True):
    """The server ends. The last of all servers has nobody to leave anything to."""

    is_last: bool


AnyHanded = RunBegan | Events | RunEnded | ServerEnded

_decoder = msgspec.msgpack.Decoder(AnyHanded)


def take_whole(received: FrameReader) -> Iterator[AnyHanded]:
    """Take what has arrived whole."""
    while (content := received.next_frame()) is not None:
        yield _decoder.decode(content)


class Handoff(Protocol):
    """Where what is recorded goes."""

    @property
    def waiting_bytes(self) -> int:
        """How much was put here and not taken yet."""

    def put(self, handed: AnyHanded) -> None: ...

    def push(self) -> None:
        """Hand over as much as is taken now."""

    def close(self) -> None:
        """Wait until everything is taken, and written."""


class Pipe(Handoff):
    """The pipe to the process that writes. What it has no room for is kept."""

    def __init__(self, directory: Path, server: str) -> None:
        command = [sys.executable, "-m", WRITER, str(directory), server]
        # In a process group of its own: Ctrl-C is for the server, which then has a few words to
        # say. In the same session, since Linux shares processors out among sessions first: in one
        # of its own, the writer would be worth as much as the server and all its clients together.
        self.writer = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
        assert self.writer.stdin is not None
        self._pipe = self.writer.stdin.fileno()
        os.set_blocking(self._pipe, False)
        if sys.platform == "linux":
            with suppress(OSError):  # beyond the limit of this user
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._frames = FrameWriter(MOST_BYTES_OF_SERVERS)
        self._waiting = bytearray()
        self._is_broken = False

    def put(self, handed: AnyHanded) -> None:
        if not self._is_broken:
            self._waiting += self._frames.frame(msgspec.msgpack.encode(handed))

    @property
    def waiting_bytes(self) -> int:
        return len(self._waiting)

    def push(self) -> None:
        try:
            while self._waiting:
                taken = os.write(self._pipe, self._waiting[:PIPE_BYTES])
                del self._waiting[:taken]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._is_broken = True
            self._waiting.clear()
            log.error("the trace is not written any more")

    def close(self) -> None:
        os.set_blocking(self._pipe, True)
        self.push()
        assert self.writer.stdin is not None
        self.writer.stdin.close()
        self.writer.wait()
