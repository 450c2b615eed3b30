"""Seals where all processes are run by one world: hashes with a key for each process.

Nothing is secret in there. That a seal cannot be forged rests on the notary being asked: it makes
those of its own process only, and no layer sees a key. So runs can be repeated to the byte.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from flexgroup.core.codec import Codec
from flexgroup.core.message import Packet
from flexgroup.core.seals import Notary

SEAL_BYTES: Final = 16


class KeyedNotary(Notary):
    """The notary of one process in a world that runs all of them."""

    def __init__(self, process: int, codec: Codec) -> None:
        self.process = process
        self._codec = codec

    def seal(self, layer: int, packet: Packet) -> bytes:
        return self._seal_of(self.process, layer, packet)

    def is_sealed(self, process: int, layer: int, packet: Packet, seal: bytes) -> bool:
        return seal == self._seal_of(process, layer, packet)

    def _seal_of(self, process: int, layer: int, packet: Packet) -> bytes:
        statement = self._codec.statement(layer, packet)
        key = b"process %d" % process
        return blake2b(statement, digest_size=SEAL_BYTES, key=key).digest()
