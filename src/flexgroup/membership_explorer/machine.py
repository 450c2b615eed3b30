"""What one server does on one event, computed once.

As in the explorer of stacks, a step of a server depends on its own state and on the event alone, so
both are numbered and a step is a table entry. Servers cannot be copied, compiled as parts of them
are. But a server that takes a step becomes one in the state that follows, and there it can take the
next; only where none is left in a state that is needed, one is made by repeating all its events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from flexgroup.membership.messages import Beat
from flexgroup.membership_explorer.picture import picture
from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.server import Entry, ExploredServer, Failed, Item

LocalEvent = tuple[str, int, int, int]
"""A kind, two numbers that depend on it, and the time."""

SPARE = 4
"""How many servers are kept in one state."""


@dataclass(slots=True)
class Local:
    """A state of one server."""

    server: int
    before: int
    """The state that it was reached from first; -1 for the state in which the server starts."""
    event: LocalEvent
    digest: bytes
    log: tuple[Entry, ...]
    log_number: int
    ended: bool
    is_waiting: bool
    """Some request is not answered, or members are still to be told of a view."""
    configuration: int
    """The number of the configuration that is installed; 0 if there is none."""
    actions: tuple[bool, ...]
    """Which actions of the scope are possible now, as far as it depends on this server."""
    spare: list[ExploredServer] = field(default_factory=list)
    """Servers that are in this state, and can take a step."""


@dataclass(frozen=True, slots=True)
class LocalStep:
    after: int
    sent: tuple[tuple[int, int], ...]
    """Servers, each with the number of what is sent to it."""


class ServerMachine:
    """The tables of states, of what is sent, and of steps."""

    def __init__(self, scope: ClusterScope) -> None:
        self.scope = scope
        self.locals: list[Local] = []
        self.items: list[Item] = []
        self.is_beat: list[bool] = []
        self.logs: list[tuple[Entry, ...]] = []
        self.repeated = 0
        """How many events were repeated to make a server that was needed."""
        self._local_numbers: dict[bytes, int] = {}
        self._item_numbers: dict[bytes, int] = {}
        self._log_numbers: dict[bytes, int] = {}
        self._steps: dict[tuple[int, LocalEvent], LocalStep] = {}

    def first(self, server: int) -> LocalStep:
        return self._reached(-1, ("start", server, 0, 0), self._new(server))

    def step(self, local: int, event: LocalEvent) -> LocalStep:
        key = local, event
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._compute(local, event)
        return known

    def _new(self, number: int) -> ExploredServer:
        server = ExploredServer(self.scope, number)
        server.start(0.0)
        return server

    def _compute(self, local: int, event: LocalEvent) -> LocalStep:
        before = self.locals[local]
        server = before.spare.pop() if before.spare else self._repeat(local)
        try:
            self._tell(server, event)
        except Exception as error:
            # Whatever a handler raises is what the search is looking for.
            server.log.append(Failed(f"{type(error).__name__}: {error}"))
            server.membership.ended = True
        return self._reached(local, event, server)

    def _repeat(self, local: int) -> ExploredServer:
        events: list[LocalEvent] = []
        at = local
        while self.locals[at].before >= 0:
            events.append(self.locals[at].event)
            at = self.locals[at].before
        server = self._new(self.locals[local].server)
        for event in reversed(events):
            self._tell(server, event)
        server.log.clear()
        server.sent.clear()
        self.repeated += len(events)
        return server

    def _tell(self, server: ExploredServer, event: LocalEvent) -> None:
        kind, first, second, time = event
        now = float(time)
        match kind:
            case "receive":
                server.receive(first, self.items[second], now)
            case "restart":
                server.restart(now)
            case "tick":
                server.tick(now)
            case "gone":
                server.link_gone(first, now)
            case "replaced":
                server.link_replaced(first, now)
            case "act":
                server.act(first, now)

    def _reached(self, before: int, event: LocalEvent, server: ExploredServer) -> LocalStep:
        sent = tuple([(target, self.item(item)) for target, item in server.sent])
        log = tuple(server.log)
        server.sent.clear()
        server.log.clear()
        log_before = self.locals[before].log if before >= 0 else ()
        number_before = self.locals[before].log_number if before >= 0 else -1
        log_number = self._log_number(number_before, log_before, log) if log else number_before
        about = picture((server.number, log_number, server.state()))
        digest = blake2b(about, digest_size=16).digest()
        number = self._local_numbers.get(digest)
        if number is None:
            number = self._local_numbers[digest] = len(self.locals)
            self.locals.append(
                Local(
                    server=server.number,
                    before=before,
                    event=event,
                    digest=digest,
                    log=log_before + log,
                    log_number=log_number,
                    ended=server.membership.ended,
                    is_waiting=bool(server.unanswered) or server.deployment.expects_marks,
                    configuration=server.deployment.number,
                    actions=tuple(
                        action.server == server.number and server.may_act(place)
                        for place, action in enumerate(self.scope.actions)
                    ),
                )
            )
        spare = self.locals[number].spare
        if len(spare) < SPARE:
            spare.append(server)
        return LocalStep(number, sent)

    def item(self, item: Item) -> int:
        key = picture(item)
        number = self._item_numbers.get(key)
        if number is None:
            number = self._item_numbers[key] = len(self.items)
            self.items.append(item)
            self.is_beat.append(isinstance(item, Beat))
        return number

    def _log_number(self, before: int, old: tuple[Entry, ...], new: tuple[Entry, ...]) -> int:
        key = b"%d:" % before + picture(new)
        number = self._log_numbers.get(key)
        if number is None:
            number = self._log_numbers[key] = len(self.logs)
            self.logs.append(old + new)
        return number
