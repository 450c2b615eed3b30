"""Frames that no client should send: random bytes, broken structure, and valid nonsense."""

from __future__ import annotations

import random
import socket
import string
from struct import Struct

import msgspec

from flexgroup.wire import requests
from flexgroup.wire.frames import FrameReader, FrameWriter
from flexgroup.wire.requests import AnyFromClient, AnyFromServer, Hello, Welcome

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[AnyFromServer]).decode

HEADER = Struct(">II")

KINDS = (
    requests.Exists, requests.Create, requests.Destroy, requests.Join, requests.Attach,
    requests.Leave, requests.Info, requests.Send, requests.Credit, requests.Inspect,
)  # fmt: skip


class Fuzzer:
    """Makes frames; equal seeds make equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        alphabet = string.ascii_letters + "/ \0\u20ac\U0001f600"
        return "".join(self.random.choices(alphabet, k=self.random.choice((1, 3, 200))))

    def number(self) -> int:
        return self.random.choice((0, 1, 7, 2**31, 2**32 - 1, self.random.randrange(2**32)))

    def request(self) -> AnyFromClient:
        """Of the right types, about things that do not exist or are none of its business."""
        n, t, flip = self.number, self.text, self.random.random() < 0.5
        stack = self.random.choice(("skeen", "SKEEN SKEEN", "no-such", "fifo dcc/rv", t()))
        kind = self.random.choice(KINDS)
        if kind is requests.Create:
            # Names that are taken: thousands of new groups would be a load, not a trial.
            group = self.random.choice(("held", "open"))
            return requests.Create(n(), group, stack, t() if flip else None, flip, None)
        if kind is requests.Join:
            return requests.Join(n(), self.random.choice(("held", t())), t(), flip)
        if kind is requests.Send:
            handles = [n() for _ in range(self.random.choice((1, 2, 64)))]
            return requests.Send(handles, [b"x" * 50] * self.random.choice((0, 1, 1, 2, 50)))
        if kind is requests.Credit:
            return requests.Credit(n(), self.random.choice((1, 1000, 2**20 - 1)))
        if kind is requests.Leave:
            return requests.Leave(n(), n())
        if kind is requests.Inspect:
            return requests.Inspect(n())
        named = self.random.choice((requests.Exists, requests.Destroy, requests.Info))
        return named(n(), self.random.choice(("held", t())))

    def tolerable(self) -> bytes:
        """The content of a frame that a server answers, and need not like."""
        return _encode([self.request() for _ in range(self.random.choice((1, 1, 1, 5)))])

    def broken(self) -> bytes:
        """The content of a frame that is wrong somewhere."""
        content = bytearray(self.tolerable())
        way = self.random.randrange(6)
        if way == 0:
            return self.random.randbytes(self.random.choice((0, 1, 40, 4000)))
        if way == 1:
            del content[self.random.randrange(len(content)) :]
        elif way == 2:
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        elif way == 3:
            content += self.random.randbytes(3)
        elif way == 4:
            return b"\x91" * 5000 + b"\xc0"
        else:
            return b"\xc1" + self.random.randbytes(self.random.choice((0, 20)))
        return bytes(content)


class RawClient:
    """A connection without the library."""

    def __init__(self, address: str, greet: bool = True) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.writer = FrameWriter()
        self.reader = FrameReader()
        if greet:
            self.send(_encode([Hello(requests.VERSION, "fuzzer")]))
            welcome = self.receive()[0]
            assert isinstance(welcome, Welcome)
            self.writer.begin_at(welcome.session)

    def send(self, content: bytes) -> None:
        self.socket.sendall(self.writer.frame(content))

    def send_raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> list[AnyFromServer]:
        """The next frames; raises ConnectionError if there are none any more."""
        while True:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the server has closed the connection")
            self.reader.feed(data)
            frames = []
            while (content := self.reader.next_frame()) is not None:
                frames += _decode(content)
            if frames:
                return frames

    def is_closed_by_server(self) -> bool:
        """Waits for it."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()


def wrong_frames(fuzzer: Fuzzer) -> bytes:
    """Bytes that are no frame: too long, with a wrong number, sent twice, or cut short."""
    content = fuzzer.tolerable()
    way = fuzzer.random.randrange(3)
    if way == 0:
        return HEADER.pack(2**31, 0) + content
    if way == 1:
        return HEADER.pack(len(content), fuzzer.number()) + content
    return fuzzer.random.randbytes(60)
