"""The packets of Paxos."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import Message, Packet, Stamp


@final
class Request(Packet):
    """Have m chosen; a client sends it to all replicas, a replica to whom it takes for leader."""

    m: Message


@final
class Requests(Packet):
    """Have all of these chosen; a replica tells a new leader, or one that has started again."""

    messages: tuple[Message, ...]


@final
class Prepare(Packet):
    """Promise to take part in no lower ballot; I know what is chosen for all slots before first."""

    ballot: Stamp
    first: int


@final
class Promise(Packet):
    """I take part in no lower ballot, and accepted these batches for slots from `first` on.

    Both are as `Ledger.votes_since` gives them.
    """

    ballot: Stamp
    votes: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Accept(Packet):
    """Accept this batch for this slot, and forget slots below `stable`, which all have."""

    ballot: Stamp
    slot: int
    stable: int
    messages: tuple[Message, ...]


@final
class Accepted(Packet):
    """I accepted what you proposed for this slot, and have delivered all slots below `have`."""

    ballot: Stamp
    slot: int
    have: int


@final
class Reject(Packet):
    """I have promised this ballot, which is higher than yours."""

    ballot: Stamp


@final
class Chosen(Packet):
    """What was proposed for this slot in this ballot is chosen."""

    ballot: Stamp
    slot: int


@final
class Restarted(Packet):
    """I have crashed and started again: what was sent to me may be lost."""
