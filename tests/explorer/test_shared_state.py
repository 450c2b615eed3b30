"""A layer whose copies share something is told so, instead of a run that does not happen."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.core.layer import Layer, Stored
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.catalogue import Fault, Protocol, StackPlan
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope


class Letter(Packet):
    m: Message


class Got(Packet):
    message: MessageId


class Back(Packet):
    pass


class Nested(Layer):
    """Sends again what a process that has started again did not confirm."""

    NEEDS = frozenset({Guarantee.RELIABLE})
    GIVES = frozenset({Guarantee.RELIABLE})
    PACKETS = (Letter, Got, Back)
    STORED = (Letter,)

    def __init__(self, context: object) -> None:
        super().__init__(context)  # type: ignore[arg-type]
        self.lacking: dict[MessageId, set[int]] = {}
        self.sent: list[Message] = []

    def on_cast(self, m: Message) -> None:
        self.sent.append(m)
        self.lacking[m.id] = set(m.destinations)
        self.send(m.destinations, Letter(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Letter):
            self.save(packet)
            self.deliver(packet.m)
            self.send((sender,), Got(packet.m.id))
        elif isinstance(packet, Got):
            self.lacking[packet.message].discard(sender)
        else:
            for m in self.sent:
                if sender in self.lacking[m.id]:
                    self.send((sender,), Letter(m))

    def on_restart(self, stored: Stored) -> None:
        self.send(tuple(j for j in range(self.size) if j != self.process), Back())


def test_a_container_in_a_container_is_named_as_what_may_be_shared() -> None:
    row = Protocol("nested", Nested, "shares", "this test", faults=(Fault.CRASHES, Fault.RESTARTS))
    scope = Scope(2, (PlannedCast(0, (1,)),), bounds=Bounds(crashes=1, restarts=1), crashing=(1,))
    with pytest.raises(UsageError, match="a list, dict or set inside of another is shared"):
        explore(StackPlan.of(row), scope)
