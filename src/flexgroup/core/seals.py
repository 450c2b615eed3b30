"""Seals: proof, for whoever gets to see it, of what a process has said.

A world attests who sent a packet, but only to the one that receives it. What is quoted to others
later, as votes are in a certificate, carries a *seal*: a few bytes that nobody but the process
itself can have made, about a packet of a layer. A layer asks `Layer.seal` for one, and
`Layer.is_sealed` whether one is genuine. Both are questions, which the *notary* answers that the
world gives to each process; it is no state of the layer, and copies of a process share it.
"""

from __future__ import annotations

from flexgroup.core.message import Packet


class Notary:
    """Makes the seals of one process, and tells whether those of others are genuine.

    A seal is about `Codec.statement` of a packet, so that it cannot pass for one of another layer
    or of another type.
    """

    def seal(self, layer: int, packet: Packet) -> bytes:
        """The seal of this process on a packet of this layer of its stack."""
        raise NotImplementedError

    def is_sealed(self, process: int, layer: int, packet: Packet, seal: bytes) -> bool:
        """Whether a process, which need not exist, has sealed this; the seal may be any bytes."""
        raise NotImplementedError
