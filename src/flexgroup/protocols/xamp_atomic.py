"""xAMP atomic multicast: two-phase accept, coordinated by the sender.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation.

*Dissemination*: the sender repeats a message until all receivers respond to the same try; they
put it at the end of their queues, marked not accepted, and a repetition moves it there again.
*Decision*: the sender then accepts it, and a receiver delivers it when it comes to the head of its
queue. Who misses the decision asks for it. If the sender fails, a *monitor*, the first
destination that is not suspected, asks the others what they know and decides: it never
sends the message itself.

Assumes nothing of the channels, that processes fail by stopping, and that only those are suspected
that have failed, all of them in the end. Guarantees that a message is delivered by all correct
destinations or by none, by all if the sender is correct, and global total (acyclic) order among the
processes that do not crash.

Differs from the paper, which assumes that frames cross the network in one order, the same for all
receivers: over channels between pairs of processes the queues differ, and so would the
orders of delivery (`xamp-atomic-published` does as the paper says; docs/findings.md shows
how it fails). So a response tells the place of the message in the queue, as a timestamp, and
the decision is the highest of them, to which all move it.

- There is no response not-ok: a queue has room. Messages are rejected by monitors alone.
- Tries are not counted. Decisions are remembered for good, as nobody says that he has them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import ClassVar, Final, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import (
    Message,
    MessageId,
    Packet,
    Stamp,
    clock_of,
    name_of,
    origin_of,
    stamp,
)
from flexgroup.protocols.parts.tr_w_resp import RESPONSE_TICKS, Transmission, message_of

PUBLISHED: Final = "published"
"""The option that `xamp-atomic-published` stands for."""

TRY: Final = "try "
DECISION: Final = "decision "
INQUEST: Final = "inquest "

# What a receiver tells the monitor of a message.
UNKNOWN: Final = 0
NOT_ACCEPTED: Final = 1
ACCEPTED: Final = 2
REJECTED: Final = 3


NOWHERE: Final = 0
"""The place of what is rejected."""


@final
class Data(Packet):
    """m, for the attempt-th time."""

    m: Message
    attempt: int


@final
class Response(Packet):
    """This try of m is in my queue, at this place."""

    m: MessageId
    attempt: int
    place: Stamp


@final
class Accept(Packet):
    """The decision: m is delivered, at this place of the queue."""

    m: MessageId
    place: Stamp


@final
class Reject(Packet):
    """The decision: m is discarded."""

    m: MessageId


@final
class RequestDecision(Packet):
    """I have no decision on m, which went to these processes."""

    m: MessageId
    destinations: tuple[int, ...]


@final
class Inquiry(Packet):
    """The monitor asks what you know of m."""

    m: MessageId


@final
class State(Packet):
    """What I know of m: see `UNKNOWN` and the others."""

    m: MessageId
    state: int
    attempt: int
    place: Stamp


@final
class Entry(Record):
    """A message in the receive queue."""

    m: Message
    attempt: int
    place: Stamp
    decider: int
    """Whose decision counts: the sender's, or the monitor's that has asked."""
    accepted: bool = False


@final
class Inquest(Record):
    """What a monitor has found out about a message of a sender that failed."""

    destinations: tuple[int, ...]
    lacking: tuple[int, ...]
    """Whose answers are missing."""
    states: tuple[tuple[int, int, Stamp], ...] = ()
    """State, attempt and place, of those who answered."""

    def answered(self, sender: int, packet: State) -> None:
        self.states = (*self.states, (packet.state, packet.attempt, packet.place))
        self.lacking = tuple([p for p in self.lacking if p != sender])

    def conclusion(self) -> Stamp:
        """Accept what the sender may have accepted: what all have received in the same try."""
        accepted = [place for state, _, place in self.states if state == ACCEPTED]
        if accepted:
            return max(accepted)
        attempts = {attempt for _, attempt, _ in self.states}
        if len(attempts) == 1 and all(state == NOT_ACCEPTED for state, _, _ in self.states):
            return max([place for _, _, place in self.states])
        return NOWHERE


class XampAtomic(Layer):
    __slots__ = ("at", "clock", "decisions", "entries", "highest", "inquests", "queue", "suspected",
                 "transmissions")  # fmt: skip

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Data, Response, Accept, Reject, RequestDecision, Inquiry, State,
    )  # fmt: skip
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clock = 0
        """The end of the queue."""
        self.queue: list[Stamp] = []
        self.at: dict[Stamp, MessageId] = {}
        """The message at each place of the queue."""
        self.entries: dict[MessageId, Entry] = {}
        self.transmissions: dict[MessageId, Transmission] = {}
        self.highest: dict[MessageId, Stamp] = {}
        """The highest place in responses to this try of what is being transmitted."""
        self.decisions: dict[MessageId, Stamp] = {}
        """Where what was accepted is, or `NOWHERE`."""
        self.inquests: dict[MessageId, Inquest] = {}
        self.suspected: set[int] = set()

    def alive(self, processes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([process for process in processes if process not in self.suspected])

    # Dissemination.

    def on_cast(self, m: Message) -> None:
        Pr = self.alive(m.destinations)
        packet = Data(m, 1)
        self.transmissions[m.id] = Transmission(m, packet, Pr, len(Pr), ord=True)
        self.highest[m.id] = NOWHERE
        self.send(Pr, packet)
        self.set_timer(TRY + name_of(m.id), RESPONSE_TICKS)
        self.decide_if_enough(m.id)

    def try_again(self, m: MessageId) -> None:
        transmission = self.transmissions[m]
        to = transmission.try_again()
        self.highest[m] = NOWHERE
        self.send(to, Data(transmission.m, transmission.attempt))
        self.set_timer(TRY + name_of(m), RESPONSE_TICKS)

    def on_data(self, sender: int, packet: Data) -> None:
        m = packet.m
        if sender in self.suspected or m.id in self.decisions:
            return
        entry = self.entries.get(m.id)
        if entry is None:
            place = self.place_at_the_end(m.id)
            entry = self.entries[m.id] = Entry(m, packet.attempt, place, sender)
            self.set_timer(DECISION + name_of(m.id), 2 * RESPONSE_TICKS)
        elif packet.attempt > entry.attempt:
            self.leave_queue(entry.place)
            entry.attempt = packet.attempt
            entry.place = self.place_at_the_end(m.id)
        if packet.attempt == entry.attempt:
            self.send((sender,), Response(m.id, entry.attempt, entry.place))

    def place_at_the_end(self, m: MessageId) -> Stamp:
        self.clock += 1
        place = stamp(self.clock, self.process)
        self.queue.append(place)
        self.at[place] = m
        return place

    def leave_queue(self, place: Stamp) -> None:
        del self.queue[bisect_left(self.queue, place)]
        del self.at[place]

    def on_response(self, sender: int, packet: Response) -> None:
        transmission = self.transmissions.get(packet.m)
        if transmission is not None and packet.attempt == transmission.attempt:
            transmission.respond(sender)
            self.highest[packet.m] = max(self.highest[packet.m], packet.place)
            self.decide_if_enough(packet.m)

    # Decision.

    def decide_if_enough(self, m: MessageId) -> None:
        transmission = self.transmissions[m]
        if transmission.has_enough():
            del self.transmissions[m]
            self.cancel_timer(TRY + name_of(m))
            self.disseminate(m, self.highest.pop(m), transmission.Pr)

    def disseminate(self, m: MessageId, place: Stamp, to: tuple[int, ...]) -> None:
        self.decisions[m] = place
        self.send(to, self.decision(m))

    def decision(self, m: MessageId) -> Packet:
        place = self.decisions[m]
        return Reject(m) if place == NOWHERE else Accept(m, place)

    def on_accept(self, m: MessageId, place: Stamp) -> None:
        entry = self.entries[m]
        entry.accepted = True
        self.decisions[m] = place
        self.cancel_timer(DECISION + name_of(m))
        if PUBLISHED not in self.context.options:
            self.leave_queue(entry.place)
            entry.place = place
            insort(self.queue, place)
            self.at[place] = m
            self.clock = max(self.clock, clock_of(place))
        self.deliver_head()

    def on_reject(self, m: MessageId) -> None:
        self.decisions[m] = NOWHERE
        self.leave_queue(self.entries.pop(m).place)
        self.cancel_timer(DECISION + name_of(m))
        self.deliver_head()

    def deliver_head(self) -> None:
        """Deliver what is accepted and has nothing before it in the queue."""
        while self.queue:
            m = self.at[self.queue[0]]
            if not self.entries[m].accepted:
                break
            self.leave_queue(self.queue[0])
            self.deliver(self.entries.pop(m).m)

    def request_decision(self, m: MessageId) -> None:
        """Ask the sender or, if it has failed, the monitor: the next destination that lives."""
        entry = self.entries[m]
        if entry.decider in self.suspected:
            lowest = -1 if entry.decider == origin_of(m) else entry.decider
            entry.decider = min([p for p in self.alive(entry.m.destinations) if p > lowest])
        self.send((entry.decider,), RequestDecision(m, entry.m.destinations))
        self.set_timer(DECISION + name_of(m), 2 * RESPONSE_TICKS)

    def on_request(self, sender: int, packet: RequestDecision) -> None:
        m = packet.m
        if m in self.decisions:
            self.send((sender,), self.decision(m))
        elif (
            origin_of(m) in self.suspected
            and m not in self.inquests
            and self.alive(packet.destinations)[:1] == (self.process,)
        ):
            self.inquests[m] = Inquest(packet.destinations, self.alive(packet.destinations))
            self.inquire(m)

    # Termination, if the sender has failed.

    def inquire(self, m: MessageId) -> None:
        self.send(self.inquests[m].lacking, Inquiry(m))
        self.set_timer(INQUEST + name_of(m), RESPONSE_TICKS)

    def on_inquiry(self, sender: int, m: MessageId) -> None:
        """Tell what is known, and from now on do not listen to those who decided before."""
        entry = self.entries.get(m)
        if m in self.decisions:
            place = self.decisions[m]
            state = State(m, REJECTED if place == NOWHERE else ACCEPTED, 0, place)
        elif entry is None:
            self.decisions[m] = NOWHERE
            state = State(m, UNKNOWN, 0, NOWHERE)
        elif entry.decider == origin_of(m) or entry.decider <= sender:
            entry.decider = sender
            state = State(m, NOT_ACCEPTED, entry.attempt, entry.place)
        else:
            return
        self.send((sender,), state)

    def on_state(self, sender: int, packet: State) -> None:
        inquest = self.inquests.get(packet.m)
        if inquest is not None and sender in inquest.lacking:
            inquest.answered(sender, packet)
            self.conclude_if_complete(packet.m)

    def conclude_if_complete(self, m: MessageId) -> None:
        inquest = self.inquests[m]
        if not inquest.lacking:
            del self.inquests[m]
            self.cancel_timer(INQUEST + name_of(m))
            self.disseminate(m, inquest.conclusion(), self.alive(inquest.destinations))

    # What is told from outside.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not 0 <= sender < self.size or not self.makes_sense(packet):
            raise self.refuse(sender, packet)
        if isinstance(packet, Data):
            self.on_data(sender, packet)
        elif isinstance(packet, Response):
            self.on_response(sender, packet)
        elif isinstance(packet, Accept):
            if self.takes_decision(sender, packet.m):
                self.on_accept(packet.m, packet.place)
        elif isinstance(packet, Reject):
            if self.takes_decision(sender, packet.m):
                self.on_reject(packet.m)
        elif isinstance(packet, RequestDecision):
            self.on_request(sender, packet)
        elif isinstance(packet, Inquiry):
            self.on_inquiry(sender, packet.m)
        elif isinstance(packet, State):
            self.on_state(sender, packet)

    def takes_decision(self, sender: int, m: MessageId) -> bool:
        entry = self.entries.get(m)
        return entry is not None and not entry.accepted and entry.decider == sender

    def makes_sense(self, packet: Packet) -> bool:
        if isinstance(packet, Data):
            return self.is_for_me(packet.m)
        if isinstance(packet, Accept):
            taken = self.at.get(packet.place, packet.m) != packet.m
            return clock_of(packet.place) > 0 and not taken
        if isinstance(packet, RequestDecision):
            return -1 < max(packet.destinations, default=-1) < self.size
        return isinstance(packet, Response | Reject | Inquiry | State)

    def on_timer(self, name: str) -> None:
        kind, _, timer = name.rpartition(" ")
        m = message_of(timer)
        if kind + " " == TRY:
            self.try_again(m)
        elif kind + " " == DECISION:
            self.request_decision(m)
        else:
            self.inquire(m)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            for m in sorted(self.transmissions):
                self.transmissions[m].leave_out(notice.process)
                self.decide_if_enough(m)
            for m in sorted(self.inquests):
                inquest = self.inquests[m]
                inquest.lacking = self.alive(inquest.lacking)
                self.conclude_if_complete(m)
            for m in sorted(self.entries):
                if self.entries[m].decider == notice.process and not self.entries[m].accepted:
                    self.request_decision(m)
        self.pass_on(notice)
