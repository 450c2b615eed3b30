"""A layer: one protocol at one process, as a deterministic state machine.

A layer is told things through its `on_...` handlers and asks for things through
`send`, `deliver`, `set_timer` and the other verbs. What it asks for happens after the
handler has returned, in the order it was asked, so no layer is ever entered again
half-updated. Equal state and equal events give equal effects: a layer has no clock, no
randomness and no input or output of its own.

State is attributes holding integers, strings, tuples, messages and packets, lists, dicts and
sets of those, and records: parts of the state with a name. `flexgroup.core.state` copies and
fingerprints it.
"""

from __future__ import annotations

from operator import is_
from typing import Any, ClassVar, Self, dataclass_transform, final

from mypy_extensions import mypyc_attr

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.fields import declared_only, derive, names_of
from flexgroup.core.guarantees import NOTHING, Guarantees
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import Replicas
from flexgroup.core.seals import Notary


@dataclass_transform(eq_default=False)
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Record:
    """A part of a layer's state: a few values that belong together, and what is done with them.

    A subclass declares its fields as annotations, with the types that state may have; constructor
    and copy follow from them (`flexgroup.core.fields`). A record is an attribute of a layer or of
    another record, or stands in a list or a dict there. Only one place of the state may refer to
    it: a copy of the state copies it, with all that it holds.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        derive(cls, copies=deeply_copied)

    def copy(self) -> Self:
        """A record of equal values, which shares only what never changes; derived."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        if type(self).__dictoffset__ != 0:
            declared_only(self)
            declared_only(other)
        return all(getattr(self, name) == getattr(other, name) for name in names_of(type(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names_of(type(self)))
        return f"{type(self).__name__}({fields})"


def deeply_copied(value: Any) -> Any:
    """A copy of what a field of a record holds, however nested; it shares what never changes."""
    if value is None:
        return None
    if isinstance(value, Record):
        return value.copy()
    if isinstance(value, dict):
        if type(value) is not dict:
            twin = value.copy()  # a defaultdict stays one
            for key, item in value.items():
                twin[key] = deeply_copied(item)
            return twin
        return {
            key: item.copy() if isinstance(item, Record) else deeply_copied(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [item.copy() if isinstance(item, Record) else deeply_copied(item) for item in value]
    if isinstance(value, tuple):
        items = [deeply_copied(item) for item in value]
        if all(map(is_, items, value)):
            return value
        return getattr(type(value), "_make", tuple)(items)
    if isinstance(value, set):
        return value.copy()
    return value


def copied(value: Any) -> Any:
    """A copy of an attribute of a layer, which shares only what never changes.

    Lists, dicts and sets in there hold immutable values or records, which nest whatever they like.
    """
    if isinstance(value, dict):
        return {
            key: item.copy() if isinstance(item, Record) else item for key, item in value.items()
        }
    if isinstance(value, list):
        return [item.copy() if isinstance(item, Record) else item for item in value]
    if isinstance(value, set):
        return value.copy()
    if isinstance(value, Record):
        return value.copy()
    return value


@final
class Context:
    """Where a layer runs: its process, how many processes there are, its options.

    The members are numbered 0 to size - 1, in the total order that some protocols rest
    on. A process with a number from `size` on is a client: it may multicast, and never
    delivers.
    """

    __slots__ = ("groups", "notary", "options", "process", "replicas", "size")

    def __init__(
        self,
        process: int,
        size: int,
        options: frozenset[str] = frozenset(),
        groups: tuple[tuple[int, ...], ...] = (),
        replicas: Replicas = (),
        notary: Notary | None = None,
    ) -> None:
        self.process = process
        self.size = size
        self.options = options
        self.groups = groups
        """The sets of processes that messages go to, their origins included, if they are known
        at the start; empty: any set may occur, so everyone is everyone's peer."""
        self.replicas = replicas
        """The groups of replicas that the processes are divided into, if they are. Unlike the sets
        above they are disjoint, and a message may go to several of them."""
        self.notary = notary
        """Who makes and checks seals here, if anybody does."""


@dataclass_transform(eq_default=False, frozen_default=True)
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Effect:
    """Something a layer asked for."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        derive(cls)


@final
@mypyc_attr(acyclic=True)
class Send(Effect):
    """Send a packet to each of these processes, through the layer below."""

    to: tuple[int, ...]
    packet: Packet


@final
@mypyc_attr(acyclic=True)
class Deliver(Effect):
    """Deliver a message to the layer above."""

    message: Message


@final
class SetTimer(Effect):
    """Call `on_timer(name)` after this many ticks; a timer of that name is replaced."""

    level: int
    name: str
    ticks: int


@final
class CancelTimer(Effect):
    """Do not call `on_timer(name)` any more."""

    level: int
    name: str


@final
class Offer(Effect):
    """Let the world choose one of 0 .. options - 1; the only source of randomness."""

    level: int
    name: str
    options: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Store(Effect):
    """Change what this layer has in stable storage; effects asked for later wait for that.

    Those that follow one another are made durable together: all of them, or none.
    """

    level: int


@final
class Save(Store):
    """Keep this in the place of what was saved before."""

    packet: Packet
    covers: int = -1
    """The state that it tells is that after so many messages of the layer below, which need not be
    delivered again; -1: it says nothing of them."""


@final
class Write(Store):
    """Write this entry of the log, in the place of one with the same number, if there is one."""

    number: int
    packet: Packet


@final
class Truncate(Store):
    """Drop the entries of the log before this one."""

    first: int


@final
class Archive(Store):
    """Set aside the entries of the log before this one: they need not be at hand any more, and can
    be recalled."""

    first: int


@final
class Recall(Effect):
    """Call `on_recall` with entries of the log, also with those that were set aside.

    They are those from `first` on, and not beyond `last`: as many as the world likes, at least one
    and at most `most`.
    """

    level: int
    first: int
    last: int
    most: int
    about: int
    """Whatever the layer wants to be reminded of."""


@final
class Stored(Record):
    """What a layer finds in stable storage when its process starts again."""

    saved: Packet | None = None
    """What it saved last; None if it never did."""
    log: dict[int, Packet] = {}
    """The entries that it wrote and neither dropped nor set aside, by number."""
    first: int = 0
    """The number before which it dropped all entries."""
    delivered: int = 0
    """How many of the messages that it delivered are still known above it. An application has all
    of them, since it remembers what it was given; another layer those that it saved a state of, if
    it ever did."""
    archived: int = 0
    """The number before which it set aside all entries that it did not drop."""
    archive: dict[int, Packet] = {}
    """These, by number, unless the world has them elsewhere."""

    def drop(self, first: int) -> None:
        """Drop the entries before this one."""
        self.first = first
        for entries in (self.log, self.archive):
            for number in [other for other in entries if other < first]:
                del entries[number]

    def keep(self, effect: Store) -> None:
        """Change it as a layer has asked for."""
        if isinstance(effect, Save):
            self.saved = effect.packet
        elif isinstance(effect, Write):
            self.log[effect.number] = effect.packet
        elif isinstance(effect, Truncate):
            self.drop(effect.first)
        elif isinstance(effect, Archive):
            self.archive.update(self.set_aside(effect.first))

    def recalled(self, asked: Recall) -> list[tuple[int, Packet]]:
        """The entries that are asked for, as many as may be told at once, ascending."""
        entries = {**self.archive, **self.log}
        numbers = sorted([number for number in entries if asked.first <= number < asked.last])
        return [(number, entries[number]) for number in numbers[: asked.most]]

    def set_aside(self, first: int) -> list[tuple[int, Packet]]:
        """Take the entries before this one out of the log, and return them, ascending."""
        self.archived = first
        numbers = sorted([other for other in self.log if other < first])
        return [(number, self.log.pop(number)) for number in numbers]


@mypyc_attr(allow_interpreted_subclasses=True)
class Notice(Effect):
    """News about the processes, passed upwards from layer to layer."""


@final
class View(Notice):
    """These processes are the members from now on.

    The first view, with number 0, is that of all processes, and is told to nobody.
    """

    number: int
    members: tuple[int, ...]


@final
class GroupCreate(Notice):
    """There is this group, and messages may go to it.

    It is told at the start, too, of the groups that are there already.
    """

    group: int
    """Unique for ever: a group that is created anew under the same name is another."""
    name: str
    view: int
    """Counts the changes of its members."""
    processes: tuple[int, ...]
    """The processes that its members are at, ascending: the destinations of its messages."""
    members: tuple[str, ...]
    """The names of the members, in the order in which they joined."""


@final
class GroupUpdate(Notice):
    """Somebody joined or left a group: these are its members from now on."""

    group: int
    view: int
    processes: tuple[int, ...]
    members: tuple[str, ...]


@final
class GroupDestroy(Notice):
    """This group has ended."""

    group: int


@final
class Suspect(Notice):
    """A failure detector takes this process for crashed."""

    process: int


@final
class Trust(Notice):
    """A failure detector no longer suspects this process."""

    process: int


@final
class Leader(Notice):
    """A leader oracle names the member of this process's group of replicas that should lead it.

    It is told whenever suspicions within the group change; before that, the lowest member leads,
    and all are trusted.
    """

    process: int
    trusted: tuple[int, ...]
    """The members of the group that are not suspected here, ascending."""


@final
class WriteCompleted(Notice):
    """A protected write of this process has landed in the memory of another one, or failed.

    It fails if the writer had not the target's permission when the write arrived there.
    """

    process: int
    """The target."""
    packet: Packet
    """What was written."""
    landed: bool


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer:
    """The base of every protocol."""

    __slots__ = ("context", "effects", "is_top", "level", "process", "size")

    NEEDS: ClassVar[Guarantees] = NOTHING
    """What the layer below, or the network, must guarantee."""

    GIVES: ClassVar[Guarantees] = NOTHING
    """What this layer guarantees to the one above, whatever is below."""

    KEEPS: ClassVar[Guarantees] = NOTHING
    """What this layer guarantees above if it is guaranteed below."""

    PACKETS: ClassVar[tuple[type[Packet], ...]] = ()
    """Every packet type; the position in this tuple is the type's tag on the wire."""

    UNORDERED: ClassVar[tuple[type[Packet], ...]] = ()
    """Packets, without messages, that only have to arrive. If this is the top layer, they pass by
    those below that would put them in order."""

    ONE_SIDED: ClassVar[tuple[type[Packet], ...]] = ()
    """Packets that the target's network adapter takes in: they cost its processor nothing."""

    COMPLETIONS: ClassVar[tuple[type[Packet], ...]] = ()
    """Those of them that an adapter sends as well: they leave when what they answer has arrived,
    however busy the processor is, and cost it nothing."""

    ABOUT_THE_SAME: ClassVar[tuple[type[Packet], ...]] = ()
    """Packets that name no message and are about those of the packet upon which they are sent, as
    votes are that name a slot of a log."""

    HOSTED: ClassVar[tuple[type[Packet], ...]] = ()
    """The packets of the layers that this one can run inside itself, as a part of its state:
    messages in its own packets carry them, and these carry the packets of the layer above."""

    CLOSED: ClassVar[bool] = False
    """Only members multicast: what a client wants sent is cast by a member on its behalf."""

    BROADCAST: ClassVar[bool] = False
    """Every message goes to all members: a message to some is sent to all, and the rest drop it."""

    HEEDS_GROUPS: ClassVar[bool] = False
    """It wants to be told which groups use the stack, and who is in them: `GroupCreate`,
    `GroupUpdate`, `GroupDestroy`."""

    STORED: ClassVar[tuple[type[Packet], ...]] = ()
    """Every packet type that it keeps in stable storage; the position is the type's tag there."""

    RECORDS: ClassVar[tuple[type[Record], ...]] = ()
    """Every type of record in its state, if another layer that hosts it stores that state."""

    NEEDS_REPLICAS: ClassVar[bool] = False
    """It works only where the processes are divided into groups of replicas."""

    AMONG_LIARS: ClassVar[bool] = False
    """Any process may lie: what it refuses of what the layer below delivers is dropped, so that it
    harms neither who brought it nor what comes with it."""

    NEEDS_SEALS: ClassVar[bool] = False
    """It seals packets, or checks the seals of others, and works only where there is a notary."""

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """The options a stack may ask for, written `name/option`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.process = context.process
        self.size = context.size
        self.level = 0
        self.is_top = True
        """What it delivers goes to the application, and not to another layer."""
        self.effects: list[Effect] = []

    # What a layer is told.

    def on_start(self) -> None:
        """The process starts for the first time."""

    def on_restart(self, stored: Stored) -> None:
        """The process starts again after a crash, with what this layer has in stable storage."""

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        """Entries that were asked for, ascending."""

    def on_covered(self, count: int) -> None:
        """The layer above has saved what it made of the first so many messages that this one
        delivered: it need not be told of them again."""

    def on_cast(self, m: Message) -> None:
        """The layer above, or the application, multicasts a message."""
        raise NotImplementedError

    def on_packet(self, sender: int, packet: Packet) -> None:
        """A packet came from the same layer at another process, or at this one."""
        raise NotImplementedError

    def on_timer(self, name: str) -> None:
        """A timer ran out."""

    def on_choice(self, name: str, chosen: int) -> None:
        """The world chose among the options that were offered under this name."""

    def on_notice(self, notice: Notice) -> None:
        """News from below. Layers that do not care pass it on."""
        self.pass_on(notice)

    def held_back(self) -> list[Message]:
        """What it has got in its order and holds back, when the world ends the stack."""
        return []

    # What a layer asks for.

    def send(self, to: tuple[int, ...], packet: Packet) -> None:
        self.effects.append(Send(to, packet))

    def deliver(self, m: Message) -> None:
        self.effects.append(Deliver(m))

    def set_timer(self, name: str, ticks: int) -> None:
        self.effects.append(SetTimer(self.level, name, ticks))

    def cancel_timer(self, name: str) -> None:
        self.effects.append(CancelTimer(self.level, name))

    def offer(self, name: str, options: int) -> None:
        self.effects.append(Offer(self.level, name, options))

    def save(self, packet: Packet, covers: int = -1) -> None:
        self.effects.append(Save(self.level, packet, covers))

    def write(self, number: int, packet: Packet) -> None:
        self.effects.append(Write(self.level, number, packet))

    def truncate(self, first: int) -> None:
        self.effects.append(Truncate(self.level, first))

    def archive(self, first: int) -> None:
        self.effects.append(Archive(self.level, first))

    def recall(self, first: int, last: int, most: int, about: int) -> None:
        self.effects.append(Recall(self.level, first, last, most, about))

    def pass_on(self, notice: Notice) -> None:
        self.effects.append(notice)

    def is_for_me(self, m: Message) -> bool:
        """This process is a destination of m, and all others exist."""
        return self.process in m.destinations and m.destinations[-1] < self.size

    def seal(self, packet: Packet) -> bytes:
        """The proof that this process has said this, for whoever the packet is quoted to."""
        return self._notary().seal(self.level, packet)

    def is_sealed(self, process: int, packet: Packet, seal: bytes) -> bool:
        """This seal is that of a process on this packet of the same layer there."""
        return self._notary().is_sealed(process, self.level, packet, seal)

    def _notary(self) -> Notary:
        notary = self.context.notary
        if notary is None:
            raise UsageError(
                f"{type(self).__name__} asks for a seal, and there is no notary; say that it "
                "NEEDS_SEALS, so that it is refused where there is none"
            )
        return notary

    def refuse(self, sender: int, packet: Packet) -> PeerError:
        """The error for a packet that this protocol does not know; to be raised."""
        return PeerError(
            f"process {sender} sent {type(packet).__name__}, "
            f"which {type(self).__name__} at process {self.process} cannot take here"
        )
