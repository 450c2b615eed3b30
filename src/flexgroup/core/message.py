"""Messages and packets: what applications multicast, and what protocols exchange.

A *message* is what a layer is asked to multicast and what it delivers. A *packet* is
what the layer at one process sends to the same layer at another; it may carry a
message. Both are immutable.

A message's identity is the pair (origin, seq): the process that multicast it and
how many it had multicast before. Protocols use identities as keys millions of times
a second, so the pair is packed into one integer that hashes fast, sorts by seq and
then by origin, and looks the same in every process whatever its hash seed. (The origin is
in the low bits because those choose the place in a dict: messages that are under way at the
same time have similar seqs and different origins.)
Timestamps, pairs of a logical clock and a process, are packed in the same way.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, dataclass_transform, final

from mypy_extensions import mypyc_attr

from flexgroup.core.fields import Fields, derive

# Integers, whose names tell the codec and the scripts what they mean.
MessageId = Annotated[int, "MessageId"]
Stamp = Annotated[int, "Stamp"]

NO_MESSAGE: Final = -1

ORIGIN_BITS: Final = 20
ORIGIN_MASK: Final = (1 << 20) - 1

PROCESS_BITS: Final = 20
PROCESS_MASK: Final = (1 << 20) - 1


def message_id(origin: int, seq: int) -> MessageId:
    return (seq << ORIGIN_BITS) | origin


def origin_of(identity: MessageId) -> int:
    return identity & ORIGIN_MASK


def seq_of(identity: MessageId) -> int:
    return identity >> ORIGIN_BITS


def name_of(identity: MessageId) -> str:
    """The identity as people write it: `origin.seq`."""
    return f"{origin_of(identity)}.{seq_of(identity)}"


def stamp(clock: int, process: int) -> Stamp:
    """The pair (clock, process) as one integer that compares as the pair does."""
    return (clock << PROCESS_BITS) | process


def clock_of(timestamp: Stamp) -> int:
    return timestamp >> PROCESS_BITS


def process_of(timestamp: Stamp) -> int:
    return timestamp & PROCESS_MASK


@dataclass_transform(frozen_default=True)
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Packet:
    """What a layer sends to its peers; subclasses carry the paper's message names.

    A subclass declares its fields as annotations: `int`, `str`, `bytes`, `Message`, `Packet`,
    `MessageId`, `Stamp`, or a tuple of any number of integers, bytes, messages or packets, such as
    `tuple[int, ...]`. Everything else follows from them (`flexgroup.core.fields`). A packet within
    another one is of the same layer.
    """

    __slots__ = ()

    FIELDS: ClassVar[Fields] = ()
    """The fields of a subclass and their kinds, for the codec; derived."""

    PROTECTED: ClassVar[bool] = False
    """Over `protected-memory`, it is written where only the writer that its target permits may."""

    def __init_subclass__(cls) -> None:
        derive(cls, kinds=True)

    def detail(self) -> str | None:
        """What the trace says of this packet beyond its type: a small JSON object."""
        return None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return all(getattr(self, name) == getattr(other, name) for name, _ in self.FIELDS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name, _ in self.FIELDS))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self.FIELDS)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[type[Packet], tuple[object, ...]]:
        """Compiled, it could be pickled without this, but not unpickled."""
        return type(self), tuple([getattr(self, name) for name, _ in self.FIELDS])


@final
@mypyc_attr(acyclic=True)
class Message:
    """A message to a set of processes, listed in ascending order without repetition.

    The payload is the application's bytes or, when a layer further up asked for the
    multicast, that layer's packet: to the layers below, both are opaque.
    """

    __slots__ = ("destinations", "id", "payload")

    def __init__(
        self, identity: MessageId, destinations: tuple[int, ...], payload: bytes | Packet
    ) -> None:
        self.id = identity
        self.destinations = destinations
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Message)
            and self.id == other.id
            and self.destinations == other.destinations
            and self.payload == other.payload
        )

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Message({name_of(self.id)} to {self.destinations})"

    def __reduce__(self) -> tuple[type[Message], tuple[int, tuple[int, ...], bytes | Packet]]:
        return Message, (self.id, self.destinations, self.payload)


def payload_size(m: Message) -> int:
    """How many bytes of the application a message carries, itself or in the packet of a layer."""
    payload = m.payload
    return len(payload) if isinstance(payload, bytes) else _carried_size(payload)


def _carried_size(packet: Packet) -> int:
    size = 0
    for name, _ in packet.FIELDS:
        value = getattr(packet, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Message):
                size += payload_size(item)
            elif isinstance(item, Packet):
                size += _carried_size(item)
    return size
