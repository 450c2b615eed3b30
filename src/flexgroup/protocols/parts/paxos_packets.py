"""The packets by which replicas have batches of messages chosen, in the words of Lamport 2001, and
what a correct replica may send in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from flexgroup.core.message import (
    Message,
    Packet,
    Stamp,
    clock_of,
    payload_size,
    process_of,
    stamp,
)
from flexgroup.protocols.parts.timestamps import FAR

LARGE = 1 << 20
"""How many bytes of messages are told at a time, unless one slot has more."""


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
class Ask(Packet):
    """I lack what is chosen for these slots, from `first` to before `last`."""

    first: int
    last: int


@final
class Learn(Packet):
    """This batch, accepted in this ballot, is chosen for this slot."""

    ballot: Stamp
    slot: int
    messages: tuple[Message, ...]


@final
class More(Packet):
    """You lack these slots as well, from `first` to before `last`: ask for them when you have those
    before."""

    first: int
    last: int


@final
class Stable(Packet):
    """All replicas, you as well, have delivered the slots below this one."""

    slot: int


@final
class Accepting(Packet):
    """The last vote for a slot, in stable storage under the number of the slot."""

    ballot: Stamp
    messages: tuple[Message, ...]


@final
class Restarted(Packet):
    """I have crashed and started again: what was sent to me may be lost."""


def are_votes(votes: tuple[int, ...], messages: tuple[Message, ...]) -> bool:
    """Tell whether these are votes as `Ledger.votes_since` gives them."""
    return len(votes) % 3 == 0 and max(votes, default=0) < FAR and sum(votes[2::3]) == len(messages)


def together(messages: list[Message]) -> Request | Requests:
    """One packet that asks for all of these."""
    return Requests(tuple(messages)) if len(messages) > 1 else Request(messages[0])


def next_ballot(ballot: Stamp, owner: int) -> Stamp:
    """A ballot of this owner, above that one."""
    return stamp(clock_of(ballot) + 1, owner)


def at_a_time(entries: list[tuple[int, Packet]], last: int) -> list[Packet]:
    """What goes at a time to a replica that lacks these slots, and those up to before `last`."""
    sent: list[Packet] = []
    size = 0
    first = last
    for slot, entry in entries:
        assert isinstance(entry, Accepting)
        sent.append(Learn(entry.ballot, slot, entry.messages))
        size += sum(map(payload_size, entry.messages))
        first = slot + 1
        if size >= LARGE:
            break
    return [*sent, More(first, last)] if first < last else sent


def is_ballot(
    ballot: Stamp, owner: int, process: int, group: tuple[int, ...], promised: Stamp
) -> bool:
    """Tell whether this member owns the ballot; of its own, the process has promised all."""
    if process_of(ballot) != owner or owner not in group or ballot >= FAR:
        return False
    return owner != process or ballot <= promised


def may_send(
    sender: int,
    packet: Packet,
    process: int,
    group: tuple[int, ...],
    promised: Stamp,
    is_ours: Callable[[Message], bool],
    has_votes: Callable[[int], bool],
) -> bool:
    """Tell whether the sender is another replica of the group, and may send this to one that has
    promised that ballot, tells which messages are for the group, and which votes it has."""

    if sender not in group or sender == process:
        return False
    if isinstance(packet, Accept | Chosen | Learn) and packet.slot >= FAR:
        return False
    if isinstance(packet, Accept | Learn | Requests) and not all(map(is_ours, packet.messages)):
        return False
    if isinstance(packet, Accept) and not has_votes(packet.stable):
        return False
    if isinstance(packet, Stable):
        return has_votes(packet.slot)
    if isinstance(packet, Promise) and not (
        are_votes(packet.votes, packet.messages) and all(map(is_ours, packet.messages))
    ):
        return False
    if isinstance(packet, Prepare | Accept | Chosen):
        return is_ballot(packet.ballot, sender, process, group, promised)
    if isinstance(packet, Promise | Accepted):
        return is_ballot(packet.ballot, process, process, group, promised)
    if isinstance(packet, Reject | Learn):
        owner = process_of(packet.ballot)
        return is_ballot(packet.ballot, owner, process, group, promised)
    return isinstance(packet, Ask | More | Requests | Restarted)
