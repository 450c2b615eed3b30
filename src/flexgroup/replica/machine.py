"""What a replica does, as a state machine: messages, views and calls in, effects out.

Replicas of an object are members of a group with a total order. A call is a message to all, and
each replica applies it at its place in the order; so all have the same state at the same place.

**Each call once.** Calls of a replica are numbered. What a call has returned is kept, as a part of
the state, until the caller says that it knows. A replica that has lost its server comes back as a
newcomer, with the state of those that stayed, and sees there which of its calls were applied: it
takes their outcomes, and sends the others again. A call that comes twice is applied the first time.

**State for newcomers.** A view has one place among the messages, the same at all members. At the
place of the view that lets a newcomer in, the oldest member with the state tells it the state of
that place. The newcomer keeps what follows until it has the state, applies that, and says that it
is ready. If the one that tells it leaves meanwhile, the next one begins again, at the place of the
view without it. All members with the state know who tells whom, since they know it from the order.

A member that is alone, or that all members with the state have left, begins with the state that it
has: none, or what it had when it lost its connection. In the first case that is another state, and
whoever had called in the old one cannot know what became of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from flexgroup.replica.packets import (
    Call,
    Farewell,
    Ledger,
    Packet,
    Part,
    Ready,
    Refused,
    Session,
    decode,
    decode_ledger,
    encode,
)

MOST_DEPARTED = 1_000
"""The outcomes of so many sessions without a member are kept, for when they come back."""


class State(Protocol):
    """The object of which this is a replica."""

    @property
    def methods(self) -> list[str]:
        """The ordered methods, with their parameters."""

    def apply(self, caller: str, method: str, arguments: bytes) -> bytes:
        """Call the method, and return what became of it."""

    def joined(self, member: str) -> None:
        """Take that a member has come to the state."""

    def left(self, member: str) -> None:
        """Take that a member is gone."""

    def pieces(self) -> Iterator[bytes]:
        """Return the state of now, whatever happens to the object while it is drawn."""

    def begin_restoring(self) -> None:
        """Take that pieces of another state follow."""

    def restore(self, piece: bytes) -> None:
        """Take the next piece."""

    def end_restoring(self) -> None:
        """Have the state that has been restored, from now on."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to all members, the sender included."""

    packet: Packet


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell a newcomer the state at the place of this view, piece by piece."""

    newcomer: str
    view: int
    pieces: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """A call of this replica is applied."""

    number: int
    outcome: bytes


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody can know any more whether a call of this replica was applied."""

    number: int


@dataclass(frozen=True, slots=True)
class Begin:
    """This replica has the state, and goes on from here."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """This replica cannot have the state."""

    reason: str


Effect = Send | Tell | Answer | Forget | Begin | GiveUp


@dataclass(slots=True)
class _Pending:
    call: Call
    was_sent: bool = False


@dataclass(frozen=True, slots=True)
class _View:
    number: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Message:
    sender: str
    packet: Packet


@dataclass(slots=True)
class _Waiting:
    """What a newcomer knows until it has the state."""

    kept: list[_View | _Message] = field(default_factory=list)
    """What was delivered since it has entered the group."""
    ready: set[str] = field(default_factory=set)
    """Members that came to the state since, or had it then, of those who are younger."""
    since: dict[str, int] = field(default_factory=dict)
    teller: str = ""
    view: int = -1
    """Who is telling the state, and at the place of which view it is."""
    parts: int = 0
    piece: bytearray = field(default_factory=bytearray)
    ledger: Ledger | None = None


class ReplicaMachine:
    def __init__(self, state: State, session: str) -> None:
        """`session` is a name that no other replica has, ever."""
        self._state = state
        self._session = session
        self._process = ""
        """The name of this replica in the group."""
        self._ledger = Ledger("")
        self._sessions_of: dict[str, str] = {}
        """The sessions of members."""
        self._waiting: _Waiting | None = _Waiting()
        self._teller = ""
        """Who has told this replica the state."""
        self._early: list[tuple[str, Part]] = []
        """What it was told before it knew the view with which it has entered, or the one with which
        all begins again because who has told it the state is gone."""
        self._has_state = False
        """Whether this replica has had the state at some time; if so, it still has that one."""
        self.times_begun = 0
        """How often nobody in the group had the state, so that this replica went on with its
        own."""
        self._numbers = 0
        self._answered = 1  # and so are all calls below this number
        self._pending: dict[int, _Pending] = {}
        self._effects: list[Effect] = []

    @property
    def is_ready(self) -> bool:
        return self._waiting is None

    @property
    def members(self) -> tuple[str, ...]:
        """The members that have the state, the first one since the longest time."""
        return tuple(self._ledger.members)

    def effects(self) -> list[Effect]:
        """Return what is to be done, once."""
        effects, self._effects = self._effects, []
        return effects

    # Calls of this replica.

    def call(self, method: str, arguments: bytes) -> int:
        """Have a method called at all replicas, and return the number of the call."""
        self._numbers += 1
        number = self._numbers
        while self._answered < number and self._answered not in self._pending:
            self._answered += 1
        pending = _Pending(Call(number, self._answered, method, arguments))
        self._pending[number] = pending
        if self.is_ready:
            self._send(pending)
        return number

    def has_sent(self, number: int) -> bool:
        """Whether a call may have reached somebody."""
        pending = self._pending.get(number)
        return pending is None or pending.was_sent

    def withdraw(self, number: int) -> None:
        """Take that nobody waits for a call any more, which may be applied or not."""
        self._pending.pop(number, None)

    def _send(self, pending: _Pending) -> None:
        pending.was_sent = True
        self._effects.append(Send(pending.call))

    # Coming and going.

    def entering(self, process: str) -> None:
        """Take that this replica is about to be a member; that it is, the first view tells."""
        self._process = process
        self._waiting = _Waiting()
        self._early.clear()

    def lost(self) -> None:
        """Take that this replica is no member any more, although it wants to be."""
        self._waiting = _Waiting()

    def leave(self) -> None:
        if self.is_ready:
            self._effects.append(Send(Farewell()))

    # What the group delivers, in its order.

    def viewed(self, number: int, members: tuple[str, ...]) -> None:
        self._happen(_View(number, members))

    def delivered(self, sender: str, body: bytes) -> None:
        self._happen(_Message(sender, decode(body)))

    def _happen(self, event: _View | _Message) -> None:
        waiting = self._waiting
        if isinstance(event, _View):
            if waiting is None:
                self._take_view(event)
            else:
                self._keep_view(waiting, event)
        elif waiting is None:
            self._take(event.sender, event.packet)
        else:
            waiting.kept.append(event)
            if isinstance(event.packet, Ready) and counts(event.packet, waiting.since):
                waiting.ready.add(event.sender)

    def _take(self, sender: str, packet: Packet) -> None:
        match packet:
            case Call():
                self._apply(sender, packet)
            case Ready():
                if counts(packet, self._ledger.since):
                    self._admit(sender, packet.session)
            case Farewell():
                self._ledger.sessions.pop(self._sessions_of.pop(sender, ""), None)

    def _apply(self, sender: str, call: Call) -> None:
        name = self._sessions_of.get(sender)
        if name is None:
            return  # it has no state, or has said farewell
        session = self._ledger.sessions[name]
        if call.answered > session.answered:
            known: Iterable[int] = range(session.answered, call.answered)
            if call.answered - session.answered > len(session.outcomes):
                known = [number for number in session.outcomes if number < call.answered]
            for number in known:
                session.outcomes.pop(number, None)
            session.answered = call.answered
        outcome = session.outcomes.get(call.number)
        if outcome is None:
            if call.number < session.answered:
                return  # the caller has the outcome
            outcome = self._state.apply(sender, call.method, call.arguments)
            session.outcomes[call.number] = outcome
        if name == self._session and self._pending.pop(call.number, None) is not None:
            self._effects.append(Answer(call.number, outcome))

    def _admit(self, member: str, name: str) -> None:
        """A newcomer has come to the state."""
        ledger = self._ledger
        if member in ledger.members or member not in ledger.since:
            return
        if name in ledger.sessions and ledger.sessions[name].process != member:
            return  # it is that of another
        if name in ledger.departed:
            ledger.departed.remove(name)
        ledger.sessions.setdefault(name, Session(member)).process = member
        self._sessions_of[member] = name
        ledger.tellers.pop(member, None)
        ledger.members.append(member)
        if member == self._process:
            self._early.clear()
        self._state.joined(member)

    def _take_view(self, view: _View) -> None:
        ledger = self._ledger
        self._part_from([m for m in ledger.members if m not in view.members])
        follow(ledger.since, view)
        if self._process not in ledger.members and self._teller not in ledger.members:
            # Its word that it is ready does not count any more.
            waiting = _Waiting(ready=set(ledger.members), since=dict(ledger.since))
            self._waiting = waiting
            self._keep_view(waiting, view)
            return
        first = ledger.members[0]
        untold = [
            member
            for member in view.members
            if member not in ledger.members and ledger.tellers.get(member) not in ledger.members
        ]
        for gone in [member for member in ledger.tellers if member not in view.members]:
            del ledger.tellers[gone]
        ledger.tellers.update(dict.fromkeys(untold, first))
        if first == self._process:
            for newcomer in untold:
                pieces = chain([encode(ledger)], self._state.pieces())
                self._effects.append(Tell(newcomer, view.number, pieces))

    def _part_from(self, members: list[str]) -> None:
        ledger = self._ledger
        for member in members:
            ledger.members.remove(member)
            name = self._sessions_of.pop(member, None)
            if name is not None:
                ledger.departed.append(name)
            self._state.left(member)
        while len(ledger.departed) > MOST_DEPARTED:
            ledger.sessions.pop(ledger.departed.pop(0), None)
            ledger.dropped += 1

    # Coming to the state.

    def _keep_view(self, waiting: _Waiting, view: _View) -> None:
        waiting.kept.append(view)
        follow(waiting.since, view)
        # Members are in the order in which they entered: those who had the state before this one
        # did are gone, and nobody has come to it since.
        waiting.ready.intersection_update(view.members)
        if view.members[0] == self._process and not waiting.ready:
            self._begin_anew(view)
            return
        early, self._early = self._early, []
        for sender, part in early:
            self._take_part(waiting, sender, part)

    def told(self, sender: str, body: bytes) -> None:
        """Take what was sent to those who wait for a state."""
        packet = decode(body)
        waiting = self._waiting
        match packet:
            case Refused() if packet.newcomer == self._process and waiting is not None:
                self._effects.append(GiveUp(f"{sender} cannot tell the state: {packet.reason}"))
            case Part() if packet.newcomer == self._process:
                if waiting is not None and waiting.kept:
                    self._take_part(waiting, sender, packet)
                elif waiting is not None or self._process not in self._ledger.members:
                    self._early.append((sender, packet))

    def _take_part(self, waiting: _Waiting, sender: str, part: Part) -> None:
        first = waiting.kept[0]
        assert isinstance(first, _View)
        if part.view < first.number:
            return  # for a member of the same name that is gone
        if sender not in waiting.since:
            return  # it has no state, since it is no member
        if part.number == 0:
            waiting.teller = sender
            waiting.view = part.view
            waiting.parts = 0
            waiting.piece.clear()
            waiting.ledger = None
        elif (sender, part.view, part.number) != (waiting.teller, waiting.view, waiting.parts):
            return  # of a state that another member tells from the beginning
        waiting.parts += 1
        waiting.piece += part.data
        if part.ends_piece:
            try:
                self._take_piece(waiting, bytes(waiting.piece))
            except Exception as error:  # of what is no state, or not the one of this class
                self._effects.append(GiveUp(f"{sender} tells another kind of state: {error}"))
                return
            waiting.piece.clear()
        if part.ends_state and waiting.ledger is not None:
            self._go_on_with(waiting, waiting.ledger)

    def _take_piece(self, waiting: _Waiting, piece: bytes) -> None:
        if waiting.ledger is None:
            waiting.ledger = decode_ledger(piece)
            self._state.begin_restoring()
            if strange := set(waiting.ledger.methods) ^ set(self._state.methods):
                self._effects.append(
                    GiveUp(
                        f"the class of {waiting.teller} is another than the one here, in"
                        f" {', '.join(sorted(strange))}; all replicas of a group have the same"
                    )
                )
        else:
            self._state.restore(piece)

    def _go_on_with(self, waiting: _Waiting, ledger: Ledger) -> None:
        """The state is complete: do what was delivered since its place."""
        self._state.end_restoring()
        # Without a session, no call of this replica was applied; unless it is not known any more.
        known = self._ledger
        may_be_unknown = ledger.state != known.state or ledger.dropped > known.dropped
        self._ledger = ledger
        self._sessions_of = {
            session.process: name
            for name, session in ledger.sessions.items()
            if session.process in ledger.members and name not in ledger.departed
        }
        self._waiting = None
        self._teller = waiting.teller
        self._has_state = True
        self._effects += [Begin(), Send(Ready(self._session, waiting.teller, waiting.view))]
        self._settle_calls(may_be_unknown)
        places = [
            place
            for place, event in enumerate(waiting.kept)
            if isinstance(event, _View) and event.number <= waiting.view
        ]
        following = waiting.kept[places[-1] + 1 if places else 0 :]
        for event in following:
            self._happen(event)

    def _begin_anew(self, view: _View) -> None:
        """Nobody in the group has the state: it is what this replica has."""
        self._waiting = None
        self._teller = self._process
        self._effects.append(Begin())
        self.times_begun += 1
        if not self._has_state:
            number = f"{self._session} {view.number}"
            self._ledger = Ledger(number, methods=self._state.methods)
            self._has_state = True
        self._part_from(list(self.members))
        self._ledger.tellers.clear()
        self._ledger.since = dict.fromkeys(view.members, view.number)
        self._admit(self._process, self._session)
        self._settle_calls(may_be_unknown=False)
        self._take_view(view)

    def _settle_calls(self, may_be_unknown: bool) -> None:
        """See which calls are applied in the state that this replica has come to."""
        session = self._ledger.sessions.get(self._session)
        for number, pending in sorted(self._pending.items()):
            if session is not None and number in session.outcomes:
                del self._pending[number]
                self._effects.append(Answer(number, session.outcomes[number]))
            elif pending.was_sent and session is None and may_be_unknown:
                del self._pending[number]
                self._effects.append(Forget(number))
            else:
                self._send(pending)


def counts(ready: Ready, since: dict[str, int]) -> bool:
    """Whether the one who told the state has been in the group all the time."""
    return since.get(ready.teller, ready.view + 1) <= ready.view


def follow(since: dict[str, int], view: _View) -> None:
    """Take who has come and gone with a view."""
    for gone in [member for member in since if member not in view.members]:
        del since[gone]
    for member in view.members:
        since.setdefault(member, view.number)
