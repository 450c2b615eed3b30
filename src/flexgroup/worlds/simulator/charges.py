"""What seals cost: processors make and check them, which takes time before anything is sent."""

from __future__ import annotations

from flexgroup.core.codec import Codec
from flexgroup.core.host import Host
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.message import Packet
from flexgroup.worlds.simulator.network import Network


class Charges:
    """The prices of a network, and the processes that pay them once they are there."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.hosts: list[Host] = []


class PricedNotary(KeyedNotary):
    """The notary of a process that is busy while it makes a seal or checks one."""

    def __init__(self, process: int, codec: Codec, charges: Charges) -> None:
        super().__init__(process, codec)
        self._charges = charges

    def seal(self, layer: int, packet: Packet) -> bytes:
        self._pay(self._charges.network.seal_cost)
        return super().seal(layer, packet)

    def is_sealed(self, process: int, layer: int, packet: Packet, seal: bytes) -> bool:
        self._pay(self._charges.network.check_cost)
        return super().is_sealed(process, layer, packet, seal)

    def _pay(self, cost: int) -> None:
        if self._charges.hosts:
            self._charges.hosts[self.process].time += cost
