"""Atomic multicast: Newtop's symmetric total order, for groups that may overlap.

Source: Ezhilchelvan, Macêdo and Shrivastava 1995, as section 4.3.3 of the FlexGroup dissertation
describes it, whose names are used here.

One logical clock RL numbers what a process sends, whatever the group: m.c. The receive vector
VR holds the last number that came from each peer, and D is its minimum. Nothing with a number
up to D can come any more, so what has arrived with m.c <= D is delivered, in order of
(m.c, origin). That is one order for all groups, and RL makes it causal.

Assumes reliable channels, which may reorder, and that only members multicast. Guarantees
reliable, FIFO, causal and global total (acyclic) order. A suspected process is no longer waited
for, nor listened to: the order stays acyclic, but what it sent last may reach some and not others
(docs/protocols/atomic.md).

Differs from the paper:
- *Silence is broken on demand, and at once*: a process owes a number to whoever waits for one,
  and pays with one null message for all that arrived together; nothing waits, nothing is sent.
- *A silent process runs ahead*: the more null messages it sends in a row, the higher their
  numbers. Those between are left to others, who need not wait for it while they last. So that
  they can be used, RL follows messages only, not null messages.
- *A null message may ask*: a process that is in another of my groups does not know that I wait.
- VR and VE are kept by process, not by group and process: there is one clock, and channels are
  between processes. My own entry is not needed: what I send next is above all that I received.
- Packets say which one from the same sender goes before them, so channels need not be FIFO.
"""

from __future__ import annotations

from bisect import insort
from typing import ClassVar, Final, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import INT, MESSAGE, Fields, Message, Packet, Stamp, clock_of, stamp

NOT_WAITED_FOR: Final = 1 << 41
"""In VR and VE, in place of a number, and above all numbers."""

SILENCE: Final = "silence"

FARTHEST: Final = 256
"""How far a silent process runs ahead: others keep so many messages until they hear from it."""


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
    found: set[int] = set()
    for group in context.groups or (tuple(range(context.size)),):
        if context.process in group:
            found.update(group)
    return tuple([process for process in sorted(found) if process != context.process])


class Atomic(Layer):
    __slots__ = ("D", "RL", "VE", "VR", "delivered", "early", "lead", "messages", "owed", "peers",
                 "queue", "silence_ends", "stable", "suspected", "told", "wanted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Null)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.peers = peers_of(context)
        """Those that D waits for."""
        self.RL = 0
        self.VR = [NOT_WAITED_FOR] * context.size
        self.VE = [NOT_WAITED_FOR] * context.size
        for peer in self.peers:
            self.VR[peer] = self.VE[peer] = 0
        self.D = min(self.VR)
        self.stable = min(self.VE)
        self.messages: dict[Stamp, Message] = {}
        """All that was received and is not stable, by (m.c, origin)."""
        self.queue: list[Stamp] = []
        """Of those, what is not delivered, in order; `delivered` is the rest."""
        self.delivered: list[Stamp] = []

        # Not in the paper.
        self.told = [0] * context.size
        """The last number that I sent to each process."""
        self.owed = [0] * context.size
        """Each process waits for a number of at least this from me; 0: for none."""
        self.wanted = [0] * context.size
        """I wait for a number of at least this from each; it may not know, and was not asked."""
        self.silence_ends = False  # the timer is set
        self.lead = 1
        """How far the next null message runs ahead."""
        self.early: dict[tuple[int, int], Numbered] = {}
        """What overtook another packet of the same sender, by sender and `after`."""
        self.suspected: set[int] = set()

    def on_cast(self, m: Message) -> None:
        parties: dict[int, list[int]] = {}  # the others, by what they were told last
        for process in m.destinations:
            if process in self.peers:
                parties.setdefault(self.told[process], []).append(process)
            elif process != self.process and process not in self.suspected:
                who = f"process {self.process} cannot multicast to process {process}"
                raise UsageError(f"{who}: they are not both members of a group")
        self.RL += 1
        self.lead = 1
        for after, party in parties.items():
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
        while (sender, self.VR[sender]) in self.early:
            self.receive(sender, self.early.pop((sender, self.VR[sender])))
        if last == self.D:
            self.D = min(self.VR)
            self.deliver_up_to_D()
        self.discard_stable()

    def is_sound(self, packet: Numbered) -> bool:
        if isinstance(packet, Data) and not self.is_for_me(packet.m):
            return False
        if isinstance(packet, Null) and packet.wanted >= packet.c:
            return False
        return packet.after < packet.c < NOT_WAITED_FOR and packet.ldn < NOT_WAITED_FOR

    def receive(self, sender: int, packet: Numbered) -> None:
        """Of what this sender sent to me, nothing that went before is missing."""
        self.VR[sender] = packet.c
        self.VE[sender] = packet.ldn
        if isinstance(packet, Data):
            self.RL = max(self.RL, packet.c)
            self.keep(packet.m, packet.c, sender)
            for process in packet.m.destinations:
                if process != self.process:
                    self.owe(process, packet.c)
        elif isinstance(packet, Null) and packet.wanted:
            self.owe(sender, packet.wanted)

    def keep(self, m: Message, c: int, origin: int) -> None:
        """m is received. Its destinations know that I wait, but my other peers do not."""
        ts = stamp(c, origin)
        self.messages[ts] = m
        if self.queue and ts < self.queue[-1]:
            insort(self.queue, ts)
        else:
            self.queue.append(ts)
        if len(m.destinations) < self.size:
            for peer in self.peers:
                if peer not in m.destinations:
                    self.want(peer, c)

    def deliver_up_to_D(self) -> None:
        """Deliver what was received with m.c <= D, in order of (m.c, origin)."""
        end = stamp(self.D + 1, 0)
        count = 0
        for ts in self.queue:
            if ts >= end:
                break
            self.deliver(self.messages[ts])
            count += 1
        if count:
            self.delivered += self.queue[:count]
            del self.queue[:count]

    def discard_stable(self) -> None:
        """Forget what was delivered here and received by all: m.c <= the minimum of VE."""
        stable = min(self.VE)
        if stable == self.stable:
            return
        self.stable = stable
        end = stamp(stable + 1, 0)
        count = 0
        for ts in self.delivered:
            if ts >= end:
                break
            del self.messages[ts]
            count += 1
        del self.delivered[:count]

    # The time of silence.

    def owe(self, process: int, c: int) -> None:
        """Somebody waits for a number of at least c from me."""
        self.RL = max(self.RL, c)
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
            self.RL += self.lead
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
        for key in [key for key in self.early if key[0] == suspect]:
            del self.early[key]
        if self.queue:
            for peer in self.peers:
                self.want(peer, clock_of(self.queue[-1]))
        self.D = min(self.VR)
        self.deliver_up_to_D()
        self.discard_stable()
