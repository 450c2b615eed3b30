"""What processes say to each other in order to close an epoch.

`flexgroup.protocols.parts.majority_agreement` tells what epochs, rounds and batches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, final

from flexgroup.core.message import INT, INTS, MESSAGE, Fields, Message, MessageId, Packet
from flexgroup.protocols.parts.destination_agreement import FAR

Batch = tuple[MessageId, ...]
"""Messages in the order in which they are delivered."""


def coordinator(round: int, size: int) -> int:
    """Of a round; the first is 1."""
    return (round - 1) % size


@final
class Copy(Packet):
    """A message that somebody may not have."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", MESSAGE),)

    def __init__(self, m: Message) -> None:
        self.m = m

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        """Such as a correct process may send to another."""
        destinations = self.m.destinations
        sound = sender < size and sender != to and len(destinations) > 0
        return sound and destinations[-1] < size


class InEpoch(Packet):
    """What is about one epoch."""

    __slots__ = ("epoch",)

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        """Such as a correct process may send to another."""
        return sender < size and sender != to and self.epoch < FAR


class InRound(InEpoch):
    """What is about one round of an epoch."""

    __slots__ = ("round",)

    def __init__(self, epoch: int, round: int) -> None:
        super().__init__(epoch)
        self.round = round

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        return super().is_sound(sender, to, size) and 1 <= self.round < FAR


@final
class Flush(InRound):
    """I am in this round, accepted this batch in that one (or 0), and know these places.

    `complete` is flat: a message and its sn, another message and its, ...
    """

    __slots__ = ("accepted", "accepted_in", "complete")
    FIELDS: ClassVar[Fields] = (
        ("epoch", INT),
        ("round", INT),
        ("accepted_in", INT),
        ("accepted", INTS),
        ("complete", INTS),
    )

    def __init__(
        self, epoch: int, round: int, accepted_in: int, accepted: Batch, complete: tuple[int, ...]
    ) -> None:
        super().__init__(epoch, round)
        self.accepted_in = accepted_in
        self.accepted = accepted
        self.complete = complete

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        sound = super().is_sound(sender, to, size) and coordinator(self.round, size) == to
        paired = len(self.complete) % 2 == 0
        known = max((*self.accepted, *self.complete), default=0) < FAR
        return sound and paired and known and self.accepted_in < self.round

    def places(self) -> Iterator[tuple[MessageId, int]]:
        return zip(self.complete[::2], self.complete[1::2], strict=True)


@final
class Close(InRound):
    """Enter the round that I coordinate."""

    __slots__ = ()
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("round", INT))

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        return super().is_sound(sender, to, size) and coordinator(self.round, size) == sender


@final
class Propose(InRound):
    """Accept this batch."""

    __slots__ = ("batch",)
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("round", INT), ("batch", INTS))

    def __init__(self, epoch: int, round: int, batch: Batch) -> None:
        super().__init__(epoch, round)
        self.batch = batch

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        sound = super().is_sound(sender, to, size) and coordinator(self.round, size) == sender
        return sound and max(self.batch, default=0) < FAR


@final
class Accept(InRound):
    """I accept the batch that you proposed in this round."""

    __slots__ = ()
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("round", INT))

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        return super().is_sound(sender, to, size) and coordinator(self.round, size) == to


@final
class Decide(InEpoch):
    """This batch is what the epoch ends with."""

    __slots__ = ("batch",)
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("batch", INTS))

    def __init__(self, epoch: int, batch: Batch) -> None:
        super().__init__(epoch)
        self.batch = batch

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        return super().is_sound(sender, to, size) and max(self.batch, default=0) < FAR
