"""A host: one process as every world drives it.

A *host* owns the stack of a process and all that is known of the process besides: whether it is
up, which timers are set, which offers are open, what it has in stable storage, how long its
history is, and at which depth it heard of each message. A *world* moves packets, passes time, and
lets things fail. It tells a host what happens (`start`, `cast`, `receive`, `timer`, `choose`,
`notice`, `crash`, `recover`), and the host asks of it what only a world can do (`World`). All
that happens goes into the host's journal, if it has one.

    class Loopback(World):
        def on_send(self, host, to, transmission):
            for target in to:
                step = host.sent(target, transmission)
                hosts[target].receive(0, host.process, transmission, step)

Times are whatever the world's clock says; the host only writes them down.

The depth of a delivery is the number of communication steps from the multicast to it. A packet
that a process sends because of what it received about the same message is one step deeper than
what it received. If a process does nothing about a message when it hears of it, it remembers the
depth, and what it does later about that message continues from there; in doing so it forgets the
depth. A process that crashes forgets all depths. A packet with several messages has a depth for
each, and one that names none may be about those of the packet upon which it is sent
(`Layer.ABOUT_THE_SAME`).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.journal import (
    CHOICE,
    CRASH,
    RECOVER,
    SUSPECT,
    SUSPECTED,
    TIMER,
    TRUSTED,
    VIEW,
    Journal,
    Transmission,
    choice_detail,
    crash_detail,
    timer_detail,
    told_view_detail,
    view_detail,
)
from flexgroup.core.layer import (
    Archive,
    CancelTimer,
    Deliver,
    Effect,
    Notice,
    Offer,
    Recall,
    Save,
    Send,
    SetTimer,
    Store,
    Stored,
    Suspect,
    Truncate,
    Trust,
    View,
    Write,
)
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet
from flexgroup.core.stack import Stack
from flexgroup.core.state import fork

DEPTHS_KEPT: Final = 1 << 16
"""The number of messages whose depth a process remembers; beyond, it forgets the oldest."""

NEVER: Final = (1 << 62) - 1
"""A time that no clock of a world reaches."""

NUMBERS: Final = 1 << 20
"""How many numbers of messages between layers are set aside at a time: see `Host.numbered`."""

LATER: Final = -1
"""A world's answer to an offer on which it does not decide at once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class World:
    """What a host asks of the world it runs in, effect by effect and in order.

    The order is a promise: when a packet is to be sent or a message delivered, all that the stack
    stored before is in `Host.stored` already, and `on_store` has been called for it.
    """

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        """Let a packet travel to each of these processes, and call `Host.sent` as it leaves."""

    def on_deliver(self, host: Host, m: Message) -> None:
        """Hand a message to the application."""

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        """Call `Host.timer` after so many ticks, unless the timer is cancelled or set anew.

        The answer, be it a deadline or a number, is kept in `Host.timers` for the world.
        """
        return ticks

    def on_cancel_timer(self, host: Host, level: int, name: str, answer: int) -> None:
        """Forget a timer that was set, with what `on_set_timer` answered then."""

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        """Choose one of 0 .. options - 1, or answer LATER and call `Host.choose` in due time."""
        return LATER

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        """Make all of this durable at once, before anything that was asked for afterwards.

        The answer is whether that was done before the process crashed; if not, none of it was.
        """
        return host.time <= host.crash_at

    def has_archive(self, host: Host) -> bool:
        """Whether the world keeps what logs have set aside; otherwise, `Host.stored` does."""
        return False

    def on_recall(self, host: Host, asked: Recall) -> list[tuple[int, Packet]]:
        """Some of the entries that are asked for."""
        return host.stored[asked.level].recalled(asked)

    def on_notice(self, host: Host, notice: Notice) -> None:
        """Take note that a notice has left the stack at the top: no layer held it back."""


@mypyc_attr(allow_interpreted_subclasses=True)
class UntimedWorld(World):
    """A world without time, in which a process may crash between any two of its effects.

    Who performs effects asks before each, except for deliveries, of which it tells afterwards.
    """

    def __init__(self) -> None:
        self.effects_left = NEVER
        """How many effects the process that acts carries out before it crashes."""

    def is_cut(self, host: Host) -> bool:
        """Whether the process has crashed before this effect, which otherwise counts."""
        if host.time > host.crash_at:
            return True
        self.effects_left -= 1
        if self.effects_left == 0:
            host.crash_at = host.time - 1
        return False

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        return not self.is_cut(host)

    def go_on(self, host: Host) -> None:
        """Let all effects happen again, from the next event on."""
        self.effects_left = NEVER
        host.crash_at = NEVER


@final
class Host:
    """One process in a world."""

    __slots__ = (
        "_codec",
        "_heard",
        "_to_store",
        "crash_at",
        "deliveries",
        "depths",
        "journal",
        "numbered",
        "offers",
        "process",
        "stack",
        "step",
        "stored",
        "stores",
        "time",
        "timers",
        "up",
        "world",
    )

    def __init__(
        self, stack: Stack, world: World, codec: Codec, journal: Journal | None = None
    ) -> None:
        self.process = stack.process
        self.stack = stack
        self.world = world
        self.journal = journal
        """If there is none, packets are not measured, steps not counted, and depths not known."""
        self._codec = codec
        self.up = True
        self.time = 0
        """The time at this process, which the world may move on as it performs effects."""
        self.crash_at = NEVER
        """When the process crashes next, if the world knows: nothing it does later happens."""
        self.step = 0
        """How many events the history of the process has."""
        self.timers: dict[tuple[int, str], int] = {}
        """The timers that are set, as (level, name), each with the world's answer."""
        self.offers: list[Offer] = []
        """The offers that are open, the oldest first."""
        self.stored = [Stored() for _ in stack.layers]
        """What each layer has in stable storage; who has `delivered` is told at a restart only."""
        self.stores = 0
        """How often something was made durable."""
        self.deliveries = 0
        """How many messages the application was given, which it remembers whatever happens."""
        self.numbered = NUMBERS
        """No layer has given a message to the layer below this number, or a higher one: who starts
        again numbers from here on, since others may have what it sent before. It is durable, and
        moved on when something is stored."""
        self._to_store: list[Store] = []
        """What was asked for in a row, and is yet to be made durable."""
        self.depths: dict[MessageId, int] = {}
        """The depth at which it heard of each message about which it did nothing then."""
        self._heard: dict[MessageId, int] = {}
        """The depths of the messages, besides one, that the packet being handled is about; negative
        once something was done about them."""

    # What the world tells it.

    def start(self, time: int) -> None:
        self.time = time
        self.stack.start()
        self._act(self.stack.take_effects(), NO_MESSAGE, 0)

    def cast(self, time: int, m: Message) -> None:
        """The application multicasts a message."""
        self.time = time
        journal = self.journal
        if journal is not None:
            journal.multicast(self.process, self.step, time, m)
            self.step += 1
        self.stack.cast(m)
        self._act(self.stack.take_effects(), m.id, 0)

    def cast_again(self, time: int, m: Message) -> None:
        """The application multicasts a message that it multicast before a crash, as its history
        tells already."""
        self.time = time
        self.stack.cast(m)
        self._act(self.stack.take_effects(), m.id, 0)

    def receive(
        self, time: int, sender: int, transmission: Transmission, sent: int = 0, queued: int = 0
    ) -> None:
        """A packet arrives that its sender sent at its step `sent`, after it stood in a queue."""
        self.time = time
        journal = self.journal
        if journal is not None:
            step = self.step
            self.step = step + 1
            journal.receive(self.process, step, time, sender, transmission, sent, queued)
            if transmission.others:
                self._hear(transmission)
        stack = self.stack
        stack.receive(sender, transmission.packet)
        effects = stack.take_effects()
        if effects:
            self._act(effects, transmission.message, transmission.depth)
        elif journal is not None:
            self._remember_depth(transmission.message, transmission.depth)
        if self._heard:
            self._remember_heard()

    def refused(self) -> None:
        """What was received last is what no correct peer sends, and nothing comes of it."""
        self.stack.drop_effects()
        self._heard.clear()

    def timer(self, time: int, level: int, name: str) -> None:
        """A timer that is set runs out."""
        self.time = time
        del self.timers[level, name]
        if self.journal is not None:
            self._record(TIMER, 0, timer_detail(level, name))
        self.stack.timer(level, name)
        self._act(self.stack.take_effects(), NO_MESSAGE, 0)

    def choose(self, time: int, chosen: int) -> None:
        """The world answers the oldest open offer."""
        self.time = time
        offer = self.offers.pop(0)
        self._choose(offer, chosen)
        self._act(self.stack.take_effects(), NO_MESSAGE, 0)

    def notice(self, time: int, notice: Notice) -> None:
        """The failure detector of the world changes its mind, or members change.

        The process installs a view when it leaves the stack at the top.
        """
        self.time = time
        if isinstance(notice, View):
            self._record(VIEW, 0, told_view_detail(notice.number, notice.members))
        else:
            self.note(notice)
        self.stack.notice(notice)
        self._act(self.stack.take_effects(), NO_MESSAGE, 0)

    def crash(self, time: int) -> None:
        """The process stops and loses all but what it stored."""
        self.up = False
        self.time = time
        self.timers.clear()
        self.offers.clear()
        self.depths.clear()
        self._record(CRASH, 0, crash_detail(self.stores))

    def restore(self, time: int, stored: list[Stored], numbered: int = 0) -> None:
        """The process starts again in the place of one that crashed, with what that stored and its
        application remembers, and how far that had set numbers aside; its history goes on at
        `step`."""
        self.crash(time)
        self.stored = [one.copy() for one in stored]
        self.numbered = max(numbered, NUMBERS)
        self.deliveries = self.stored[-1].delivered
        self.stored[-1].delivered = 0
        self.recover(time, self.stack)

    def recover(self, time: int, stack: Stack) -> None:
        """The process starts again, with a new stack and what the old one stored."""
        self.up = True
        self.time = time
        self.stack = stack
        self._record(RECOVER, 0, None)
        found = [stored.copy() for stored in self.stored]
        found[-1].delivered = self.deliveries
        first = self.numbered
        self.numbered += NUMBERS
        stack.restart(found, first)
        self._act(stack.take_effects(), NO_MESSAGE, 0)

    # What the world lets it write down.

    def sent(self, target: int, transmission: Transmission) -> int:
        """A packet leaves now for one target; at which step of the history."""
        step = self.step
        journal = self.journal
        if journal is not None:
            self.step = step + 1
            journal.send(self.process, step, self.time, target, transmission)
        return step

    def delivered(self, m: Message) -> None:
        """A message is delivered now in the place of the stack, which did not ask for it."""
        journal = self.journal
        if journal is not None:
            journal.deliver(self.process, self.step, self.time, m, 0)
            self.step += 1

    def note(self, notice: Notice) -> None:
        """A view is installed, or a suspicion arises or ends, now."""
        if isinstance(notice, Suspect):
            self._record(SUSPECT, notice.process, SUSPECTED)
        elif isinstance(notice, Trust):
            self._record(SUSPECT, notice.process, TRUSTED)
        elif isinstance(notice, View):
            self._record(VIEW, 0, view_detail(notice.number, notice.members))

    def _record(self, kind: int, peer: int, detail: str | None) -> None:
        """Write down something that concerns no message, and happens now."""
        journal = self.journal
        if journal is not None:
            journal.other(kind, self.process, self.step, self.time, peer, detail)
            self.step += 1

    def transmission(self, packet: Packet) -> Transmission:
        """A packet with what the journal says of it; without a journal, the bare packet."""
        journal = self.journal
        if journal is None:
            return Transmission(packet)
        measured = self._codec.measure(packet)
        measured.label = journal.label(packet)
        measured.depth = 1
        return measured

    def fork(self) -> Host:
        """A host in the same state, which shares nothing that changes but world and journal."""
        twin = Host(fork(self.stack), self.world, self._codec, self.journal)
        twin.up = self.up
        twin.time = self.time
        twin.crash_at = self.crash_at
        twin.step = self.step
        twin.timers = self.timers.copy()
        twin.offers = self.offers.copy()
        twin.stored = [stored.copy() for stored in self.stored]
        twin.stores = self.stores
        twin.deliveries = self.deliveries
        twin.numbered = self.numbered
        twin.depths = self.depths.copy()
        return twin

    # What its stack asks for.

    def _act(self, effects: list[Effect], about: MessageId, depth: int) -> None:
        """Do what the stack asked for after an event about a message, at this depth."""
        world = self.world
        journal = self.journal
        answered = False
        moved = NO_MESSAGE
        moved_depth = 0
        sending: Transmission | None = None
        while effects:
            for effect in effects:
                if self._to_store and not isinstance(effect, Store):
                    self._store()
                if isinstance(effect, Send):
                    if sending is not None and effect.packet is sending.packet:
                        pass  # the same packet goes to others as well
                    elif journal is None:
                        sending = Transmission(effect.packet)
                    else:
                        sending = self.transmission(effect.packet)
                        if sending.about_the_same:
                            sending.message = about
                            sending.others = tuple(self._heard)
                        message = sending.message
                        if message == about:
                            sending.depth += depth
                            answered = True
                        elif message == moved:
                            sending.depth += moved_depth
                        elif message != NO_MESSAGE:
                            moved = message
                            moved_depth = self._forget_depth(message)
                            sending.depth += moved_depth
                        if sending.others:
                            self._set_depths(sending, about, depth)
                    world.on_send(self, effect.to, sending)
                elif isinstance(effect, Deliver):
                    sending = None
                    m = effect.message
                    if journal is not None:
                        moved = m.id
                        moved_depth = self._forget_depth(moved)
                        if moved == about:
                            moved_depth = depth
                            answered = True
                    if self.time <= self.crash_at:
                        if journal is not None:
                            journal.deliver(self.process, self.step, self.time, m, moved_depth)
                            self.step += 1
                        self.deliveries += 1
                        world.on_deliver(self, m)
                else:
                    self._do_other(effect)
            if self._to_store:
                self._store()
            effects = self.stack.take_effects()
        if journal is not None and not answered:
            self._remember_depth(about, depth)

    def _do_other(self, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            answer = self.world.on_set_timer(self, effect.level, effect.name, effect.ticks)
            self.timers[effect.level, effect.name] = answer
        elif isinstance(effect, CancelTimer):
            known = self.timers.pop((effect.level, effect.name), None)
            if known is not None:
                self.world.on_cancel_timer(self, effect.level, effect.name, known)
        elif isinstance(effect, Offer):
            chosen = self.world.on_offer(self, effect.level, effect.name, effect.options)
            if chosen == LATER:
                self.offers.append(effect)
            else:
                self._choose(effect, chosen)
        elif isinstance(effect, Recall):
            self.stack.recall(effect, self.world.on_recall(self, effect))
        elif isinstance(effect, Store):
            self._check_store(effect)
            self._to_store.append(effect)
        elif isinstance(effect, Notice):
            if isinstance(effect, View):
                if self.time > self.crash_at:
                    return
                self.note(effect)
            self.world.on_notice(self, effect)

    def _store(self) -> None:
        """Have made durable what was asked for in a row."""
        effects = self._to_store
        self._to_store = []
        if not self.world.on_store(self, effects):
            return
        self.stores += 1
        if max(self.stack.sent_counts()) >= self.numbered - NUMBERS // 2:
            self.numbered += NUMBERS
        for effect in effects:
            stored = self.stored[effect.level]
            if isinstance(effect, Archive) and self.world.has_archive(self):
                stored.set_aside(effect.first)
                continue
            stored.keep(effect)
            if isinstance(effect, Save) and effect.covers >= 0:
                self.stored[effect.level - 1].delivered = effect.covers
                self.stack.covered(effect.level, effect.covers)

    def _check_store(self, effect: Store) -> None:
        """Raise UsageError for what no layer may ask of stable storage."""
        layer = self.stack.layers[effect.level]
        stored = self.stored[effect.level]
        dropped = stored.first
        first = max(dropped, stored.archived)
        for before in self._to_store:
            if before.level == effect.level:
                if isinstance(before, Truncate):
                    dropped = before.first
                    first = max(first, dropped)
                elif isinstance(before, Archive):
                    first = before.first
        number = first
        packet: Packet | None = None
        if isinstance(effect, Save):
            packet = effect.packet
        elif isinstance(effect, Write):
            number = effect.number
            packet = effect.packet
        elif isinstance(effect, Archive):
            number = effect.first
        elif isinstance(effect, Truncate):
            number = effect.first
            first = dropped
        who = f"{type(layer).__name__} at process {self.process}"
        if number < first:
            raise UsageError(
                f"{who} goes back to entry {number} of its log, which was truncated or set aside "
                f"to begin at {first}: what was dropped is gone, and what was set aside can only "
                "be recalled"
            )
        if packet is not None and type(packet) not in layer.STORED:
            raise UsageError(
                f"{who} stores {type(packet).__name__}, which its STORED does not name; add it, "
                "or nobody can read it again"
            )

    def _choose(self, offer: Offer, chosen: int) -> None:
        if self.journal is not None:
            self._record(CHOICE, 0, choice_detail(offer.level, offer.name, chosen))
        self.stack.choose(offer.level, offer.name, chosen)

    def _remember_depth(self, message: MessageId, depth: int) -> None:
        depths = self.depths
        if message != NO_MESSAGE and depth > depths.get(message, 0):
            if len(depths) >= DEPTHS_KEPT:
                del depths[next(iter(depths))]
            depths[message] = depth

    def _forget_depth(self, message: MessageId) -> int:
        if self._heard:
            heard = abs(self._heard.get(message, 0))
            if heard:
                self._heard[message] = -heard
                self.depths.pop(message, None)
                return heard
        depth = self.depths.get(message, 0)
        if depth:
            del self.depths[message]
        return depth

    def _set_depths(self, sending: Transmission, about: MessageId, depth: int) -> None:
        """Tell the depth of each message but the first that a packet is about."""
        depths: list[int] = []
        for message in sending.others:
            before = depth if message == about else self._forget_depth(message)
            depths.append(before + 1)
        sending.depths = tuple(depths)

    def _hear(self, transmission: Transmission) -> None:
        """Take note of the depth of each message but the first that a packet is about.

        What came over a network has one depth for all.
        """
        others = transmission.others
        depths = transmission.depths or (transmission.depth,) * len(others)
        for message, depth in zip(others, depths, strict=True):
            if message != transmission.message:
                self._heard[message] = max(depth, self._heard.get(message, 0))

    def _remember_heard(self) -> None:
        for message, depth in self._heard.items():
            if depth > 0:
                self._remember_depth(message, depth)
        self._heard.clear()
