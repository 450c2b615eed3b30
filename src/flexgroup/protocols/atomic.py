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
- *Silence is broken on demand, and at once*: a process owes a number to whoever waits for one,
  and pays with one null message for all that arrived together; nothing waits, nothing is sent.
- *A silent process runs ahead*: the more null messages it sends in a row, the higher their
  numbers. Those between are left to others, for whom null messages therefore do not count.
- *Messages under way at the same time share a number*: RL follows what is delivered, which is
  what causal order is about. What was only received has to be reached (RR), not passed.
- *A null message may ask*: a process that is in another of my groups does not know that I wait.
- VR and VE are kept by process, not by group and process: there is one clock, and channels are
  between processes. My own entry is not needed: what I send next is above all that I delivered.
- Packets say which one from the same sender goes before them, so channels need not be FIFO.
"""

from __future__ import annotations

from bisect import bisect
from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import INT, MESSAGE, Fields, Message, Packet, Stamp, clock_of, stamp

NOT_WAITED_FOR: Final = 1 << 41
"""In VR and VE, in place of a number, and above all numbers."""

SILENCE: Final = "silence"

FARTHEST: Final = 256
"""How far a silent process runs ahead: others keep so many messages until they hear from it."""


@mypyc_attr(acyclic=True)
class Numbered(Packet):
    """What both kinds of packet carry."""

    __slots__ = ("after", "c", "ldn")

    def __init__(self, c: int, ldn: int, after: int) -> None:
        self.c = c
        """m.c."""
        self.ldn = ldn
        """m.ldn: D of the sender."""
        self.after = after
        """The number of what went from the sender to this destination before."""


@final
@mypyc_attr(acyclic=True)
class Data(Numbered):
    """m."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", MESSAGE), ("c", INT), ("ldn", INT), ("after", INT))

    def __init__(self, m: Message, c: int, ldn: int, after: int) -> None:
        super().__init__(c, ldn, after)
        self.m = m


@final
class Null(Numbered):
    """A null message. If `wanted` is not 0, the sender waits for a number of at least that."""

    __slots__ = ("wanted",)
    FIELDS: ClassVar[Fields] = (("c", INT), ("ldn", INT), ("after", INT), ("wanted", INT))

    def __init__(self, c: int, ldn: int, after: int, wanted: int) -> None:
        super().__init__(c, ldn, after)
        self.wanted = wanted


def peers_of(context: Context) -> tuple[int, ...]:
    """The members that share a group with this process."""
    groups = context.groups or (tuple(range(context.size)),)
    found = {member for group in groups if context.process in group for member in group}
    return tuple(sorted(found - {context.process}))


def lowest(vector: list[int]) -> int:
    found = NOT_WAITED_FOR
    for number in vector:
        found = min(found, number)
    return found


class Atomic(Layer):
    __slots__ = ("D", "RL", "RR", "VE", "VR", "delivered", "early", "lead", "messages",
                 "numbers", "owed", "peers", "silence_ends", "stable", "suspected", "told",
                 "wanted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Null)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.peers = peers_of(context)  # those that D waits for
        self.RL = 0  # what I send next is above this, the last number that I sent or delivered,
        self.RR = 0  # and not below this, the highest that I received or was asked for
        self.VR = [0 if p in self.peers else NOT_WAITED_FOR for p in range(context.size)]
        self.VE = list(self.VR)
        self.D = self.stable = lowest(self.VR)
        self.messages: list[Message] = []
        """All that was received and is not stable, in order of (m.c, origin)."""
        self.numbers: list[Stamp] = []  # their (m.c, origin)
        self.delivered = 0
        """How many of them are delivered: the first, since nothing can come before those."""
        self.told = [0] * context.size
        """The last number that I sent to each. This and what follows is not in the paper."""
        self.owed = [0] * context.size
        """Each process waits for a number of at least this from me; 0: for none."""
        self.wanted = [0] * context.size
        """I wait for a number of at least this from each; it may not know, and was not asked."""
        self.silence_ends = False  # the timer is set
        self.lead = 1  # how far the next null message runs ahead
        self.early: dict[tuple[int, int], Numbered] = {}
        """What overtook another packet of the same sender, by sender and `after`."""
        self.suspected: set[int] = set()

    def on_cast(self, m: Message) -> None:
        others: list[int] = []
        for process in m.destinations:
            if process in self.peers:
                others.append(process)
            elif process != self.process and process not in self.suspected:
                who = f"process {self.process} cannot multicast to process {process}"
                raise UsageError(f"{who}: they are not both members of a group")
        self.RL = max(self.RL + 1, self.RR)
        self.lead = 1
        while others:
            after = self.told[others[0]]
            party = [process for process in others if self.told[process] == after]
            others = [process for process in others if self.told[process] != after]
            self.tell(party, Data(m, self.RL, self.D, after))
        if self.process in m.destinations:
            self.keep(m, self.RL, self.process)
            self.deliver_up_to_D()

    def on_packet(self, sender: int, packet: Packet) -> None:
        known = 0 <= sender < self.size
        if not known or not isinstance(packet, Numbered) or not self.is_sound(packet):
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
        if last == self.D:
            self.D = lowest(self.VR)
            self.deliver_up_to_D()
        self.discard_stable()

    def is_sound(self, packet: Numbered) -> bool:
        if isinstance(packet, Data) and not self.is_for_me(packet.m):
            return False
        if isinstance(packet, Null) and packet.wanted > packet.c:
            return False
        return packet.after < packet.c < NOT_WAITED_FOR and packet.ldn < NOT_WAITED_FOR

    def receive(self, sender: int, packet: Numbered) -> None:
        """Of what this sender sent to me, nothing that went before is missing."""
        self.VR[sender] = packet.c
        self.VE[sender] = packet.ldn
        if isinstance(packet, Data):
            self.RR = max(self.RR, packet.c)
            self.keep(packet.m, packet.c, sender)
            for process in packet.m.destinations:
                if process != self.process:
                    self.owe(process, packet.c)
        elif isinstance(packet, Null) and packet.wanted:
            self.owe(sender, packet.wanted)

    def keep(self, m: Message, c: int, origin: int) -> None:
        """m is received. Its destinations know that I wait, but my other peers do not."""
        ts = stamp(c, origin)
        place = len(self.numbers)
        if place > 0 and ts < self.numbers[-1]:
            place = bisect(self.numbers, ts)
        self.numbers.insert(place, ts)
        self.messages.insert(place, m)
        if len(m.destinations) < self.size:
            for peer in self.peers:
                if peer not in m.destinations:
                    self.want(peer, c)

    def deliver_up_to_D(self) -> None:
        """Deliver what was received with m.c <= D, in order of (m.c, origin)."""
        end = stamp(self.D + 1, 0)
        while self.delivered < len(self.numbers) and self.numbers[self.delivered] < end:
            self.deliver(self.messages[self.delivered])
            self.RL = max(self.RL, clock_of(self.numbers[self.delivered]))
            self.delivered += 1

    def discard_stable(self) -> None:
        """Forget what was delivered here and received by all: m.c <= the minimum of VE."""
        stable = lowest(self.VE)
        if stable == self.stable:
            return
        self.stable = stable
        end = stamp(stable + 1, 0)
        count = 0
        while count < self.delivered and self.numbers[count] < end:
            count += 1
        del self.numbers[:count]
        del self.messages[:count]
        self.delivered -= count

    # The time of silence.

    def owe(self, process: int, c: int) -> None:
        """Somebody waits for a number of at least c from me."""
        self.RR = max(self.RR, c)
        if c > self.owed[process]:
            self.owed[process] = c
            if self.is_due(process):
                self.end_silence()

    def is_due(self, process: int) -> bool:
        """What it waits for: before that, if I am ahead and half of the lead is used up."""
        return self.owed[process] > max(0, self.told[process] - self.lead // 2)

    def tell(self, party: list[int], packet: Numbered) -> None:
        self.send(tuple(party), packet)
        for process in party:
            self.told[process] = packet.c
            self.owed[process] = 0

    def want(self, process: int, c: int) -> None:
        """I wait for a number of at least c from somebody who may not know."""
        if c > self.wanted[process] and c > self.VR[process]:
            self.wanted[process] = c
            self.end_silence()

    def end_silence(self) -> None:
        """Send a null message when what is at hand has been handled: one for all of it."""
        if not self.silence_ends:
            self.silence_ends = True
            self.set_timer(SILENCE, 0)

    def on_timer(self, name: str) -> None:
        self.silence_ends = False
        parties: dict[tuple[int, int], list[int]] = {}
        for peer in self.peers:
            wanted = self.wanted[peer] if self.wanted[peer] > self.VR[peer] else 0
            if wanted or self.is_due(peer):
                parties.setdefault((self.told[peer], wanted), []).append(peer)
                self.wanted[peer] = 0
        if parties:
            self.RL = max(self.RL, self.RR - 1) + self.lead
            self.lead = min(2 * self.lead, FARTHEST)
        for (after, wanted), party in parties.items():
            self.tell(party, Null(self.RL, self.D, after, wanted))

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
        if self.delivered < len(self.numbers):
            for peer in self.peers:
                self.want(peer, clock_of(self.numbers[-1]))
        self.D = lowest(self.VR)
        self.deliver_up_to_D()
        self.discard_stable()
