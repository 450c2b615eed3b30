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


# Whose work a packet is, where it arrives and where it is sent.
OF_PROCESSORS: Final = 0
ONE_SIDED: Final = 1
COMPLETION: Final = 2


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Transmission:
    """A packet on its way, and what a journal says of it: the same for all who receive it."""

    __slots__ = (
        "about_the_same",
        "depth",
        "depths",
        "header_bytes",
        "label",
        "message",
        "others",
        "packet",
        "payload_bytes",
        "work_of",
    )

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.message: MessageId = NO_MESSAGE
        """The message that the packet is about, the first of several, or NO_MESSAGE."""
        self.others: tuple[MessageId, ...] = ()
        """The other messages that it is about."""
        self.about_the_same = False
        """Whether it names no message, and is about those of the packet upon which it is sent."""
        self.header_bytes = 0
        self.payload_bytes = 0
        self.label = NO_LABEL
        """The number under which the journal keeps the type and the detail of the packet."""
        self.depth = 0
        """How many communication steps, this one included, led here from the multicast."""
        self.depths: tuple[int, ...] = ()
        """The same for each of the other messages."""
        self.work_of = OF_PROCESSORS
        """Which of its ends need no processor: ONE_SIDED where it arrives, COMPLETION both."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Keeps the history of each process of a run; a subclass says how."""

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
        """Something of another kind happens, which concerns no message."""
        raise NotImplementedError


BY_ADAPTER: Final = '{"by":"adapter"}'
"""A network adapter has sent the packet, whatever its processor did meanwhile."""


def send_detail(transmission: Transmission) -> str | None:
    """A packet has left."""
    return BY_ADAPTER if transmission.work_of == COMPLETION else transmission.packet.detail()


def timer_detail(level: int, name: str) -> str:
    """A timer of the layer at this level has run out."""
    return f'{{"level":{level},"name":"{name}"}}'


def choice_detail(level: int, name: str, chosen: int) -> str:
    """The world has chosen among the options that a layer offered."""
    return f'{{"level":{level},"name":"{name}","chosen":{chosen}}}'


def crash_detail(stores: int) -> str | None:
    """The process has crashed, after it wrote to stable storage so many times."""
    return f'{{"stored":{stores}}}' if stores else None


def view_detail(number: int, members: tuple[int, ...]) -> str:
    """The process has installed a view."""
    listed = ",".join([str(member) for member in members])
    return f'{{"members":[{listed}],"number":{number}}}'


def told_view_detail(number: int, members: tuple[int, ...]) -> str:
    """The process has been told of a view, which its stack may hold back."""
    return f'{view_detail(number, members)[:-1]},"told":true}}'


# A failure detector has changed its mind about a peer.
SUSPECTED: Final = '{"suspected":true}'
TRUSTED: Final = '{"suspected":false}'
