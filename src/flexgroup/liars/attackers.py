"""Attackers: an unmodified stack behind a door that lets out what it likes.

Each kind does one thing wrong. Where it could do so in several ways, or not at all, it offers them
to the world, and the first option is always to do what the stack within has asked for.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Context
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import members_of_groups
from flexgroup.core.stack import Stack
from flexgroup.liars.liar import Leaving, Liar
from flexgroup.liars.lies import Lies, message_in, unheard_of

TICKS = 50
"""How long a slow process holds back what it sends."""

REMEMBERED = 2
"""How many of the packets that it sent last a process can send again."""

FORGED = b"forged"
"""What a message says that nobody has multicast."""

Told = list[Leaving]


class Attacker(Liar):
    """Deals with what is leaving packet by packet; a subclass says in which ways."""

    __slots__ = ("choosing",)

    KIND: ClassVar[str] = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.choosing = False
        """The world has yet to choose what becomes of the first packet that is leaving."""

    def ways(self, leaving: Leaving) -> list[Told]:
        """What could be sent in the place of this; what was asked for is the first way, unless it
        is never an option."""
        return [[leaving]]

    def gone(self, leaving: Leaving, chosen: int) -> None:
        """Take note of the way in which it went."""

    def lies_about(self, packet: Packet) -> list[Packet]:
        """What could be said in the place of a packet of the stack within."""
        (stack,) = self.stacks
        return Lies(self.process, self.context.notary, stack.level_above).about(packet)

    def deal(self) -> None:
        while self.leaving and not self.choosing:
            ways = len(self.ways(self.leaving[0]))
            if ways > 1:
                self.choosing = True
                self.offer(self.KIND, ways)
            else:
                self._let_go(0)

    def on_own_choice(self, name: str, chosen: int) -> None:
        self.choosing = False
        self._let_go(chosen)
        self.deal()

    def _let_go(self, chosen: int) -> None:
        leaving = self.leaving.pop(0)
        for told in self.ways(leaving)[chosen]:
            self.send(told.to, told.packet)
        self.gone(leaving, chosen)


class Silent(Attacker):
    """Says nothing, ever."""

    __slots__ = ()
    KIND = "silent"

    def ways(self, leaving: Leaving) -> list[Told]:
        return [[]]


class Slow(Liar):
    """Holds back all that it sends until a timer runs out."""

    __slots__ = ("waiting",)
    KIND: ClassVar[str] = "slow"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.waiting = False

    def deal(self) -> None:
        if self.leaving and not self.waiting:
            self.waiting = True
            self.set_timer(self.KIND, TICKS)

    def on_own_timer(self, name: str) -> None:
        self.waiting = False
        for leaving in self.leaving:
            self.send(leaving.to, leaving.packet)
        self.leaving = []


class Skipping(Attacker):
    """Leaves a packet out, for all of its receivers or for one of them."""

    __slots__ = ()
    KIND = "skip"

    def ways(self, leaving: Leaving) -> list[Told]:
        some = [tuple([p for p in leaving.to if p != left_out]) for left_out in leaving.to]
        return [[leaving], [], *[[Leaving(to, leaving.packet)] for to in some if to]]


class Reordering(Attacker):
    """Sends a packet after the one that should follow it."""

    __slots__ = ("held",)
    KIND = "reorder"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.held: list[Leaving] = []

    def ways(self, leaving: Leaving) -> list[Told]:
        return [[leaving, *self.held]] if self.held else [[leaving], []]

    def gone(self, leaving: Leaving, chosen: int) -> None:
        self.held = [leaving] if chosen else []


class Forging(Attacker):
    """Changes a field of a packet."""

    __slots__ = ()
    KIND = "forge"

    def ways(self, leaving: Leaving) -> list[Told]:
        lies = self.lies_about(leaving.packet)
        return [[leaving], *[[Leaving(leaving.to, lie)] for lie in lies]]


class Equivocating(Attacker):
    """Tells some receivers of a packet the truth, and the others something else."""

    __slots__ = ()
    KIND = "equivocate"

    def ways(self, leaving: Leaving) -> list[Told]:
        to, packet = leaving
        found: list[Told] = [[leaving]]
        for lie in self.lies_about(packet):
            if len(to) == 1:
                found.append([Leaving(to, lie)])
            for told in range(1, len(to)):
                found.append([Leaving(to[:told], packet), Leaving(to[told:], lie)])
        return found


class Replaying(Attacker):
    """Sends a packet again, at once or after a later one."""

    __slots__ = ("past",)
    KIND = "replay"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.past: list[Leaving] = []

    def ways(self, leaving: Leaving) -> list[Told]:
        return [[leaving], *[[leaving, again] for again in (*self.past, leaving)]]

    def gone(self, leaving: Leaving, chosen: int) -> None:
        self.past = [*self.past, leaving][-REMEMBERED:]


class Hearing(Attacker):
    """Waits for the first message that it hears of, and then may do something about it, once."""

    __slots__ = ("heard",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.heard: Message | None = None

    def options(self) -> int:
        """The ways in which it may: how many they are, the first of which is to do nothing."""
        return 1

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        if self.heard is None:
            self.heard = message_in(packet)
            if self.heard is not None:
                self.offer(self.KIND, self.options())


class Impersonating(Hearing):
    """Multicasts, once, in the name of another process: of the origin of the first message that it
    hears of, a message that this has not multicast, or other words in the place of its own."""

    __slots__ = ()
    KIND = "impersonate"

    def options(self) -> int:
        return 3

    def on_own_choice(self, name: str, chosen: int) -> None:
        heard = self.heard
        if heard is None or not chosen:
            return
        to = heard.destinations
        (stack,) = self.stacks
        if any(layer.HOSTED for layer in stack.layers):
            to = members_of_groups(self.context.replicas, to)
        identity = unheard_of(heard.id) if chosen == 1 else heard.id
        forged = Message(identity, to, FORGED)

        def multicast(inner: Stack) -> None:
            try:
                inner.cast(forged)
            except UsageError:
                inner.drop_effects()  # no member could multicast that

        self.tell(0, multicast)
        self.deal()
