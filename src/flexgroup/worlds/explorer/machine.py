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
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.host import NEVER, Host, UntimedWorld
from flexgroup.core.journal import Transmission
from flexgroup.core.layer import Notice, Store, Suspect, Trust, View
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of, seq_of
from flexgroup.core.stack import BuildStack, Stack
from flexgroup.core.state import fingerprint, fork, write_canonically
from flexgroup.worlds.explorer.scope import MOST_PROCESSES, Scope

RECEIVE: Final = 0
CAST: Final = 1
TIMER: Final = 2
CHOICE: Final = 3
CRASH: Final = 4
SUSPECT: Final = 5
TOLD: Final = 6
RESTART: Final = 7
TRUST: Final = 8
CUT: Final = 9

KINDS: Final = (
    "receive", "cast", "timer", "choice", "crash", "suspect", "view", "restart", "trust", "cut"
)  # fmt: skip

KEPT: Final = 0
LOST: Final = 1
"""What becomes of the packets that are in flight to a process when it starts again."""

MOST_EFFECTS: Final = 1 << 16
"""No event has as many effects."""


ALWAYS_TWICE: Final = 50
TWICE_OF: Final = 16
"""So many steps are computed twice, and one in so many of the later ones, to see that they are the
same: a layer that draws random numbers cannot be explored."""


class ClientAddressedError(Exception):
    """A packet was sent to a client that the search does not follow."""


def short(digest: bytes) -> int:
    """Sixty-two bits of a digest: what compiled code keeps in a register."""
    return int.from_bytes(digest[:8], "big") >> 2


def cast_entry(message: MessageId, place: int) -> int:
    """The entry of a history for the multicast of the message at this place in the scope."""
    return (message << 6 | place) << 1 | 1


def delivery_entry(message: MessageId) -> int:
    """The entry of a history for the delivery of this message."""
    return message << 7


def view_entry(number: int, members: tuple[int, ...]) -> int:
    """The entry of a history for the installation of a view."""
    bits = 0
    for member in members:
        bits |= 1 << member
    return (number << MOST_PROCESSES | bits) << 7 | 2


def is_cast(entry: int) -> bool:
    return entry & 1 == 1


def is_delivery(entry: int) -> bool:
    return entry & 127 == 0


def is_view(entry: int) -> bool:
    return entry & 127 == 2


def view_in(entry: int) -> int:
    """What tells a view from others: its number and members."""
    return entry >> 7


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
        """The sender of a packet; the process that is suspected."""
        self.packet = packet
        self.level = level
        self.name = name
        self.number = number
        """The option of a choice; the place of a cast in the scope; the number of a view; 1 for a
        timer that runs out at once, and 0 for any other; KEPT or LOST; what `cut_short` says."""
        out = bytearray()
        write_canonically(out, (kind, process, source, level, name, number))
        if packet is not None:
            write_canonically(out, packet)
        self.fingerprint = short(blake2b(out, digest_size=16).digest())
        self.label = ""
        self.sort = 0
        """The number that stands for the label."""


def cut_short(event: Event, effects: int) -> Event:
    """The same event, during which the process crashes, after so many effects."""
    number = (event.number * len(KINDS) + event.kind) * MOST_EFFECTS + effects
    return Event(CUT, event.process, event.source, event.packet, event.level, event.name, number)


def effects_of_cut(event: Event) -> int:
    return event.number % MOST_EFFECTS


def before_cut(event: Event) -> Event:
    """The event that was cut short."""
    number, kind = divmod(event.number // MOST_EFFECTS, len(KINDS))
    return Event(kind, event.process, event.source, event.packet, event.level, event.name, number)


@final
class Local:
    """The state of one process: its host, and what the search wants to know of it."""

    __slots__ = ("casts", "fingerprint", "history", "host", "idle", "offers", "order", "own",
                 "problem", "restarted", "suspects", "timers", "view")  # fmt: skip

    def __init__(self, host: Host) -> None:
        self.host = host
        self.history: tuple[int, ...] = ()
        """What it multicast, delivered and installed, in order: see `cast_entry`, `delivery_entry`
        and `view_entry`."""
        self.casts: tuple[int, ...] = ()
        """The places, in the scope, of the casts it has made."""
        self.suspects: tuple[int, ...] = ()
        self.view = 0
        """The number of the last view that it was told of."""
        self.restarted = False
        """It has crashed and started again."""
        self.problem = ""
        """What it did wrong; such a process does no more."""
        # The rest is known when the state is complete: see `seal` and `Machine.enrol`.
        self.timers: tuple[tuple[int, str, int], ...] = ()
        """The timers that are set: level, name, and whether each runs out at once."""
        self.offers: tuple[tuple[int, str, int], ...] = ()
        """The offers that are open: level, name, and how many options there are."""
        self.fingerprint = 0
        self.order = 0
        """The number of its history among all histories."""
        self.own: list[int] = []
        """The events that need no packet: casts, timers, choices."""
        self.idle = False
        """It takes no packets: it crashed, failed, or waits for a choice."""

    def twin(self) -> Local:
        other = Local(self.host.fork())
        other.history = self.history
        other.casts = self.casts
        other.suspects = self.suspects
        other.view = self.view
        other.restarted = self.restarted
        other.problem = self.problem
        return other

    @property
    def crashed(self) -> bool:
        return not self.host.up

    def seal(self, with_stored: bool) -> None:
        """Take the fingerprint: what happened at this process has happened.

        What it has in stable storage counts only where it may start again, or recall it.
        """
        host = self.host
        if host.timers:
            running = [(level, name, at_once) for (level, name), at_once in host.timers.items()]
            self.timers = tuple(sorted(running))
        if host.offers:
            self.offers = tuple([(offer.level, offer.name, offer.options) for offer in host.offers])
        out = bytearray(fingerprint(host.stack))
        write_canonically(out, (host.process, self.history, self.casts, self.timers))
        write_canonically(out, (self.offers, self.suspects, host.up, self.problem))
        if with_stored or any(stored.archived for stored in host.stored):
            write_canonically(out, (host.stored, self.restarted))
        if self.view:
            write_canonically(out, self.view)
        self.fingerprint = short(blake2b(out, digest_size=16).digest())


@final
class LocalStep:
    """The state that follows, and the events (packets that can arrive) that are new."""

    __slots__ = ("after", "cuts", "outputs", "seen")

    def __init__(self, after: int, outputs: list[int], seen: bool, cuts: list[int]) -> None:
        self.after = after
        self.outputs = outputs
        self.seen = seen
        """Something was delivered, multicast, or went wrong: the properties must look."""
        self.cuts = cuts
        """The same event with a crash before or after something is stored, as events."""


@final
class Machine(UntimedWorld):
    """The world of one step, and the tables of events, states of processes, and steps."""

    def __init__(self, scope: Scope, followed: int, codec: Codec, build: BuildStack) -> None:
        super().__init__()
        self.size = scope.processes
        self.left_out = [
            process
            for process in range(scope.processes)
            if any(process not in view for view in scope.views)
        ]
        self.crashes_by_name = scope.crashes_by_name
        self.suspicions_by_name = scope.suspicions_by_name
        self.liars = frozenset(dict(scope.liars))
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
        """The sorts of events, as bits, that each sort was seen to give rise to."""
        self.growth = 0
        self.timers_seen = False
        self._scope = scope
        self._codec = codec
        self._build = build
        self._stores: list[int] = []
        """The places, among the effects of this step, of what was stored."""
        self._event_numbers: dict[int, int] = {}
        self._local_numbers: dict[int, int] = {}
        self._history_numbers: dict[tuple[int, ...], int] = {}
        self._sort_numbers: dict[str, int] = {}
        self._steps: dict[int, LocalStep] = {}
        self._acting: Local | None = None
        """The process whose step is being computed."""
        self._outputs: list[int] = []
        """The packets that it has sent in this step."""

    def forget(self) -> None:
        """Let go of all states, when the search is over.

        Hosts refer to the machine as their world, so they would otherwise stay in memory until
        the garbage collector looks for cycles, which takes it the longer the more there are.
        """
        self.locals.clear()
        self._acting = None

    def step(self, local: int, event: int) -> LocalStep:
        key = (local << 30) | event
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._compute(local, event)
        return known

    def first(self, stack: Stack) -> LocalStep:
        """The state in which a process starts, and what it sends then."""
        local = Local(Host(stack, self, self._codec))
        self._begin(local)
        local.host.start(0)
        return LocalStep(self.enrol(local), self._outputs, True, [])

    def tell(self, local: Local, event: Event) -> list[int]:
        """Let an event happen to a process whose state need not be kept; return what it sends.

        What a handler raises comes out, and then the state is of no use any more.
        """
        self._begin(local)
        self._tell(local, event)
        return self._outputs

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
        local.seal(self._scope.bounds.restarts > 0)
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

    def _possible_casts(self, local: Local) -> list[int]:
        """The places, in the scope, of what a process may multicast next."""
        scope = self._scope
        left = [
            place
            for place, cast in enumerate(scope.casts)
            if cast.origin == local.host.process and place not in local.casts
        ]
        return left if scope.any_order else left[:1]

    def _own_events(self, local: Local) -> list[int]:
        process = local.host.process
        if local.crashed or local.problem:
            return []
        if local.offers:
            level, name, options = local.offers[0]
            return [
                self.event(Event(CHOICE, process, process, None, level, name, chosen))
                for chosen in range(options)
            ]
        found = [
            self.event(Event(CAST, process, process, None, 0, "", place))
            for place in self._possible_casts(local)
        ]
        if local.view < len(self._scope.views):
            told = Event(TOLD, process, process, None, 0, "", local.view + 1)
            found.append(self.event(told))
        # A timer of no ticks is not a matter of time: it is sure to run out, as soon as the process
        # has handled what is at hand. So it is always possible and draws on no stock.
        for level, name, at_once in local.timers:
            if at_once or self._scope.bounds.timers > 0:
                found.append(self.event(Event(TIMER, process, process, None, level, name, at_once)))
        return found

    def may_crash(self, process: int) -> bool:
        crashing = self._scope.crashing
        return not crashing or process in crashing

    def may_suspect(self, process: int, suspect: int) -> bool:
        """Tell whether the scope allows the one to suspect the other wrongly."""
        suspecting = self._scope.suspecting
        return not suspecting or (process, suspect) in suspecting

    def _compute(self, number: int, event_number: int) -> LocalStep:
        before = self.locals[number]
        event = self.events[event_number]
        after = self._told(before, event)
        outputs = self._outputs
        cuts = self._cuts(event) if event.kind not in (CRASH, CUT) else []
        reached = self.enrol(after)
        after = self.locals[reached]
        computed = len(self.recipes)
        if not after.problem and (computed < ALWAYS_TWICE or computed % TWICE_OF == 0):
            self._check_again(before, event, after, outputs)
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
        return LocalStep(reached, outputs, seen, cuts)

    def _told(self, before: Local, event: Event) -> Local:
        """Return the state of a process told of an event; what it sends is in `_outputs`."""
        after = before.twin()
        self._begin(after)
        try:
            self._tell(after, event)
        except (ClientAddressedError, UsageError):
            raise  # it is the question that makes no sense
        except PeerError as error:
            if event.source in self.liars:
                after.host.refused()  # as it should
            else:
                self._go_wrong(before, after, error)
        except Exception as error:
            self._go_wrong(before, after, error)
        return after

    def _go_wrong(self, before: Local, after: Local, error: Exception) -> None:
        """Note what a handler has raised, which is what the search is looking for."""
        after.problem = f"{type(error).__name__}: {error}"
        after.host.stack = fork(before.host.stack)

    def _check_again(self, before: Local, event: Event, after: Local, outputs: list[int]) -> None:
        """Refuse a layer that does one thing now and another the next time."""
        again = self._told(before, event)
        again.seal(self._scope.bounds.restarts > 0)
        if again.fingerprint != after.fingerprint or self._outputs != outputs:
            raise UsageError(
                f"the same event in the same state ({event.label}) did two different things to "
                f"process {event.process}, so nothing can be said of all schedules; a layer draws "
                "no random numbers and reads no clock: have it offer a choice (Offer) or set a "
                "timer, and try it with: flexgroup conform MODULE"
            )

    def _begin(self, local: Local) -> None:
        self._acting = local
        self._outputs = []
        self._stores = []
        self.effects_left = NEVER

    def _cuts(self, event: Event) -> list[int]:
        """The ways in which this step could end with a crash that is not as one before or after.

        Where nothing is stored in between, a crash a little sooner is one with slower packets.
        """
        if not self._scope.bounds.restarts or not self.may_crash(event.process):
            return []
        effects = NEVER - self.effects_left
        places = sorted({*self._stores, *[place + 1 for place in self._stores]})
        return [self.event(cut_short(event, at)) for at in places if 0 < at < effects]

    def _tell(self, local: Local, event: Event) -> None:
        host = local.host
        if event.kind == RECEIVE:
            assert event.packet is not None
            host.receive(0, event.source, Transmission(event.packet))
        elif event.kind == CAST:
            destinations = self._scope.casts[event.number].destinations
            m = Message(message_id(event.process, len(local.casts)), destinations, b"")
            local.casts = (*local.casts, event.number)
            local.history = (*local.history, cast_entry(m.id, event.number))
            host.cast(0, m)
        elif event.kind == TIMER:
            host.timer(0, event.level, event.name)
        elif event.kind == CHOICE:
            host.choose(0, event.number)
        elif event.kind == CRASH:
            host.crash(0)
        elif event.kind == SUSPECT:
            local.suspects = tuple(sorted({*local.suspects, event.source}))
            host.notice(0, Suspect(event.source))
        elif event.kind == RESTART:
            local.suspects = ()
            local.restarted = True
            host.recover(0, self._build(event.process))
        elif event.kind == TRUST:
            local.suspects = tuple([p for p in local.suspects if p != event.source])
            host.notice(0, Trust(event.source))
        elif event.kind == CUT:
            self.effects_left = effects_of_cut(event)
            self._tell(local, before_cut(event))
            self.go_on(host)
            host.crash(0)
        elif event.kind == TOLD:
            local.view = event.number
            host.notice(0, View(event.number, self._scope.views[event.number - 1]))

    # What the host of that process asks for.

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        for target in to:
            if self.is_cut(host):
                return
            if target >= self.followed:
                raise ClientAddressedError
            event = Event(RECEIVE, target, host.process, transmission.packet, 0, "", 0)
            self._outputs.append(self.event(event))

    def on_deliver(self, host: Host, m: Message) -> None:
        local = self._acting
        assert local is not None
        if host.process not in self.liars:
            entry = delivery_entry(m.id)
            if not local.problem:
                local.problem = self._what_is_wrong(local, m)
            local.history = (*local.history, entry)
        self.is_cut(host)

    def _what_is_wrong(self, local: Local, m: Message) -> str:
        """Tell what forbids a process to deliver this message, if anything does."""
        if delivery_entry(m.id) in local.history:
            return "integrity: delivered twice"
        if origin_of(m.id) in self.liars:
            return ""  # nobody knows what it multicast, and to whom
        if local.host.process not in m.destinations:
            return "integrity: delivered where it is not addressed to"
        if self.liars:
            own = [cast for cast in self._scope.casts if cast.origin == origin_of(m.id)]
            if seq_of(m.id) >= len(own):
                return "integrity: delivered, and nobody has multicast it"
            if m.payload != b"" or m.destinations not in [cast.destinations for cast in own]:
                return "integrity: delivered as its origin has not multicast it"
        return ""

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        self._stores.append(NEVER - self.effects_left)
        return super().on_store(host, effects)

    def on_notice(self, host: Host, notice: Notice) -> None:
        local = self._acting
        assert local is not None
        if isinstance(notice, View):
            local.history = (*local.history, view_entry(notice.number, notice.members))

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        if ticks == 0:
            return 1
        self.timers_seen = True
        return 0

    def _sort_out(self, event: Event) -> None:
        """Events that differ only in what their packets carry are of one sort."""
        packet = event.packet
        if packet is not None:
            about = self._codec.measure(packet).message
            label = f"{event.source}>{event.process} {_type_names(packet)} {about}"
        else:
            label = f"{KINDS[event.kind]} {event.process} {event.name} {event.number}"
            if event.kind == SUSPECT:
                label += f" {event.source}"
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
