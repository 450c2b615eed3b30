"""The journal: what hosts write down of a run, whoever keeps it and in whatever form.

A host tells its journal of every event in the history of its process: where it happened, at
which step of that history, and at which time of the world's clock. The trace is one journal
(`flexgroup.trace.recorder`); a list of events in memory is another. What an event's `detail`
says is put into words here, and nowhere else.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet

# The kinds of events by number; `flexgroup.trace.schema.KINDS` has their names in this order.
MULTICAST: Final = 0
SEND: Final = 1
RECEIVE: Final = 2
DELIVER: Final = 3
VIEW: Final = 4
SUSPECT: Final = 5
CRASH: Final = 6
RECOVER: Final = 7
TIMER: Final = 8
CHOICE: Final = 9

NO_LABEL: Final = 0


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Transmission:
    """A packet on its way, and what a journal says of it: the same for all who receive it."""

    __slots__ = ("depth", "header_bytes", "label", "message", "packet", "payload_bytes")

    def __init__(
        self,
        packet: Packet,
        message: MessageId = NO_MESSAGE,
        header_bytes: int = 0,
        payload_bytes: int = 0,
        label: int = NO_LABEL,
        depth: int = 0,
    ) -> None:
        self.packet = packet
        self.message = message
        """The message that the packet is about, or NO_MESSAGE."""
        self.header_bytes = header_bytes
        self.payload_bytes = payload_bytes
        self.label = label
        """The number under which the journal keeps the type and the detail of the packet."""
        self.depth = depth
        """How many communication steps, this one included, led here from the multicast."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Keeps the history of each process of a run.

    A subclass says what is done with messages, packets and deliveries, and in `other` what is
    done with events of all other kinds.
    """

    def label(self, packet: Packet) -> int:
        """A number for the type and the detail of a packet, by which `send` knows it again."""
        return NO_LABEL

    def multicast(self, process: int, step: int, time: int, m: Message) -> None:
        """The process, or the client, multicasts a message."""
        raise NotImplementedError

    def send(
        self, process: int, step: int, time: int, target: int, transmission: Transmission
    ) -> None:
        """A packet leaves for one target."""
        raise NotImplementedError

    def receive(
        self,
        process: int,
        step: int,
        time: int,
        sender: int,
        transmission: Transmission,
        sent: int,
        queued: int,
    ) -> None:
        """A packet is handled that its sender sent at its step `sent`, after it was `queued`."""
        raise NotImplementedError

    def deliver(self, process: int, step: int, time: int, m: Message, depth: int) -> None:
        """The process delivers a message to the application."""
        raise NotImplementedError

    def other(
        self, kind: int, process: int, step: int, time: int, peer: int, detail: str | None
    ) -> None:
        """Something happens that concerns no message."""
        raise NotImplementedError

    def timer(self, process: int, step: int, time: int, level: int, name: str) -> None:
        """A timer of the layer at this level runs out."""
        self.other(TIMER, process, step, time, 0, f'{{"level":{level},"name":"{name}"}}')

    def choice(
        self, process: int, step: int, time: int, level: int, name: str, chosen: int
    ) -> None:
        """The world chooses among the options that a layer offered."""
        detail = f'{{"level":{level},"name":"{name}","chosen":{chosen}}}'
        self.other(CHOICE, process, step, time, 0, detail)

    def suspicion(self, process: int, step: int, time: int, peer: int, suspected: bool) -> None:
        """A failure detector changes its mind about a peer."""
        detail = '{"suspected":true}' if suspected else '{"suspected":false}'
        self.other(SUSPECT, process, step, time, peer, detail)

    def view(
        self, process: int, step: int, time: int, members: tuple[int, ...], number: int
    ) -> None:
        """The process installs a view."""
        listed = ",".join([str(member) for member in members])
        detail = f'{{"members":[{listed}],"number":{number}}}'
        self.other(VIEW, process, step, time, 0, detail)

    def crash(self, process: int, step: int, time: int) -> None:
        self.other(CRASH, process, step, time, 0, None)

    def recover(self, process: int, step: int, time: int) -> None:
        self.other(RECOVER, process, step, time, 0, None)
