"""The way out of a process: what is written leaves at once, and in the order of writing.

An event loop may gather what is written and send it at the end of its round, to one connection
after the other in no particular order, as uvloop does. Then what somebody waits for is sent after
what nobody waits for. So the system is asked directly, as long as nothing is waiting to be sent.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final, final

NO_FILE: Final = -1

_write: Final = os.write  # compiled code looks it up anew otherwise, for every frame


@final
class SocketWriter:
    """Writes to one connection."""

    __slots__ = ("_file", "_is_waiting", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._file = NO_FILE
        self._is_waiting = False
        """Whether the event loop may still have something to send."""
        end = transport.get_extra_info("socket")
        is_encrypted = transport.get_extra_info("sslcontext") is not None
        if end is not None and not is_encrypted and sys.platform != "win32":
            self._file = end.fileno()

    def close(self) -> None:
        """Write to the transport only, since the file's number may be another's from now on."""
        self._file = NO_FILE

    def write(self, data: bytes) -> None:
        transport = self._transport
        if self._is_waiting:
            self._is_waiting = transport.get_write_buffer_size() > 0
        if self._file != NO_FILE and not self._is_waiting:
            try:
                sent = _write(self._file, data)
            except OSError:  # no room, or broken, which the event loop will find out as well
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        self._is_waiting = True
        transport.write(data)
