"""xAMP atLeast: so many destinations get a message that one of them got, even if the sender fails.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation.

`xamp-at-least/2` ends when two destinations have responded, `xamp-at-least` when all have. Every
receiver runs tr-w-resp as well, without sending the first time: if responses are missing
when its time is up, it sends the message to those that are missing (`parts.at_least`).

Assumes nothing of the channels, and that processes fail by stopping and are suspected then. If a
correct destination delivers a message, so many do as are waited for, or all that have not
crashed. No order.

Differs from the paper:
- Responses are seen by all participants because they are sent to each: there is no common medium.
- Tries are not counted: a process goes on until it suspects who does not respond.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.at_least import AtLeast
from flexgroup.protocols.parts.tr_w_resp import Data, Response


class XampAtLeast(Layer):
    __slots__ = ("at_least",)

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = tuple([str(nr) for nr in range(1, 10)])

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.at_least = AtLeast(max([int(option) for option in context.options], default=0))

    def on_cast(self, m: Message) -> None:
        self.at_least.cast(self, m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        self.at_least.on_packet(self, sender, packet)

    def on_timer(self, name: str) -> None:
        self.at_least.transmissions.on_timer(self, name)

    def on_notice(self, notice: Notice) -> None:
        self.at_least.transmissions.on_notice(self, notice)
        self.pass_on(notice)
