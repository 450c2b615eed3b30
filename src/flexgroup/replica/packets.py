"""What the replicas of an object send each other, as MessagePack."""

from __future__ import annotations

from msgspec import MsgspecError, Struct
from msgspec.msgpack import Decoder, Encoder

from flexgroup.core.errors import PeerError


class Call(Struct, array_like=True, tag=0, gc=False):
    """A call of an ordered method."""

    number: int
    """Calls of one session are counted from 1 on."""
    answered: int
    """All calls of the session below this number are answered, so nobody asks for them again."""
    method: str
    """Empty for a call that does nothing but wait for its place in the order."""
    arguments: bytes


class Ready(Struct, array_like=True, tag=1, gc=False):
    """The sender has the state, and its calls are those of this session."""

    session: str
    teller: str
    """Who has told the state: this counts only as long as that one is still a member."""
    view: int
    """The state was that at the place of this view."""


class Farewell(Struct, array_like=True, tag=2, gc=False):
    """The sender leaves for good: nobody will call in its session again."""


class Part(Struct, array_like=True, tag=3, gc=False):
    """A part of a piece of the state, for one newcomer; the first piece is a `Ledger`."""

    newcomer: str
    view: int
    """The state is that at the place of this view of the group."""
    number: int
    """Parts are counted from 0 on."""
    data: bytes
    ends_piece: bool
    ends_state: bool = False


class Refused(Struct, array_like=True, tag=4, gc=False):
    """There is no state for this newcomer, because telling it has failed at who has it."""

    newcomer: str
    reason: str


class Session(Struct, array_like=True):
    """What is known of the calls of one replica, however often it comes back."""

    process: str
    """The member that calls in it, or did."""
    answered: int = 1
    outcomes: dict[int, bytes] = {}
    """Those of the calls that were applied and that the caller may not know of yet."""


class Ledger(Struct, array_like=True):
    """What replicas know beside the state of the object, and have in common like that."""

    state: str
    """The state that is meant: another one, if all who had it are gone and it began anew."""
    members: list[str] = []
    """Those that have the state, in the order in which they came to it."""
    sessions: dict[str, Session] = {}
    departed: list[str] = []
    """The sessions without a member, in the order in which they lost it."""
    dropped: int = 0
    """How many of them are not known any more."""
    tellers: dict[str, str] = {}
    """Who is to tell each newcomer the state."""
    since: dict[str, int] = {}
    """The first view that each member of the group is known in, newcomers as well."""
    methods: list[str] = []
    """The ordered methods of the object, with their parameters: the same at all replicas."""


UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)

Packet = Call | Ready | Farewell | Part | Refused

_encoder = Encoder()
_packets: Decoder[Packet] = Decoder(Packet)
_ledgers = Decoder(Ledger)


def encode(packet: Packet | Ledger) -> bytes:
    return _encoder.encode(packet)


def decode(data: bytes) -> Packet:
    try:
        return _packets.decode(data)
    except UNREADABLE as error:
        raise PeerError(f"this is nothing that a replica sends: {error}") from None


def decode_ledger(data: bytes) -> Ledger:
    try:
        return _ledgers.decode(data)
    except UNREADABLE as error:
        raise PeerError(f"this is not how a state begins: {error}") from None
