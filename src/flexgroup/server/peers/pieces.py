"""How frames leave for another server, and come in: beats go first, and large frames in pieces.

What says that a server is alive must not wait behind everything that it has to send. So frames wait
here, and not in the buffers of the event loop and of the system, where nothing overtakes them.
"""

from __future__ import annotations

import socket
from typing import Final, final

from flexgroup.core.errors import PeerError
from flexgroup.server.connection import Connection
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS

BEGUN: Final = 4
ENDED: Final = 5
"""The kinds of frames that hold a piece of another frame: more pieces follow, or none."""

PIECE_BYTES: Final = 32 << 10
"""How much is handed over at once, and so the most that a beat has to wait for here."""

UNSENT_BYTES = 32 << 10
"""How much the system takes before it has sent it."""

_BEGUN_HEAD: Final = bytes([BEGUN])
_ENDED_HEAD: Final = bytes([ENDED])

Frame = tuple[bytes, bytes | bytearray]
"""What a frame begins with, and the rest of it."""


@final
class Outgoing:
    """The frames that go out on a link, in their order, as the other end takes them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.gathered: list[Frame] = []
        """What goes out with the next `flush`."""
        self._begun = 0
        """How many bytes of the first of these have gone out in pieces."""
        self._left = 0
        """How many frames have gone out."""
        self._watched = 0
        """How many had gone out with the frame whose wait is measured; 0: none is."""
        self._watched_since = 0.0
        self._waited = 0.0
        """How long the frame had to wait that was measured last."""
        connection.transport.set_write_buffer_limits(high=PIECE_BYTES)
        end = connection.transport.get_extra_info("socket")
        option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # not every system has it
        if end is not None and option is not None:
            end.setsockopt(socket.IPPROTO_TCP, option, UNSENT_BYTES)

    def overtake(self, frame: Frame) -> None:
        """Send a frame before everything that waits here."""
        self._connection.send_all([frame])

    def holds(self, frame: Frame) -> bool:
        """Whether a large frame has not left yet, which nobody need repeat then."""
        return len(frame[1]) > PIECE_BYTES and frame in self.gathered

    def flush(self) -> None:
        """Send what there is room for. The rest follows with the next call, at the latest when
        there is room again."""
        if not self._connection.writable:
            return
        size = 0
        for _, data in self.gathered:
            size += len(data)
        if size <= PIECE_BYTES and not self._begun:
            gathered, self.gathered = self.gathered, []
            self._left += len(gathered)
            self._connection.send_all(gathered)
        else:
            self._send(False)

    def waiting(self, now: float) -> float:
        """How many seconds or so a frame waits here at present, if this is asked often."""
        if not self.gathered:
            self._watched = 0
            self._waited = 0.0
            return 0.0
        if self._left >= self._watched:
            if self._watched:
                self._waited = now - self._watched_since
            self._watched = self._left + len(self.gathered)
            self._watched_since = now
        return max(self._waited, now - self._watched_since)

    def finish(self) -> None:
        """Send everything: nothing else is going to."""
        self._send(True)

    def _send(self, is_all: bool) -> None:
        """Send frames, about as much as a piece at once, while there is room or all the same."""
        connection = self._connection
        gathered = self.gathered
        sent = 0
        while sent < len(gathered) and (is_all or connection.writable) and connection.is_open:
            together: list[Frame] = []
            size = 0
            while sent < len(gathered) and size < PIECE_BYTES:
                frame = gathered[sent]
                if self._begun or len(frame[1]) > PIECE_BYTES:
                    frame = self._next_piece(*frame)
                together.append(frame)
                size += len(frame[1])
                if not self._begun:
                    sent += 1
            connection.send_all(together)
        del gathered[:sent]
        self._left += sent

    def _next_piece(self, head: bytes, data: bytes | bytearray) -> Frame:
        begun = self._begun
        piece = data[begun : begun + PIECE_BYTES]
        self._begun = begun + len(piece)
        if self._begun == len(data):
            self._begun = 0
            return _ENDED_HEAD, piece
        return (_BEGUN_HEAD if begun else _BEGUN_HEAD + head), piece


@final
class Pieces:
    """What has come of a frame that comes in pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, content: bytes) -> bytes:
        """The whole frame, if this was its last piece; before that, nothing."""
        self._data += memoryview(content)[1:]
        if len(self._data) > MOST_BYTES_OF_SERVERS:
            raise PeerError(
                f"a frame of over {MOST_BYTES_OF_SERVERS} bytes in pieces; no more are accepted"
            )
        if content[0] == BEGUN:
            return b""
        whole = bytes(self._data)
        self._data = bytearray()
        if not whole:
            raise PeerError("a server sent an empty frame in pieces")
        return whole
