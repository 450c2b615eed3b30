"""Atomic multicast: Newtop's symmetric total order, for groups that may overlap.

Source: Ezhilchelvan, Macêdo and Shrivastava 1995, as section 4.3.3 of the FlexGroup dissertation
describes it, whose names are used here.

One logical clock RL numbers what a process sends, whatever the group: m.c. The receive vector
VR holds the last number that came from each peer, and D is its minimum. Nothing with a number
up to D can come any more, so what has arrived with m.c <= D is delivered, in order of
(m.c, origin). That is one order for all groups, and RL makes it causal.

Assumes reliable channels, which may reorder, and that only members multicast. Guarantees
reliable, FIFO, causal and global total (acyclic) order. A suspected process is no longer waited
for, nor listened to: the order stays acyclic, but what it sent last may reach only some.

Differs from the paper:
- *Messages under way at the same time share a number*: RL follows what is delivered, which is
  what causal order is about. What was only received has to be reached (RR), not passed.
- *A message does not wait for equal numbers that go behind it*: after number c, nothing below
  (c + 1, process) can come from a process. What lies before all such pairs (`end`) is delivered,
  so of processes above its origin a message only awaits the number before its own.
- VR and VE are kept by process, not by group and process: there is one clock, and channels are
  between processes. My own entry is not needed: what I send next is above all that I delivered.
- Packets say which one from the same sender goes before them, so channels need not be FIFO.
- *Silence is broken on demand, and silent processes run ahead*: see `Silence`.
"""

from __future__ import annotations

from bisect import bisect
from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, Packet, Stamp, clock_of, process_of, stamp

NOT_WAITED_FOR: Final = 1 << 41
"""A number above all others, which stands in VR and VE for those that are not waited for."""

SILENCE: Final = "silence"
"""The timer that ends silence."""

FARTHEST: Final = 256
"""How far a silent process runs ahead: others keep so many messages until they hear from it."""


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """m, with m.c and m.ldn, the sender's D.

    `after` is the number of what went from the sender to this destination before.
    """

    m: Message
    c: int
    ldn: int
    after: int


@final
class Null(Packet):
    """A null message. If `wanted` is not 0, the sender waits for a number of at least that."""

    c: int
    ldn: int
    after: int
    wanted: int


class Atomic(Layer):
    __slots__ = ("D", "RL", "RR", "VE", "VR", "early", "end", "peers", "received", "silence",
                 "stable", "suspected")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Null)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.peers = peers_of(context)
        """The processes that D waits for."""
        self.RL = 0
        """The last number that I sent or delivered: what I send next is above it."""
        self.VR = [0 if p in self.peers else NOT_WAITED_FOR for p in range(context.size)]
        """The receive vector: the last number that came from each process."""
        self.D = lowest(self.VR)
        """The minimum of VR: nothing with a number up to this can come any more."""
        self.VE = list(self.VR)
        """The last D that came from each process."""
        self.stable = lowest(self.VE)
        """The minimum of VE: all have received what has a number up to this."""
        self.received = Unstable()
        """The messages that were received and are not stable."""
        # What follows is not in the paper.
        self.end = first_to_come(self.VR)
        """The lowest pair (m.c, origin) that can still come: what lies before it is delivered."""
        self.RR = 0
        """The highest number that I received or was asked for: what I send is not below it."""
        nothing = [0] * context.size
        self.silence = Silence(nothing, nothing.copy(), nothing.copy())
        """Which process waits for a number of which other."""
        self.early: dict[tuple[int, int], Data | Null] = {}
        """Packets that overtook another one of the same sender, by sender and `after`."""
        self.suspected: set[int] = set()

    # Sending: m.c is the next number of RL, whatever the group.

    def on_cast(self, m: Message) -> None:
        others: list[int] = []
        for process in m.destinations:
            if process in self.peers:
                others.append(process)
            elif process != self.process and process not in self.suspected:
                who = f"process {self.process} cannot multicast to process {process}"
                raise UsageError(f"{who}: they are not both members of a group")
        self.RL = max(self.RL + 1, self.RR)
        silence = self.silence
        silence.lead = 1
        while others:
            after = silence.told[others[0]]
            party = [process for process in others if silence.told[process] == after]
            others = [process for process in others if silence.told[process] != after]
            self.send(tuple(party), Data(m, self.RL, self.D, after))
            silence.have_told(party, self.RL)
        if self.process in m.destinations:
            self.keep(m, self.RL, self.process)
            self.deliver_up_to_end()

    # Receiving: VR, VE and D.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, (Data, Null)) or not self.is_sound(sender, packet):
            raise self.refuse(sender, packet)
        last = self.VR[sender]
        if last == NOT_WAITED_FOR:
            if sender not in self.suspected:
                raise self.refuse(sender, packet)
            return
        if packet.after != last:
            if packet.after < last or (sender, packet.after) in self.early:
                raise self.refuse(sender, packet)
            self.early[sender, packet.after] = packet
            return
        self.receive(sender, packet)
        while self.early and (sender, self.VR[sender]) in self.early:
            self.receive(sender, self.early.pop((sender, self.VR[sender])))
        if sender == process_of(self.end):
            self.advance()
        self.discard_stable()

    def is_sound(self, sender: int, packet: Data | Null) -> bool:
        """Tell whether a correct process may have sent it."""
        if not 0 <= sender < self.size:
            return False
        if isinstance(packet, Data):
            if not self.is_for_me(packet.m):
                return False
        elif packet.wanted > packet.c:
            return False
        return packet.after < packet.c < NOT_WAITED_FOR and packet.ldn < NOT_WAITED_FOR

    def receive(self, sender: int, packet: Data | Null) -> None:
        """Take what comes next from this sender: nothing that it sent me before is missing."""
        self.VR[sender] = packet.c
        self.VE[sender] = packet.ldn
        if isinstance(packet, Data):
            self.RR = max(self.RR, packet.c)
            self.keep(packet.m, packet.c, sender)
            c = number_needed(self.process, packet.c, sender)
            for process in packet.m.destinations:
                if process != self.process:
                    self.silence.owe(self, process, c)
        elif packet.wanted:
            self.RR = max(self.RR, packet.wanted)
            self.silence.owe(self, sender, packet.wanted)

    def keep(self, m: Message, c: int, origin: int) -> None:
        """Keep m. Its destinations know that I wait for them, but my other peers do not."""
        self.received.insert(m, stamp(c, origin))
        if len(m.destinations) < self.size:
            for peer in self.peers:
                if peer not in m.destinations:
                    self.want(peer, number_needed(peer, c, origin))

    # Delivering: in order of (m.c, origin), what nothing that comes can go before.

    def advance(self) -> None:
        self.end = first_to_come(self.VR)
        self.D = clock_of(self.end) - 1
        self.deliver_up_to_end()

    def deliver_up_to_end(self) -> None:
        received = self.received
        while received.delivered < len(received.numbers):
            number = received.numbers[received.delivered]
            if number >= self.end:
                break
            self.deliver(received.messages[received.delivered])
            self.RL = max(self.RL, clock_of(number))
            received.delivered += 1

    # Stability: what all have received can be forgotten.

    def discard_stable(self) -> None:
        stable = lowest(self.VE)
        if stable != self.stable:
            self.stable = stable
            self.received.discard(stamp(stable + 1, 0))

    # Null messages.

    def want(self, process: int, c: int) -> None:
        """Wait for a number of at least c from somebody who may not know."""
        if c > self.VR[process]:
            self.silence.want(self, process, c)

    def on_timer(self, name: str) -> None:
        """Send a null message to each process that waits for a number, or that I wait for."""
        parties = self.silence.end(self.peers, self.VR)
        if parties:
            self.RL = max(self.RL, self.RR - 1) + self.silence.run_ahead()
        for (after, wanted), party in parties.items():
            self.send(tuple(party), Null(self.RL, self.D, after, wanted))
            self.silence.have_told(party, self.RL)

    # Crashes, which the paper leaves to its membership protocol.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process in self.peers:
            self.forget(notice.process)
        self.pass_on(notice)

    def forget(self, suspect: int) -> None:
        """Do not wait for it. Others may lack what it sent last, and not know that I wait."""
        self.suspected.add(suspect)
        self.peers = tuple([peer for peer in self.peers if peer != suspect])
        self.VR[suspect] = self.VE[suspect] = NOT_WAITED_FOR
        self.early = {key: early for key, early in self.early.items() if key[0] != suspect}
        if self.received.delivered < len(self.received.numbers):
            last = self.received.numbers[-1]
            for peer in self.peers:
                self.want(peer, number_needed(peer, clock_of(last), process_of(last)))
        self.advance()
        self.discard_stable()


def peers_of(context: Context) -> tuple[int, ...]:
    """The members that share a group with this process."""
    groups = context.groups or (tuple(range(context.size)),)
    found = {member for group in groups if context.process in group for member in group}
    return tuple(sorted(found - {context.process}))


def number_needed(process: int, c: int, origin: int) -> int:
    """The number that this process must have sent before a message of another one is delivered:
    what it sends next comes behind (c, origin)."""
    return c - 1 if process > origin else c


def first_to_come(vector: list[int]) -> Stamp:
    """The lowest pair (m.c, origin) that may follow these numbers."""
    found = stamp(NOT_WAITED_FOR + 1, 0)
    for process, number in enumerate(vector):
        found = min(found, stamp(number + 1, process))
    return found


def lowest(vector: list[int]) -> int:
    found = NOT_WAITED_FOR
    for number in vector:
        found = min(found, number)
    return found


@final
class Unstable(Record):
    """The messages that a process has received and others may lack, in order of (m.c, origin)."""

    messages: list[Message] = []
    numbers: list[Stamp] = []
    """The pairs (m.c, origin) of these messages."""
    delivered: int = 0
    """How many of them are delivered: the first, since nothing can come before those."""

    def insert(self, m: Message, number: Stamp) -> None:
        place = len(self.numbers)
        if place > 0 and number < self.numbers[-1]:
            place = bisect(self.numbers, number)
        self.numbers.insert(place, number)
        self.messages.insert(place, m)

    def discard(self, end: Stamp) -> None:
        """Forget what is delivered and lies before this place."""
        count = 0
        while count < self.delivered and self.numbers[count] < end:
            count += 1
        del self.numbers[:count]
        del self.messages[:count]
        self.delivered -= count


@final
class Silence(Record):
    """When a process that has nothing to send breaks its silence.

    In the paper, a process that has been silent for a time sends a null message, for ever. Here:
    - It breaks its silence *on demand, and at once*. It owes a number to whoever waits for one,
      and pays with one null message for all that arrived together; if nobody waits, nothing is
      sent. A null message may ask as well: a process that is in another of my groups does not know
      that I wait for it.
    - It *runs ahead*: the more null messages it sends in a row, the higher their numbers. Those
      between are left to others, whose clocks null messages therefore do not advance.
    """

    told: list[int]
    """The last number that I sent to each process."""
    owed: list[int]
    """The number that each process waits for from me, at least; 0 if it waits for none."""
    wanted: list[int]
    """The number that I wait for from each process, at least, if it may not know and was not
    asked."""
    is_ending: bool = False
    """Whether the timer is set."""
    lead: int = 1
    """How far the next null message runs ahead."""

    def owe(self, layer: Layer, process: int, c: int) -> None:
        """Take note that somebody waits for a number of at least c from me."""
        if c > self.owed[process]:
            self.owed[process] = c
            if self.is_due(process):
                self.end_soon(layer)

    def is_due(self, process: int) -> bool:
        """Tell whether it must get a number: if I am ahead, when half of the lead is used up."""
        return self.owed[process] > max(0, self.told[process] - self.lead // 2)

    def want(self, layer: Layer, process: int, c: int) -> None:
        """Take note that I wait for a number of at least c from somebody who may not know."""
        if c > self.wanted[process]:
            self.wanted[process] = c
            self.end_soon(layer)

    def end_soon(self, layer: Layer) -> None:
        """Break silence when what is at hand has been handled: once for all of it."""
        if not self.is_ending:
            self.is_ending = True
            layer.set_timer(SILENCE, 0)

    def end(self, peers: tuple[int, ...], VR: list[int]) -> dict[tuple[int, int], list[int]]:
        """The peers to tell a number, by what they were told last and what is wanted of them."""
        self.is_ending = False
        parties: dict[tuple[int, int], list[int]] = {}
        for peer in peers:
            wanted = self.wanted[peer] if self.wanted[peer] > VR[peer] else 0
            if wanted or self.is_due(peer):
                parties.setdefault((self.told[peer], wanted), []).append(peer)
                self.wanted[peer] = 0
        return parties

    def run_ahead(self) -> int:
        """How far to run ahead this time; the next time, it is farther."""
        lead = self.lead
        self.lead = min(2 * lead, FARTHEST)
        return lead

    def have_told(self, party: list[int], c: int) -> None:
        for process in party:
            self.told[process] = c
            self.owed[process] = 0
