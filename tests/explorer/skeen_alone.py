"""One process of Skeen's protocol, against everything that others might tell it.

Of the others nothing is assumed but that each gives a message one timestamp, tells all destinations
the same, and gives no timestamp twice. That is what the search checks of this one, too; and
besides that it delivers in ascending order of final timestamps, the highest of all that were given,
and has delivered everything in the end. If so for every process, the order is acyclic in every
system in which no process has more messages, over channels that reorder: see
docs/protocols/skeen.md.

Timestamps are unbounded, but few need to be tried. The protocol compares them, and adds one to its
clock to give the next. So if the clocks that occur in a run are replaced by their ranks, it is
a run again, with the same deliveries. Of each message two matter, that of this process and the
highest of the others, so the clocks up to twice the number of messages suffice.

Messages are numbered in the order in which this process gets START.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from flexgroup.core.layer import Context, Deliver, Layer, Send
from flexgroup.core.message import Message, Stamp, clock_of, process_of, stamp
from flexgroup.core.state import fork_layer, state_names, write_canonically
from flexgroup.protocols.skeen import Skeen

GROUPS = 4
CLIENT = 9


class Alone(NamedTuple):
    """The process, and what it was told."""

    layer: Layer
    given: tuple[Stamp, ...] = ()
    """The timestamps that this process gave, by message."""
    told: tuple[tuple[Stamp, ...], ...] = ()
    """Those of the others that it was told, by message."""
    own: frozenset[int] = frozenset()
    """The messages of which it was told its own timestamp."""
    last: Stamp = -1
    """The final timestamp of what it delivered last."""
    delivered: frozenset[int] = frozenset()

    def highest(self, number: int) -> Stamp:
        """The highest timestamp that was given to a message, as far as is known here."""
        return max((*self.given[number : number + 1], *self.told[number]), default=-1)

    def key(self) -> bytes:
        """All that the rest of the run depends on, and what is checked in it."""
        waiting = [number for number in range(len(self.told)) if number not in self.delivered]
        out = bytearray()
        for name in state_names(self.layer):
            write_canonically(out, getattr(self.layer, name))
        write_canonically(out, (len(self.given), max(self.given, default=-1), self.last))
        write_canonically(out, tuple((number, self.highest(number)) for number in waiting))
        write_canonically(out, tuple(len(self.told[number]) for number in waiting))
        write_canonically(out, tuple(number in self.own for number in waiting))
        return bytes(out)


@dataclass(frozen=True)
class Others:
    """What the search may do to a process."""

    process: int
    messages: int
    destinations: int = 2
    """How many destinations each message has."""
    together: bool = False
    """Tell all timestamps of a message one right after the other, after START. It makes no
    difference: all but the last change only what is known of that message, which nothing else looks
    at (`check_quiet`), so they can as well come later."""
    layer: type[Layer] = Skeen

    def message(self, number: int) -> Message:
        rest = [process for process in range(GROUPS) if process != self.process]
        members = sorted([self.process, *rest[: self.destinations - 1]])
        return Message(number, tuple(members), b"")

    def first(self) -> Alone:
        return Alone(self.layer(Context(self.process, GROUPS)), told=((),) * self.messages)

    def after(self, state: Alone) -> Iterator[Alone]:
        """All states one step later."""
        if len(state.given) < self.messages:
            yield self.start(state)
        for number in range(self.messages):
            if self.together:
                if number < len(state.given) and not state.told[number]:
                    for ts in self.possible(state, number):
                        told = self.tell(self.tell_own(state, number), number, ts)
                        for _ in range(self.destinations - 2):
                            told = self.tell(told, number, 0)
                        yield told
                continue
            if number < len(state.given) and number not in state.own:
                yield self.tell_own(state, number)
            if len(state.told[number]) < self.destinations - 1:
                for ts in self.possible(state, number):
                    yield self.tell(state, number, ts)

    def possible(self, state: Alone, number: int) -> Iterator[Stamp]:
        """The timestamps that another destination may have given; of the low ones, one is enough.

        Nobody gives a timestamp twice. That of a message which is delivered cannot matter.
        """
        waiting = [other for other in range(self.messages) if other not in state.delivered]
        taken = {state.highest(other) for other in waiting}
        given = state.given[number] if number < len(state.given) else -1
        lower = False
        for clock in range(1, 2 * self.messages + 1):
            for process in range(GROUPS):
                ts = stamp(clock, process)
                if process == self.process or ts in taken or (lower and ts < given):
                    continue
                lower = lower or ts < given
                yield ts

    def _packets(self) -> tuple[Any, Any]:
        """START and LOCAL-TS, of a variant its own."""
        start, local_ts = self.layer.PACKETS
        return start, local_ts

    def start(self, state: Alone) -> Alone:
        start, local_ts = self._packets()
        layer = fork_layer(state.layer)
        m = self.message(len(state.given))
        layer.on_packet(CLIENT, start(m))
        (sending,) = layer.effects
        assert isinstance(sending, Send)
        assert sending.to == m.destinations
        assert isinstance(sending.packet, local_ts)
        sent: Any = sending.packet
        ts: Stamp = sent.ts
        assert process_of(ts) == self.process
        assert all(clock_of(ts) > clock_of(earlier) for earlier in state.given)
        layer.effects = []
        return state._replace(layer=layer, given=(*state.given, ts))

    def tell_own(self, state: Alone, number: int) -> Alone:
        told = state._replace(own=state.own | {number})
        return self.hear(told, number, self.process, state.given[number])

    def tell(self, state: Alone, number: int, ts: Stamp) -> Alone:
        told = list(state.told)
        told[number] = (*told[number], ts)
        return self.hear(state._replace(told=tuple(told)), number, process_of(ts), ts)

    def hear(self, state: Alone, number: int, source: int, ts: Stamp) -> Alone:
        _, local_ts = self._packets()
        layer = fork_layer(state.layer)
        layer.on_packet(source, local_ts(self.message(number).id, ts))
        effects, layer.effects = layer.effects, []
        if not self.is_decided(state, number):
            check_quiet(state.layer, layer, number, ts)
            assert not effects
        for effect in effects:
            assert isinstance(effect, Deliver)
            delivered = effect.message.id
            assert self.is_decided(state, delivered)
            assert delivered not in state.delivered
            final = state.highest(delivered)
            assert final > state.last, "not in the order of final timestamps"
            state = state._replace(last=final, delivered=state.delivered | {delivered})
        return state._replace(layer=layer)

    def is_decided(self, state: Alone, number: int) -> bool:
        """Tell whether all timestamps of a message are known."""
        return number in state.own and len(state.told[number]) == self.destinations - 1

    def explore(self) -> int:
        """Try everything, and return how many states there are."""
        return len(self.reached())

    def ends(self) -> set[bytes]:
        """The states in which everything was told."""
        return {key for key, state in self.reached().items() if self.is_over(state)}

    def is_over(self, state: Alone) -> bool:
        return len(state.given) == self.messages and all(
            self.is_decided(state, number) for number in range(self.messages)
        )

    def reached(self) -> dict[bytes, Alone]:
        found = {self.first().key(): self.first()}
        waiting = [self.first()]
        while waiting:
            state = waiting.pop()
            if self.is_over(state):
                assert len(state.delivered) == self.messages, "not everything is delivered"
            for after in self.after(state):
                key = after.key()
                if key not in found:
                    found[key] = after
                    waiting.append(after)
        return found


def check_quiet(before: Any, after: Any, number: int, ts: Stamp) -> None:
    """A timestamp that is not the last of its message is counted, and the highest kept."""
    for name in state_names(before):
        if name != "undecided":
            assert getattr(after, name) == getattr(before, name)
    rest = {m: known for m, known in after.undecided.items() if m != number}
    assert rest == {m: known for m, known in before.undecided.items() if m != number}
    known = before.undecided.get(number)
    now = after.undecided[number]
    assert now.received == (known.received if known is not None else 0) + 1
    assert now.highest == max(known.highest if known is not None else 0, ts)
    if known is not None:
        assert (now.m, now.local) == (known.m, known.local)
