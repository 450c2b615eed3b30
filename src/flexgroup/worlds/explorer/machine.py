"""What one process does on one event, computed once.

A process's step depends on its own state and on the event alone, and in all the states of a
system there are few of either. So both are kept once and numbered, and a step is a table
entry from (state, event) to (state, events that are now in flight). The code of the
protocol runs only for entries that are not there yet; the search itself moves numbers.

Fingerprints are taken from canonical forms and do not depend on the hash seed: two processes
that explore the same system agree on them, though not on the numbers.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from flexgroup.core.codec import Codec
from flexgroup.core.layer import (
    CancelTimer,
    Deliver,
    Effect,
    Offer,
    Save,
    Send,
    SetTimer,
    Stored,
    Suspect,
)
from flexgroup.core.message import Message, MessageId, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork, write_canonically

RECEIVE: Final = 0
CAST: Final = 1
TIMER: Final = 2
CHOICE: Final = 3
CRASH: Final = 4
SUSPECT: Final = 5

KINDS: Final = ("receive", "cast", "timer", "choice", "crash", "suspect")


class ClientAddressedError(Exception):
    """A packet was sent to a client that the search does not follow."""


def short(digest: bytes) -> int:
    """Sixty-two bits of a digest: what compiled code keeps in a register."""
    return int.from_bytes(digest[:8], "big") >> 2


def cast_entry(message: MessageId, place: int) -> int:
    """In a history: this message was multicast, which is at this place in the scope."""
    return (message << 6 | place) << 1 | 1


def delivery_entry(message: MessageId) -> int:
    """In a history: this message was delivered."""
    return message << 7


def is_cast(entry: int) -> bool:
    return entry & 1 == 1


def message_in(entry: int) -> MessageId:
    return entry >> 7


def place_in(entry: int) -> int:
    return (entry >> 1) & 63


@final
class Event:
    """Something that may happen to a process: a packet that can arrive, a cast, a timer, ..."""

    __slots__ = ("fingerprint", "kind", "label", "level", "name", "number", "packet",
                 "process", "sort", "source")  # fmt: skip

    def __init__(
        self,
        kind: int,
        process: int,
        source: int,
        packet: Packet | None,
        level: int,
        name: str,
        number: int,
    ) -> None:
        self.kind = kind
        self.process = process
        self.source = source
        """Of a packet its sender; of a suspicion the suspect."""
        self.packet = packet
        self.level = level
        self.name = name
        self.number = number
        """Of a choice the option; of a cast its place in the scope; of a timer, whether it runs
        out at once."""
        out = bytearray()
        write_canonically(out, (kind, process, source, level, name, number))
        if packet is not None:
            write_canonically(out, packet)
        self.fingerprint = short(blake2b(out, digest_size=16).digest())
        self.label = ""
        self.sort = 0
        """The number of its label."""


@final
class Local:
    """The state of one process, with all that the world keeps for it."""

    __slots__ = ("casts", "crashed", "fingerprint", "history", "idle", "offers", "order", "own",
                 "problem", "process", "saved", "stack", "suspects", "timers")  # fmt: skip

    def __init__(self, process: int, stack: Stack) -> None:
        self.process = process
        self.stack = stack
        self.history: tuple[int, ...] = ()
        """What it multicast and delivered, in order: see `cast_entry` and `delivery_entry`."""
        self.casts: tuple[int, ...] = ()
        """The places, in the scope, of the casts it has made."""
        self.timers: tuple[tuple[int, str, bool], ...] = ()
        """Level and name, and whether it runs out at once: see `_own_events`."""
        self.offers: tuple[tuple[int, str, int], ...] = ()
        self.saved: tuple[tuple[int, Stored], ...] = ()
        self.suspects: tuple[int, ...] = ()
        self.crashed = False
        self.problem = ""
        """What it did wrong; such a process does no more."""
        self.fingerprint = 0
        self.order = 0
        """The number of its history among all histories."""
        self.own: list[int] = []
        """The events that need no packet: casts, timers, choices."""
        self.idle = False
        """It takes no packets: it crashed, failed, or waits for a choice."""

    def twin(self) -> Local:
        other = Local(self.process, fork(self.stack))
        other.history = self.history
        other.casts = self.casts
        other.timers = self.timers
        other.offers = self.offers
        other.saved = self.saved
        other.suspects = self.suspects
        other.crashed = self.crashed
        other.problem = self.problem
        return other

    def delivered(self) -> list[MessageId]:
        return [message_in(entry) for entry in self.history if not is_cast(entry)]

    def forget_timer(self, level: int, name: str) -> None:
        self.timers = tuple([t for t in self.timers if t[0] != level or t[1] != name])

    def seal(self) -> None:
        out = bytearray(fingerprint(self.stack))
        write_canonically(out, (self.process, self.history, self.casts, self.timers))
        write_canonically(out, (self.offers, self.saved, self.suspects, self.crashed, self.problem))
        self.fingerprint = short(blake2b(out, digest_size=16).digest())


@final
class Step:
    """The state that follows, and the events (packets that can arrive) that are new."""

    __slots__ = ("after", "outputs", "seen")

    def __init__(self, after: int, outputs: list[int], seen: bool) -> None:
        self.after = after
        self.outputs = outputs
        self.seen = seen
        """Something was delivered, multicast, or went wrong: the properties must look."""


@final
class Casting:
    """The casts of one origin, and whether their order is open."""

    __slots__ = ("any_order", "destinations", "places")

    def __init__(
        self, places: list[int], destinations: list[tuple[int, ...]], any_order: bool
    ) -> None:
        self.places = places
        self.destinations = destinations
        self.any_order = any_order

    def possible(self, made: tuple[int, ...]) -> list[int]:
        left = [place for place in self.places if place not in made]
        return left if self.any_order else left[:1]


@final
class Machine:
    """The tables of events, states of processes, and steps."""

    def __init__(
        self,
        size: int,
        followed: int,
        codec: Codec,
        castings: dict[int, Casting],
        timers_run_out: bool,
    ) -> None:
        self.size = size
        self.followed = followed
        """Processes with a number from here on are clients whose packets need not be followed."""
        self.events: list[Event] = []
        self.locals: list[Local] = []
        self.histories: list[tuple[int, ...]] = []
        self.recipes: list[tuple[int, int]] = []
        """The steps in the order in which they were computed, as fingerprints."""
        self.sorts: list[str] = []
        self.sort_process: list[int] = []
        self.sort_source: list[int] = []
        self.leads: list[int] = []
        """For each sort of event, as bits, the sorts that it was seen to give rise to."""
        self.growth = 0
        self.timers_seen = False
        self.timers_run_out = timers_run_out
        self._codec = codec
        self._castings = castings
        self._event_numbers: dict[int, int] = {}
        self._local_numbers: dict[int, int] = {}
        self._history_numbers: dict[tuple[int, ...], int] = {}
        self._sort_numbers: dict[str, int] = {}
        self._steps: dict[int, Step] = {}

    def step(self, local: int, event: int) -> Step:
        key = (local << 30) | event
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._compute(local, event)
        return known

    def first(self, process: int, stack: Stack) -> Step:
        """The state in which a process starts, and what it sends then."""
        local = Local(process, stack)
        stack.start()
        outputs: list[int] = []
        self._perform(local, outputs)
        return Step(self.enrol(local), outputs, True)

    def event(self, event: Event) -> int:
        """The number of an event."""
        number = self._event_numbers.get(event.fingerprint)
        if number is None:
            number = len(self.events)
            self._event_numbers[event.fingerprint] = number
            self.events.append(event)
            self._sort_out(event)
        return number

    def event_of(self, fingerprint: int) -> int:
        return self._event_numbers[fingerprint]

    def local_of(self, fingerprint: int) -> int:
        return self._local_numbers[fingerprint]

    def history_of(self, history: tuple[int, ...]) -> int:
        return self._history_numbers[history]

    def enrol(self, local: Local) -> int:
        """The number of a state of a process."""
        local.seal()
        number = self._local_numbers.get(local.fingerprint)
        if number is None:
            number = len(self.locals)
            self._local_numbers[local.fingerprint] = number
            self.locals.append(local)
            order = self._history_numbers.get(local.history)
            if order is None:
                order = self._history_numbers[local.history] = len(self.histories)
                self.histories.append(local.history)
            local.order = order
            local.own = self._own_events(local)
            local.idle = local.crashed or bool(local.problem) or bool(local.offers)
        return number

    def message(self, origin: int, seq: int, place: int) -> Message:
        casting = self._castings[origin]
        destinations = casting.destinations[casting.places.index(place)]
        return Message(message_id(origin, seq), destinations, b"")

    def _own_events(self, local: Local) -> list[int]:
        process = local.process
        if local.crashed or local.problem:
            return []
        if local.offers:
            level, name, options = local.offers[0]
            return [
                self.event(Event(CHOICE, process, process, None, level, name, chosen))
                for chosen in range(options)
            ]
        found: list[int] = []
        casting = self._castings.get(process)
        if casting is not None:
            for place in casting.possible(local.casts):
                found.append(self.event(Event(CAST, process, process, None, 0, "", place)))
        # A timer of no ticks is not a matter of time: it is sure to run out, as soon as the process
        # has handled what is at hand. So it is always possible and draws on no stock.
        for level, name, at_once in local.timers:
            if at_once or self.timers_run_out:
                found.append(
                    self.event(
                        Event(TIMER, process, process, None, level, name, 1 if at_once else 0)
                    )
                )
        return found

    def _compute(self, number: int, event_number: int) -> Step:
        before = self.locals[number]
        event = self.events[event_number]
        after = before.twin()
        outputs: list[int] = []
        try:
            self._tell(after, event)
            self._perform(after, outputs)
        except ClientAddressedError:
            raise
        except Exception as error:
            # Whatever a handler raises is what the search is looking for.
            after.problem = f"{type(error).__name__}: {error}"
            after.stack = fork(before.stack)
        reached = self.enrol(after)
        after = self.locals[reached]
        leads = self.leads[event.sort]
        for output in outputs:
            leads |= 1 << self.events[output].sort
        for own in after.own:
            leads |= 1 << self.events[own].sort
        if leads != self.leads[event.sort]:
            self.leads[event.sort] = leads
            self.growth += 1
        self.recipes.append((before.fingerprint, event.fingerprint))
        seen = after.order != before.order or after.problem != before.problem
        return Step(reached, outputs, seen)

    def _tell(self, local: Local, event: Event) -> None:
        stack = local.stack
        if event.kind == RECEIVE:
            assert event.packet is not None
            stack.receive(event.source, event.packet)
        elif event.kind == CAST:
            m = self.message(event.process, len(local.casts), event.number)
            local.casts = (*local.casts, event.number)
            local.history = (*local.history, cast_entry(m.id, event.number))
            stack.cast(m)
        elif event.kind == TIMER:
            local.forget_timer(event.level, event.name)
            stack.timer(event.level, event.name)
        elif event.kind == CHOICE:
            local.offers = local.offers[1:]
            stack.choose(event.level, event.name, event.number)
        elif event.kind == CRASH:
            local.crashed = True
            local.timers = ()
            local.offers = ()
        elif event.kind == SUSPECT:
            local.suspects = tuple(sorted([*local.suspects, event.source]))
            stack.notice(Suspect(event.source))

    def _perform(self, local: Local, outputs: list[int]) -> None:
        for effect in local.stack.take_effects():
            self._do(local, effect, outputs)

    def _do(self, local: Local, effect: Effect, outputs: list[int]) -> None:
        if isinstance(effect, Send):
            for target in effect.to:
                if target >= self.followed:
                    raise ClientAddressedError
                event = Event(RECEIVE, target, local.process, effect.packet, 0, "", 0)
                outputs.append(self.event(event))
        elif isinstance(effect, Deliver):
            self._deliver(local, effect.message)
        elif isinstance(effect, SetTimer):
            at_once = effect.ticks == 0
            if not at_once:
                self.timers_seen = True
            local.forget_timer(effect.level, effect.name)
            local.timers = tuple(sorted([*local.timers, (effect.level, effect.name, at_once)]))
        elif isinstance(effect, CancelTimer):
            local.forget_timer(effect.level, effect.name)
        elif isinstance(effect, Offer):
            local.offers = (*local.offers, (effect.level, effect.name, effect.options))
        elif isinstance(effect, Save):
            kept = [entry for entry in local.saved if entry[0] != effect.level]
            local.saved = (*kept, (effect.level, effect.value))

    def _deliver(self, local: Local, m: Message) -> None:
        entry = delivery_entry(m.id)
        if not local.problem:
            if entry in local.history:
                local.problem = "integrity: delivered twice"
            elif local.process not in m.destinations:
                local.problem = "integrity: delivered where it is not addressed to"
        local.history = (*local.history, entry)

    def _sort_out(self, event: Event) -> None:
        """Events that differ only in what their packets carry are of one sort."""
        packet = event.packet
        if packet is not None:
            about = self._codec.measure(packet).about
            label = f"{event.source}>{event.process} {_type_names(packet)} {about}"
        else:
            label = f"{KINDS[event.kind]} {event.process} {event.name} {event.number}"
        event.label = label
        sort = self._sort_numbers.get(label)
        if sort is None:
            sort = self._sort_numbers[label] = len(self.sorts)
            self.sorts.append(label)
            self.sort_process.append(event.process)
            self.sort_source.append(event.source if packet is not None else -1)
            self.leads.append(0)
        event.sort = sort


def _type_names(packet: Packet) -> str:
    names = type(packet).__name__
    for name, _ in packet.FIELDS:
        value: object = getattr(packet, name)
        if isinstance(value, Message) and isinstance(value.payload, Packet):
            names += " " + _type_names(value.payload)
    return names
