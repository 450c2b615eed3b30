"""xAMP reliable: all destinations get a message that one of them got, even if the sender fails.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation. It is what the
paper calls atLeast if the responses of all are waited for, and the base of its causal and atomic
multicast.

Assumes nothing of the channels, and that processes fail by stopping and are suspected then.
Guarantees that what a correct process multicasts, or delivers, all correct destinations deliver.
No order.

Differs from the paper as `xamp_at_least` does.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.at_least import AtLeast
from flexgroup.protocols.parts.tr_w_resp import Data, Response


class XampReliable(Layer):
    __slots__ = ("at_least",)

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.at_least = AtLeast(nr=0)

    def on_cast(self, m: Message) -> None:
        self.at_least.cast(self, m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        self.at_least.on_packet(self, sender, packet)

    def on_timer(self, name: str) -> None:
        self.at_least.transmissions.on_timer(self, name)

    def on_notice(self, notice: Notice) -> None:
        self.at_least.transmissions.on_notice(self, notice)
        self.pass_on(notice)
