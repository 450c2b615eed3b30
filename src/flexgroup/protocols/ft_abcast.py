"""ft-abcast: Delporte-Gallet and Fauconnier's atomic multicast between groups of replicas.

Source: Delporte-Gallet and Fauconnier 2000; algorithm 3.3 and section 3.2.3 of the DCC dissertation
(Louzada 2024), whose names are used here. A message walks through its groups from the lowest to the
highest; each agrees on its place, and delivers no other message until the last one's END.

Assumes a log for each group (`paxos`, or `log` in small scopes). Guarantees total (acyclic) order
and uniform agreement, although fewer than half of each group crash. Genuine. Three delays for each
group until its leader delivers, and one more for END.

Reads the algorithm thus: `propose` and `decide` are the log's. What is sent to a group goes through
its log, so that lines 5 and 21 propose as well, lines 6 to 9 and 13, by which all members propose,
have nothing left to do, and `Rec` holds what is decided during a wait. As the text says, all
members of a group send m on, and the first copy counts.

Differs from the algorithm as printed (`ft-abcast-published`): an END that comes before m is
remembered. Others of the group may have sent m on long before this process delivers it; line 22,
which waits until an END is received, would wait for ever if all of them came before.

Not in the algorithm, though its text says that processes recover: a process saves its state now
and then; who starts again has the log tell it what followed, delivers what the application was not
given, and asks the last group for ENDs that are lost (AGAIN): those that were sent before their
sender had heard that it is back (RESUME, and the answer KNOWN). Up to where it has to ask, an entry
of its own in the log says (BACK).
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Stored
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.core.replicas import (
    check_destinations,
    group_number,
    group_of,
    numbers_of_groups,
)
from flexgroup.protocols.parts.taken_messages import TakenMessages, taken_messages

PUBLISHED: Final = "published"

CHECKPOINT: Final = 1024
"""How many entries of the log there are between two states that are saved."""


@final
class Forward(Packet):
    """(m), from the origin or from a member of the previous group."""

    m: Message


@final
class End(Packet):
    """(m.END), from a member of the last group."""

    m: MessageId


@final
class Resume(Packet):
    """I have started again: what you sent to my group may be lost."""


@final
class Known(Packet):
    """I know that you have started again: what I send from now on reaches you."""


@final
class Again(Packet):
    """I have delivered m and wait for END; send it again, if your group, the last one, has m."""

    m: MessageId


@final
class Back(Packet):
    """I have started again, so often by now, and all that send me END know it; through the log of
    the own group."""

    starts: int


@final
class Checkpoint(Packet):
    """The state after so many entries of the log, in stable storage.

    `counts` and `ahead` are Del, as `TakenMessages.told` tells it. Rec begins with the message
    that is waited for, if `waiting` is 1.
    """

    starts: int
    entries: int
    delivered: int
    decided: int
    counts: tuple[int, ...]
    ahead: tuple[int, ...]
    waiting: int
    Rec: tuple[Message, ...]
    ended: tuple[int, ...]
    missed: tuple[int, ...]


class FtAbcast(Layer):
    __slots__ = ("Del", "Rec", "behind", "delivered", "ended", "entries", "g", "had", "missed",
                 "own", "starts", "unaware", "waiting_for")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Forward, End, Resume, Known, Again, Back)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (End, Resume, Known, Again)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Checkpoint,)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.g = group_number(context.replicas, context.process)
        """The group of this process, g(p)."""
        self.Rec: list[Message] = []
        self.Del = TakenMessages()
        """What is delivered, or decided and in Rec."""
        self.waiting_for: Message | None = None
        """The message whose END this process waits for."""
        # Not in the paper.
        self.ended: set[MessageId] = set()
        """The messages whose END came before they were delivered here."""
        self.entries = 0
        """How many entries of the log came."""
        self.delivered = 0
        """How many messages this process has delivered."""
        self.had = 0
        """How many of these the application was given before a crash."""
        self.own: dict[MessageId, Message] = {}
        """What it has multicast and not delivered, of what it will deliver."""
        self.starts = 0
        """How often this process has started again."""
        self.behind = False
        """What is decided now may have been decided by others before all that send END to this
        process knew that it is back."""
        self.unaware: set[int] = set()
        """Those that send END to this process, and may not know that it has started again."""
        self.missed: set[MessageId] = set()
        """What was decided then: its END may be lost."""

    def on_cast(self, m: Message) -> None:
        """Lines 4 and 5."""
        check_destinations(self.context.replicas, m.destinations)
        if self.process in m.destinations:
            self.own[m.id] = m
        self.send_to_lowest(m)

    def send_to_lowest(self, m: Message) -> None:
        lowest = numbers_of_groups(self.context.replicas, m.destinations)[0]
        self.send(self.context.replicas[lowest], Forward(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Forward) and self.is_possible(sender, packet.m):
            self.decide(packet.m)
            self.check_entries()
        elif isinstance(packet, End) and self.is_from(sender, self.g + 1, self.size):
            self.on_end(packet.m)
        elif isinstance(packet, Known) and self.is_from(sender, self.g + 1, self.size):
            self.on_known(sender)
        elif (
            isinstance(packet, Resume)
            and self.is_from(sender, 0, self.size)
            and not self.is_mate(sender)
        ):
            self.on_resume(sender)
            self.on_known(sender)
        elif isinstance(packet, Again) and self.is_from(sender, 0, self.g - 1):
            self.on_again(sender, packet.m)
        elif isinstance(packet, Back) and self.is_mate(sender):
            self.on_back(sender, packet.starts)
            self.check_entries()
        else:
            raise self.refuse(sender, packet)

    def is_mate(self, sender: int) -> bool:
        """Not in the paper: the sender is of the same group."""
        return self.is_from(sender, self.g, self.g)

    def is_from(self, sender: int, lowest: int, highest: int) -> bool:
        """Not in the paper: the sender is a member of one of these groups, and so is this process
        of some group."""
        group = group_number(self.context.replicas, sender)
        return self.g >= 0 and max(lowest, 0) <= group <= highest

    def is_possible(self, sender: int, m: Message) -> bool:
        """Not in the paper: m is for whole groups, and comes from the one before, if any."""
        replicas = self.context.replicas
        if self.g < 0 or not self.is_for_me(m):
            return False
        groups = numbers_of_groups(replicas, m.destinations)
        if len(m.destinations) != sum([len(replicas[group]) for group in groups]):
            return False
        place = groups.index(self.g)
        return place == 0 or group_number(replicas, sender) == groups[place - 1]

    def decide(self, m: Message) -> None:
        """Lines 10 to 15, for the first copy of m in the log."""
        if not self.Del.has(m.id):
            self.Del.add(m.id)
            self.Rec.append(m)
            if self.behind:
                self.missed.add(m.id)
            self.handle_next()

    def handle_next(self) -> None:
        while self.Rec and self.waiting_for is None:
            self.handle(self.Rec.pop(0))

    def handle(self, m: Message) -> None:
        """Lines 16 to 22."""
        replicas = self.context.replicas
        groups = numbers_of_groups(replicas, m.destinations)
        self.own.pop(m.id, None)
        self.delivered += 1
        if self.delivered > self.had:
            self.deliver(m)
        if self.g == groups[-1]:
            for group in groups[:-1]:
                self.send(replicas[group], End(m.id))
        else:
            self.send_on(m)
            if m.id in self.ended:
                self.ended.remove(m.id)
            else:
                self.wait_for(m, m.id in self.missed)
        self.missed.discard(m.id)

    def send_on(self, m: Message) -> None:
        self.send(self.following(m), Forward(m))

    def following(self, m: Message) -> tuple[int, ...]:
        """The members of the group that m goes to after this one."""
        groups = numbers_of_groups(self.context.replicas, m.destinations)
        return self.context.replicas[groups[groups.index(self.g) + 1]]

    def wait_for(self, m: Message, may_be_missed: bool) -> None:
        """Line 22; not in the paper: ask for END, if it may have come while this process was
        down."""
        self.waiting_for = m
        if may_be_missed:
            last = numbers_of_groups(self.context.replicas, m.destinations)[-1]
            self.send(self.context.replicas[last], Again(m.id))

    def on_end(self, m: MessageId) -> None:
        """Go on, if this process waits for it; all members of the last group send an END."""
        if self.waiting_for is not None and self.waiting_for.id == m:
            self.waiting_for = None
            self.handle_next()
        elif PUBLISHED not in self.context.options and self.is_awaited(m):
            self.ended.add(m)

    def is_awaited(self, m: MessageId) -> bool:
        """Not in the paper: m is not delivered here yet."""
        return not self.Del.has(m) or any(waiting.id == m for waiting in self.Rec)

    # Stable storage, and starting again: not in the paper.

    def check_entries(self) -> None:
        """Save the state now and then, so that the log may forget what led to it."""
        self.entries += 1
        if self.entries % CHECKPOINT == 0:
            self.save_state()

    def save_state(self) -> None:
        waiting = () if self.waiting_for is None else (self.waiting_for,)
        saved = Checkpoint(
            self.starts, self.entries, self.delivered, self.Del.count, *self.Del.told(),
            len(waiting), (*waiting, *self.Rec), tuple(sorted(self.ended)),
            tuple(sorted(self.missed)),
        )  # fmt: skip
        self.save(saved, self.entries)

    def restore(self, saved: Checkpoint) -> None:
        self.starts = saved.starts
        self.entries = saved.entries
        self.delivered = saved.delivered
        self.Del = taken_messages(saved.decided, saved.counts, saved.ahead)
        self.Rec = list(saved.Rec[saved.waiting :])
        self.ended = set(saved.ended)
        self.missed = {m.id for m in self.Rec} | set(saved.missed)
        if saved.waiting:
            self.send_on(saved.Rec[0])
            self.wait_for(saved.Rec[0], may_be_missed=True)

    def on_restart(self, stored: Stored) -> None:
        """Go on from what was saved, or begin anew; the log tells everything that follows."""
        if self.g < 0:
            return
        self.had = stored.delivered
        if isinstance(stored.saved, Checkpoint):
            self.restore(stored.saved)
        self.behind = True
        self.starts += 1
        self.save_state()
        others = [p for p in range(self.size) if p not in self.context.replicas[self.g]]
        if others:
            self.send(tuple(others), Resume())
        self.unaware = {p for p in others if self.is_from(p, self.g + 1, self.size)}
        self.check_aware()

    def on_known(self, sender: int) -> None:
        """Who has heard of the start, or has started after it, loses no END any more."""
        if sender in self.unaware:
            self.unaware.remove(sender)
            self.check_aware()

    def check_aware(self) -> None:
        if not self.unaware:
            self.send(self.context.replicas[self.g], Back(self.starts))

    def on_back(self, sender: int, starts: int) -> None:
        """What is behind this entry in the log was sent on, and ended, after the sender was back.

        So the sender gets every END of it.
        """
        if sender == self.process and starts == self.starts:
            self.behind = False

    def on_resume(self, sender: int) -> None:
        """Send again what the sender's group may have lost, and ask for what it may not have sent:
        a group has nothing under way but the message that it waits for, and a process nothing but
        what it multicast."""
        if self.is_from(sender, 0, self.g - 1):
            self.send((sender,), Known())
        for identity in sorted(self.own):
            if group_of(self.context.replicas, sender)[0] == self.own[identity].destinations[0]:
                self.send_to_lowest(self.own[identity])
        m = self.waiting_for
        if m is not None and sender in m.destinations:
            if sender in self.following(m):
                self.send_on(m)
            if group_of(self.context.replicas, sender)[-1] == m.destinations[-1]:
                self.send((sender,), Again(m.id))

    def on_again(self, sender: int, m: MessageId) -> None:
        """Tell who may have missed it that m has ended, if it has."""
        if not self.is_awaited(m):
            self.send((sender,), End(m))
