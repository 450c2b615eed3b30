"""Epochs that a majority closes: what makes a fast atomic broadcast safe from wrong suspicions.

In an *epoch* a protocol orders messages by itself, fast, as long as nobody is suspected. Whoever
has undelivered messages and suspects somebody closes the epoch: it takes no further part in it, and
the processes decide, by consensus, on a *batch*: in which order the messages of that epoch are
delivered. Those that anybody may have delivered already come first. Everybody delivers
what is left of the batch and begins the next epoch. Nobody is excluded, wrongly suspected or not.

Consensus: Chandra and Toueg 1996, with a rotating coordinator, and rounds that processes may skip.
Processes tell the coordinator of their round what is complete with them, and which batch they
accepted last (FLUSH); it calls all others into the round (CLOSE). With answers from a majority,
it proposes the batch that was accepted in the highest round or, if there is none, one of its own
(PROPOSE). Who has the messages in it accepts it (ACCEPT). What a majority accepted is decided
(DECIDE), and everyone who learns of it tells all. Who suspects the coordinator goes on to the
next round.

What batches are about must not be lost: whoever has closed an epoch sends all undelivered messages
that it has, or gets, to all (COPY).
"""

from __future__ import annotations

from typing import Final, Protocol, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Packet, origin_of, seq_of
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.timestamps import FAR

Batch = tuple[int, ...]
"""Messages in the order in which they are delivered."""

OPEN: Final = 0
"""The round in which there is none: the epoch is open. The first round is 1."""


def coordinator(round: int, size: int) -> int:
    return (round - 1) % size


@final
class Copy(Packet):
    """A message that somebody may not have."""

    m: Message


@final
class Flush(Packet):
    """I am in this round, accepted this batch in that one (or 0), and know these places.

    `complete` is flat: a message and its sn, another message and its, ...
    """

    epoch: int
    round: int
    accepted_in: int
    accepted: Batch
    complete: tuple[int, ...]

    def places(self) -> dict[MessageId, int]:
        return dict(zip(self.complete[::2], self.complete[1::2], strict=True))


@final
class Close(Packet):
    """Enter the round that I coordinate."""

    epoch: int
    round: int


@final
class Propose(Packet):
    """Accept this batch."""

    epoch: int
    round: int
    batch: Batch


@final
class Accept(Packet):
    """I accept the batch that you proposed in this round."""

    epoch: int
    round: int


@final
class Decide(Packet):
    """This batch is what the epoch ends with."""

    epoch: int
    batch: Batch


OfRounds = Flush | Close | Propose | Accept | Decide
"""What is said in order to close an epoch."""


class FastOrder(Protocol):
    """The layer that orders the messages of an open epoch, as the agreement sees it."""

    def send(self, to: tuple[int, ...], packet: Packet) -> None: ...

    def deliver(self, m: Message) -> None: ...

    def introduce(self, m: Message) -> None:
        """Start to order a message of this process in this epoch."""

    def complete(self) -> tuple[int, ...]:
        """The messages of this epoch whose place in the order is known here, and those places.

        Flat: a message and its sn, another and its. Those that all have delivered may be left out.
        """

    def begin(self) -> None:
        """Forget the last epoch."""


@final
class MajorityAgreement(Record):
    """One process's part in it. The layer that it belongs to sends and delivers for it."""

    process: int
    size: int
    suspected: set[int] = set()
    pending: dict[MessageId, Message] = {}
    """Messages that this process has and has not delivered."""
    own: set[MessageId] = set()
    """Those among them that this process broadcast."""
    shared: set[MessageId] = set()
    """Those among them that this process has sent to all."""
    delivered: KnownMessages = KnownMessages()
    epoch: int = 0
    round: int = OPEN
    accepted_in: int = OPEN
    """The last round of this epoch in which this process accepted a batch."""
    accepted: Batch = ()
    proposal: Batch | None = None
    """What the coordinator proposed, while messages of it are missing here."""
    decision: Batch | None = None
    """What is decided, while messages of it are missing here."""
    flushes: dict[int, Flush] = {}
    """The FLUSH of each process, at the coordinator of a round."""
    proposed: Batch | None = None
    """The batch that this process proposed as the coordinator of a round."""
    accepts: set[int] = set()
    """The processes that accepted that batch."""

    # Messages.

    def knows(self, m: MessageId) -> bool:
        return m in self.pending or self.delivered.has(m)

    def broadcast(self, layer: FastOrder, m: Message) -> None:
        self.own.add(m.id)
        self.hold(layer, m)
        self.doubt(layer)
        if self.round == OPEN:
            layer.introduce(m)

    def hold(self, layer: FastOrder, m: Message) -> None:
        self.pending[m.id] = m
        if self.round != OPEN:
            self.share(layer, m)

    def share(self, layer: FastOrder, m: Message) -> None:
        if m.id not in self.shared:
            self.shared.add(m.id)
            self.tell_others(layer, Copy(m))

    def tell_others(self, layer: FastOrder, packet: Packet) -> None:
        if self.size > 1:
            layer.send(tuple([j for j in range(self.size) if j != self.process]), packet)

    def deliver_once(self, layer: FastOrder, m: MessageId) -> None:
        message = self.pending.pop(m)
        self.own.discard(m)
        self.shared.discard(m)
        self.delivered.add(m)
        if self.process in message.destinations:
            layer.deliver(message)

    def on_copy(self, layer: FastOrder, m: Message) -> None:
        if not self.knows(m.id):
            self.hold(layer, m)
            self.doubt(layer)
            self.check_messages(layer)

    # Closing an epoch.

    def suspect(self, layer: FastOrder, j: int) -> None:
        if self.process != j < self.size:
            self.suspected.add(j)
            self.doubt(layer)

    def trust(self, j: int) -> None:
        self.suspected.discard(j)

    def doubt(self, layer: FastOrder) -> None:
        """Wait for nobody who is suspected."""
        if self.decision is not None:
            return
        if self.round == OPEN:
            if self.suspected and self.pending:
                self.enter(layer, 1)
        elif coordinator(self.round, self.size) in self.suspected:
            self.enter(layer, self.round + 1)

    def is_majority(self, count: int) -> bool:
        return 2 * count > self.size

    def enter(self, layer: FastOrder, round: int) -> None:
        """Enter this round or the first after it whose coordinator is not suspected."""
        while coordinator(round, self.size) in self.suspected:
            round += 1
        self.take_part(layer, round)
        leader = coordinator(round, self.size)
        flush = Flush(self.epoch, round, self.accepted_in, self.accepted, layer.complete())
        if leader != self.process:
            layer.send((leader,), flush)
        else:
            self.tell_others(layer, Close(self.epoch, round))
            self.flushes[self.process] = flush
            self.check_flushes(layer)

    def take_part(self, layer: FastOrder, round: int) -> None:
        self.round = round
        self.proposal = None
        self.flushes.clear()
        self.proposed = None
        self.accepts.clear()
        for m in sorted(self.pending):
            self.share(layer, self.pending[m])

    # A round.

    def on_round(self, layer: FastOrder, j: int, packet: OfRounds) -> None:
        if isinstance(packet, Flush):
            self.on_flush(layer, j, packet)
        elif isinstance(packet, Close):
            self.on_close(layer, packet)
        elif isinstance(packet, Propose):
            self.on_propose(layer, packet)
        elif isinstance(packet, Accept):
            self.on_accept(layer, j, packet)
        else:
            self.decide(layer, packet.batch)

    def on_flush(self, layer: FastOrder, j: int, flush: Flush) -> None:
        if flush.round > self.round:
            self.enter(layer, flush.round)
        if flush.round == self.round:
            self.flushes[j] = flush
            self.check_flushes(layer)

    def on_close(self, layer: FastOrder, close: Close) -> None:
        if close.round > self.round:
            self.enter(layer, close.round)

    def check_flushes(self, layer: FastOrder) -> None:
        if self.proposed is None and self.is_majority(len(self.flushes)):
            batch = self.proposed = self.choose()
            self.tell_others(layer, Propose(self.epoch, self.round, batch))
            self.proposal = batch
            self.check_messages(layer)

    def choose(self) -> Batch:
        """Choose what may be decided already, or put first what somebody may have delivered."""
        latest = max(self.flushes.values(), key=lambda flush: flush.accepted_in)
        if latest.accepted_in != OPEN:
            return latest.accepted
        places = [flush.places() for flush in self.flushes.values()]
        everywhere = [m for m in places[0] if all(m in others for others in places)]
        everywhere.sort(key=lambda m: (places[0][m], origin_of(m), seq_of(m)))
        return (*everywhere, *sorted(self.pending.keys() - set(everywhere)))

    def on_propose(self, layer: FastOrder, propose: Propose) -> None:
        if propose.round > self.round:
            self.take_part(layer, propose.round)
        if propose.round == self.round and self.accepted_in != self.round:
            self.proposal = propose.batch
            self.check_messages(layer)
            self.doubt(layer)

    def check_messages(self, layer: FastOrder) -> None:
        """Go on with what waited for the messages of a batch, if they are there."""
        if self.decision is not None:
            if self.has(self.decision):
                self.conclude(layer, self.decision)
        elif self.proposal is not None and self.has(self.proposal):
            self.accepted_in, self.accepted, self.proposal = self.round, self.proposal, None
            leader = coordinator(self.round, self.size)
            if leader == self.process:
                self.count_accept(layer, self.process)
            else:
                layer.send((leader,), Accept(self.epoch, self.round))

    def has(self, batch: Batch) -> bool:
        return all(self.knows(m) for m in batch)

    def on_accept(self, layer: FastOrder, j: int, accept: Accept) -> None:
        if accept.round == self.round and self.proposed is not None:
            self.count_accept(layer, j)

    def count_accept(self, layer: FastOrder, j: int) -> None:
        self.accepts.add(j)
        if self.proposed is not None and self.is_majority(len(self.accepts)):
            self.decide(layer, self.proposed)

    # A decision.

    def decide(self, layer: FastOrder, batch: Batch) -> None:
        if self.decision is None:
            self.round = max(self.round, 1)
            self.decision = batch
            self.tell_others(layer, Decide(self.epoch, batch))
            self.check_messages(layer)

    def conclude(self, layer: FastOrder, batch: Batch) -> None:
        """Deliver what is left of the batch, and begin the next epoch."""
        for m in batch:
            if not self.delivered.has(m):
                self.deliver_once(layer, m)
        self.epoch += 1
        self.round = self.accepted_in = OPEN
        self.accepted = ()
        self.proposal = self.decision = self.proposed = None
        self.flushes.clear()
        self.accepts.clear()
        layer.begin()
        self.doubt(layer)
        for m in sorted(self.own):
            if self.round == OPEN:
                layer.introduce(self.pending[m])

    # What a correct process may send to this one.

    def is_sound(self, sender: int, packet: OfRounds) -> bool:
        if sender >= self.size or sender == self.process or packet.epoch >= FAR:
            return False
        if isinstance(packet, Decide):
            return max(packet.batch, default=0) < FAR
        if not 1 <= packet.round < FAR:
            return False
        leader = coordinator(packet.round, self.size)
        if isinstance(packet, Flush):
            known = max((*packet.accepted, *packet.complete), default=0) < FAR
            paired = len(packet.complete) % 2 == 0
            return leader == self.process and paired and known and packet.accepted_in < packet.round
        if isinstance(packet, Accept):
            return leader == self.process
        if isinstance(packet, Propose) and max(packet.batch, default=0) >= FAR:
            return False
        return leader == sender
