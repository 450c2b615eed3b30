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

from contextlib import suppress
from typing import Final

from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Context, Notice, Suspect, Trust
from flexgroup.core.message import Message, Packet, origin_of, seq_of
from flexgroup.protocols.parts.destination_agreement import Request
from flexgroup.protocols.parts.epochs import (
    Accept,
    Batch,
    Close,
    Copy,
    Decide,
    Flush,
    InEpoch,
    Propose,
    coordinator,
)
from flexgroup.protocols.parts.held_messages import HeldMessages

OPEN: Final = 0
"""The round in which there is none: the epoch is open. The first round is 1."""


class MajorityAgreement(HeldMessages):
    """The base of protocols that order messages fast while nobody is suspected; they say how."""

    __slots__ = (
        "accepted", "accepted_in", "accepts", "decision", "early", "epoch", "flushes", "proposal",
        "proposed", "round", "suspected",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.suspected: set[int] = set()
        self.epoch = 0
        self.early: list[tuple[int, Packet]] = []
        """Packets of epochs that this process is not in yet, and their senders."""
        self.round = OPEN
        self.accepted_in = OPEN
        """The last round of this epoch in which this process accepted a batch."""
        self.accepted: Batch = ()
        self.proposal: Batch | None = None
        """What the coordinator proposed, while messages of it are missing here."""
        self.decision: Batch | None = None
        """The same for what is decided."""
        # At the coordinator of a round.
        self.flushes: dict[int, Flush] = {}
        self.proposed: Batch | None = None
        self.accepts: set[int] = set()

    # What protocols say.

    def introduce(self, m: Message) -> None:
        """Start to order a message of this process in this epoch."""
        raise NotImplementedError

    def complete(self) -> tuple[int, ...]:
        """The messages of this epoch whose place in the order is known here, and those places.

        Flat: a message and its sn, another and its. Those that all have delivered may be left out.
        """
        raise NotImplementedError

    def begin(self) -> None:
        """Forget the last epoch."""
        raise NotImplementedError

    # Broadcasts.

    def on_cast(self, m: Message) -> None:
        if self.process >= self.size:
            self.send(m.destinations[:1], Request(m))
        else:
            self.a_broadcast(m)

    def on_request(self, client: int, packet: Request) -> None:
        m = packet.m
        known = m.id in self.pending or self.is_delivered(m.id)
        if client < self.size or client != origin_of(m.id) or known or not self.is_for_me(m):
            raise self.refuse(client, packet)
        self.a_broadcast(m)

    def a_broadcast(self, m: Message) -> None:
        self.own.add(m.id)
        self.hold(m)
        self.doubt()
        if self.round == OPEN:
            self.introduce(m)

    def hold(self, m: Message) -> None:
        self.pending[m.id] = m
        if self.round != OPEN:
            self.share(m)

    def on_copy(self, m: Message) -> None:
        if m.id not in self.pending and not self.is_delivered(m.id):
            self.hold(m)
            self.doubt()
            self.check_messages()

    # Closing an epoch.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and self.process != notice.process < self.size:
            self.suspected.add(notice.process)
            self.doubt()
        elif isinstance(notice, Trust):
            self.suspected.discard(notice.process)
        self.pass_on(notice)

    def doubt(self) -> None:
        """Wait for nobody who is suspected."""
        if self.decision is not None:
            return
        if self.round == OPEN:
            if self.suspected and self.pending:
                self.enter(1)
        elif coordinator(self.round, self.size) in self.suspected:
            self.enter(self.round + 1)

    def is_majority(self, count: int) -> bool:
        return 2 * count > self.size

    def enter(self, round: int) -> None:
        """Enter this round or the first after it whose coordinator is not suspected."""
        while coordinator(round, self.size) in self.suspected:
            round += 1
        self.take_part(round)
        leader = coordinator(round, self.size)
        flush = Flush(self.epoch, round, self.accepted_in, self.accepted, self.complete())
        if leader != self.process:
            self.send((leader,), flush)
        else:
            self.tell_others(Close(self.epoch, round))
            self.flushes[self.process] = flush
            self.check_flushes()

    def take_part(self, round: int) -> None:
        self.round = round
        self.proposal = None
        self.flushes.clear()
        self.proposed = None
        self.accepts.clear()
        for m in sorted(self.pending):
            self.share(self.pending[m])

    # A round.

    def on_flush(self, j: int, flush: Flush) -> None:
        if flush.round > self.round:
            self.enter(flush.round)
        if flush.round == self.round:
            self.flushes[j] = flush
            self.check_flushes()

    def on_close(self, close: Close) -> None:
        if close.round > self.round:
            self.enter(close.round)

    def check_flushes(self) -> None:
        if self.proposed is None and self.is_majority(len(self.flushes)):
            batch = self.proposed = self.choose()
            self.tell_others(Propose(self.epoch, self.round, batch))
            self.proposal = batch
            self.check_messages()

    def choose(self) -> Batch:
        """What may be decided already; or else first what somebody may have delivered."""
        latest = max(self.flushes.values(), key=lambda flush: flush.accepted_in)
        if latest.accepted_in != OPEN:
            return latest.accepted
        places = [dict(flush.places()) for flush in self.flushes.values()]
        everywhere = [m for m in places[0] if all(m in others for others in places)]
        everywhere.sort(key=lambda m: (places[0][m], origin_of(m), seq_of(m)))
        return (*everywhere, *sorted(self.pending.keys() - set(everywhere)))

    def on_propose(self, propose: Propose) -> None:
        if propose.round > self.round:
            self.take_part(propose.round)
        if propose.round == self.round and self.accepted_in != self.round:
            self.proposal = propose.batch
            self.check_messages()
            self.doubt()

    def check_messages(self) -> None:
        """Go on with what waited for the messages of a batch, if they are there."""
        if self.decision is not None:
            if self.has(self.decision):
                self.conclude(self.decision)
        elif self.proposal is not None and self.has(self.proposal):
            self.accepted_in, self.accepted, self.proposal = self.round, self.proposal, None
            leader = coordinator(self.round, self.size)
            if leader == self.process:
                self.count_accept(self.process)
            else:
                self.send((leader,), Accept(self.epoch, self.round))

    def on_accept(self, j: int, accept: Accept) -> None:
        if accept.round == self.round and self.proposed is not None:
            self.count_accept(j)

    def count_accept(self, j: int) -> None:
        self.accepts.add(j)
        if self.proposed is not None and self.is_majority(len(self.accepts)):
            self.decide(self.proposed)

    # A decision.

    def decide(self, batch: Batch) -> None:
        if self.decision is None:
            self.round = max(self.round, 1)
            self.decision = batch
            self.tell_others(Decide(self.epoch, batch))
            self.check_messages()

    def conclude(self, batch: Batch) -> None:
        """Deliver what is left of the batch, and begin the next epoch."""
        for m in batch:
            if not self.is_delivered(m):
                self.deliver_once(m)
        self.epoch += 1
        self.round = self.accepted_in = OPEN
        self.accepted = ()
        self.proposal = self.decision = self.proposed = None
        self.flushes.clear()
        self.accepts.clear()
        self.begin()
        self.doubt()
        for m in sorted(self.own):
            if self.round == OPEN:
                self.introduce(self.pending[m])

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        epoch = self.epoch
        self.take(sender, packet)
        while self.epoch != epoch:
            epoch = self.epoch
            early, self.early = self.early, []
            for j, kept in early:
                # If it is wrong, whoever ended the epoch is not to blame.
                with suppress(PeerError):
                    self.take(j, kept)

    def take(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, InEpoch):
            self.on_epoch_packet(sender, packet)
        elif isinstance(packet, Copy) and packet.is_sound(sender, self.process, self.size):
            self.on_copy(packet.m)
        elif isinstance(packet, Request):
            self.on_request(sender, packet)
        else:
            raise self.refuse(sender, packet)

    def on_epoch_packet(self, j: int, packet: InEpoch) -> None:
        """Packets of other epochs are late, or early."""
        if not packet.is_sound(j, self.process, self.size):
            raise self.refuse(j, packet)
        if packet.epoch > self.epoch:
            self.early.append((j, packet))
        elif packet.epoch == self.epoch:
            self.on_round_packet(j, packet)

    def on_round_packet(self, j: int, packet: InEpoch) -> None:
        if isinstance(packet, Flush):
            self.on_flush(j, packet)
        elif isinstance(packet, Close):
            self.on_close(packet)
        elif isinstance(packet, Propose):
            self.on_propose(packet)
        elif isinstance(packet, Accept):
            self.on_accept(j, packet)
        elif isinstance(packet, Decide):
            self.decide(packet.batch)
        else:
            raise self.refuse(j, packet)
