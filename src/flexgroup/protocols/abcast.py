"""ABCAST: whoever holds the token decides the order of all messages.

Source: Birman, Schiper and Stephenson 1991, section 7 (Isis), whose token this is; messages
travel by the PB method of Kaashoek and Tanenbaum 1991 (Amoeba), whose names packets have.

A process asks the holder of the token to multicast for it (Request). The holder gives the
message the next number of one sequence, s, and sends it to its destinations (Data); its origin has
it already and is told the number only (Accept). What the holder multicasts itself has its number
at once. If many requests in a row come from one process, the token goes there.

Assumes reliable channels, which may reorder, and that only members multicast. Guarantees
reliable, FIFO, causal and global total (acyclic) order. Not genuine: the holder takes part in
everything. Any other process may crash without harm; with the holder, order ends.

Differs from the papers:
- In Isis the origin multicasts its message, and the holder another one that sets the order. The PB
  method needs half of the packets, and those to one destination all come from one process, so
  under load they share frames.
- Messages go to subsets. So a packet says which number went to its destination before (`after`),
  and nobody hears of what is not for it. That makes up for channels that reorder, too.
- Origins number their requests: these come in order however the token moves.
- Packets say how often the token has moved, which tells who holds it. A request that comes too late
  is sent on; one that overtakes the token waits for it.
- Failures are left to the membership, which restarts the protocol in a new configuration.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Record
from flexgroup.core.message import Message, Packet, origin_of

RUN: Final = 8
"""After so many requests in a row from one process, the token moves there."""


@final
@mypyc_attr(acyclic=True)
class Request(Packet):
    """The n-th request of m's origin, to the holder after this number of moves of the token."""

    m: Message
    n: int
    moves: int


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """m has the number s; `after` is what went to this destination before.

    The sender held the token after so many moves.
    """

    m: Message
    s: int
    after: int
    moves: int


@final
@mypyc_attr(acyclic=True)
class Accept(Packet):
    """The n-th request of the destination has the number s; the rest is as in `Data`."""

    n: int
    s: int
    after: int
    moves: int


@final
class Token(Packet):
    """The token moves, for this time, with what the record `Order` holds."""

    s: int
    told: tuple[int, ...]
    taken: tuple[int, ...]
    moves: int


@final
class Order(Record):
    """What the holder of the token knows."""

    s: int
    """The last number that was given."""
    told: list[int]
    """The last number that went to each process."""
    taken: list[int]
    """How many requests of each process have numbers."""
    origin: int = -1
    """The origin of the last message."""
    run: int = 0
    """How many in a row were of that origin."""


class Abcast(Layer):
    __slots__ = ("early", "holder", "last", "moves", "order", "requests", "sent", "unaccepted")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Data, Accept, Token)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.holder = 0
        """Who holds the token, as far as is known here, or is about to get it."""
        self.moves = 0
        """How often the token had moved then."""
        self.order: Order | None = None
        """What goes with the token, at its holder."""
        if self.process == self.holder:
            self.order = Order(0, [0] * self.size, [0] * self.size)
        self.sent = 0
        """How many messages this process has multicast."""
        self.unaccepted: dict[int, Message] = {}
        """What this process multicast, for itself too, and has no number yet, by n."""
        self.requests: dict[tuple[int, int], Message] = {}
        """Requests that came before their turn, or before the token, by origin and n."""
        self.last = 0
        """The number of the last message that was delivered here."""
        self.early: dict[int, tuple[int, Message]] = {}
        """Messages that came before their turn, with their numbers, by `after`."""

    # Multicast: ask the holder.

    def on_cast(self, m: Message) -> None:
        n = self.sent
        self.sent += 1
        if self.process in m.destinations:
            self.unaccepted[n] = m
        order = self.order
        if order is not None:
            self.take(order, self.process, n, m)
        else:
            self.send((self.holder,), Request(m, n, self.moves))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not 0 <= sender < self.size:
            raise self.refuse(sender, packet)
        if isinstance(packet, Data):
            self.on_data(sender, packet)
        elif isinstance(packet, Accept):
            self.on_accept(sender, packet)
        elif isinstance(packet, Request):
            self.on_request(sender, packet)
        elif isinstance(packet, Token):
            self.on_token(sender, packet)
        else:
            raise self.refuse(sender, packet)

    # The holder: give numbers, in the order in which requests come.

    def on_request(self, sender: int, packet: Request) -> None:
        m = packet.m
        origin = origin_of(m.id)
        destinations = m.destinations
        if origin >= self.size or not destinations or destinations[-1] >= self.size:
            raise self.refuse(sender, packet)
        if (origin, packet.n) in self.requests:
            raise self.refuse(sender, packet)
        order = self.order
        if order is not None:
            if packet.moves > self.moves or packet.n < order.taken[origin]:
                raise self.refuse(sender, packet)
            self.take(order, origin, packet.n, m)
            # Where channels lose or reorder, requests come in bursts, which say little; and what
            # waits for its turn would have to go with the token.
            if order.run >= RUN and order.origin != self.process and not self.requests:
                self.pass_token(order, order.origin)
        elif packet.moves > self.moves:
            self.requests[origin, packet.n] = m
        elif packet.moves < self.moves:
            self.send((self.holder,), Request(m, packet.n, self.moves))
        else:
            raise self.refuse(sender, packet)

    def take(self, order: Order, origin: int, n: int, m: Message) -> None:
        """Give a number to the n-th request of a process, if those before have theirs."""
        if n != order.taken[origin]:
            self.requests[origin, n] = m
            return
        self.multicast(order, origin, m)
        while self.requests and (origin, order.taken[origin]) in self.requests:
            self.multicast(order, origin, self.requests.pop((origin, order.taken[origin])))

    def multicast(self, order: Order, origin: int, m: Message) -> None:
        n = order.taken[origin]
        order.taken[origin] = n + 1
        order.s += 1
        s = order.s
        if origin == order.origin:
            order.run += 1
        else:
            order.origin = origin
            order.run = 1
        told = order.told
        others: list[int] = []
        for process in m.destinations:
            if process == self.process:
                if origin == process:
                    self.unaccepted.pop(n, None)
                self.arrive(s, told[process], m)
                told[process] = s
            elif process == origin:
                self.send((process,), Accept(n, s, told[process], self.moves))
                told[process] = s
            else:
                others.append(process)
        while others:
            after = told[others[0]]
            party = [process for process in others if told[process] == after]
            others = [process for process in others if told[process] != after]
            self.send(tuple(party), Data(m, s, after, self.moves))
            for process in party:
                told[process] = s

    # The token moves to whoever multicasts most.

    def pass_token(self, order: Order, holder: int) -> None:
        self.order = None
        self.holder = holder
        self.moves += 1
        self.send((holder,), Token(order.s, tuple(order.told), tuple(order.taken), self.moves))

    def on_token(self, sender: int, packet: Token) -> None:
        told, taken = list(packet.told), list(packet.taken)
        if self.order is not None or packet.moves <= self.moves:
            raise self.refuse(sender, packet)
        if len(told) != self.size or len(taken) != self.size or max(told) > packet.s:
            raise self.refuse(sender, packet)
        self.holder = self.process
        self.moves = packet.moves
        order = self.order = Order(packet.s, told, taken)
        waiting, self.requests = self.requests, {}
        for origin, n in sorted(waiting):
            self.take(order, origin, n, waiting[origin, n])

    # Delivery: in order of s.

    def on_data(self, sender: int, packet: Data) -> None:
        if not self.is_for_me(packet.m) or not self.is_next(packet.s, packet.after):
            raise self.refuse(sender, packet)
        self.learn(sender, packet.moves)
        self.arrive(packet.s, packet.after, packet.m)

    def on_accept(self, sender: int, packet: Accept) -> None:
        m = self.unaccepted.get(packet.n)
        if m is None or not self.is_next(packet.s, packet.after):
            raise self.refuse(sender, packet)
        del self.unaccepted[packet.n]
        self.learn(sender, packet.moves)
        self.arrive(packet.s, packet.after, m)

    def is_next(self, s: int, after: int) -> bool:
        """Tell whether such a number may come: nothing else is known to follow `after`."""
        return self.last <= after < s and after not in self.early

    def learn(self, holder: int, moves: int) -> None:
        if moves > self.moves:
            self.holder = holder
            self.moves = moves

    def arrive(self, s: int, after: int, m: Message) -> None:
        if after != self.last:
            self.early[after] = (s, m)
            return
        self.deliver(m)
        self.last = s
        while self.early and self.last in self.early:
            s, m = self.early.pop(self.last)
            self.deliver(m)
            self.last = s
