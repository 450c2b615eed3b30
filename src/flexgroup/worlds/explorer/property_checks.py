"""The properties that a state breaks.

*Safety* properties are checked wherever something was delivered; none of them can be mended by
going on, so a violation is still there when the run ends. *Completion* properties are checked
where nothing can happen any more. The names are those of `flexgroup.properties`, which checks
recorded runs; here a state is checked by the histories of its few processes, many thousands of
times a second.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.errors import UsageError
from flexgroup.core.message import MessageId, origin_of, seq_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.worlds.explorer.machine import (
    is_cast,
    is_delivery,
    is_view,
    message_in,
    place_in,
    view_in,
)

INTEGRITY: Final = "integrity"
CONDUCT: Final = "conduct"
ACYCLIC: Final = "acyclic order"
PREFIX: Final = "prefix order"
FIFO: Final = "fifo order"
CAUSAL: Final = "causal order"
VALIDITY: Final = "validity"
AGREEMENT: Final = "agreement"
UNIFORM: Final = "uniform agreement"
SYNCHRONY: Final = "virtual synchrony"

SAFETY: Final = (ACYCLIC, PREFIX, FIFO, CAUSAL, SYNCHRONY)
COMPLETION: Final = (VALIDITY, AGREEMENT, UNIFORM)
ALWAYS: Final = (INTEGRITY, CONDUCT)
"""What is always checked. Conduct means that no process refuses what another sent, and that no
handler fails."""
CHECKED_IF_PROMISED: Final = (
    VALIDITY,
    AGREEMENT,
    UNIFORM,
    FIFO,
    CAUSAL,
    ACYCLIC,
    PREFIX,
    SYNCHRONY,
)
"""What is checked where a stack promises it, in the order in which it is checked."""

Histories = list[tuple[int, ...]]
Destinations = tuple[int, ...]


@mypyc_attr(allow_interpreted_subclasses=True)
class StateProperty:
    """A property of the caller's own, told the histories of all members of a state.

    It must be stable: once broken, broken in every state that follows.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def broken(self, delivered: list[list[MessageId]]) -> bool:
        raise NotImplementedError


@final
class PropertyChecks:
    """Checks states for the properties it was given, and remembers what it has checked."""

    def __init__(
        self,
        properties: list[str],
        destinations: list[Destinations],
        known: dict[MessageId, int],
        extra_properties: list[StateProperty],
        liars: frozenset[int] = frozenset(),
    ) -> None:
        for name in properties:
            if name not in SAFETY and name not in COMPLETION and name not in ALWAYS:
                names = ", ".join([*ALWAYS, *SAFETY, *COMPLETION])
                raise UsageError(f"the explorer knows no property '{name}'; it knows: {names}")
        self.properties = properties
        self.extra_properties = extra_properties
        self._destinations = destinations
        self._known = known
        """The places, in the scope, of messages that are cast before the search begins."""
        self._liars = liars
        """Who is faulty by design: their histories have what they multicast, and nothing else."""
        self._checked: dict[tuple[int, ...], list[str]] = {}

    def safety(self, key: tuple[int, ...], histories: Histories) -> list[str]:
        """List the safety properties that these histories break; `key` has their numbers."""
        found = self._checked.get(key)
        if found is None:
            found = self._checked[key] = self._safety(histories)
        return found

    def _safety(self, histories: Histories) -> list[str]:
        broken: list[str] = []
        delivered = [_delivered(history) for history in histories]
        for name in self.properties:
            if not self._holds(name, delivered, histories):
                broken.append(name)
        for extra in self.extra_properties:
            if extra.broken(delivered):
                broken.append(extra.name)
        return broken

    def _holds(self, name: str, delivered: list[list[MessageId]], histories: Histories) -> bool:
        """Whether a safety property holds; what is checked otherwise is taken to hold."""
        if name == ACYCLIC:
            return is_acyclic(delivered)
        if name == PREFIX:
            return self._prefix(delivered, self.messages(histories))
        if name in (FIFO, CAUSAL):
            return self._ordered(delivered, histories, causal=name == CAUSAL)
        if name == SYNCHRONY:
            return self._synchronous(histories)
        return True

    def messages(self, histories: Histories) -> dict[MessageId, Destinations]:
        """Return every message that was cast, with its destinations."""
        found = {m: self._destinations[place] for m, place in self._known.items()}
        for history in histories:
            for entry in history:
                if is_cast(entry):
                    found[message_in(entry)] = self._destinations[place_in(entry)]
        return found

    def completion(self, histories: Histories, gone: list[bool], faulty: list[bool]) -> list[str]:
        """List the completion properties that are broken if nothing happens after this.

        Nothing is expected of who is gone, or lies. Who has crashed and come back is faulty, so
        that what it multicast may be lost; but it has to catch up with the others.
        """
        gone = [away or process in self._liars for process, away in enumerate(gone)]
        faulty = [bad or process in self._liars for process, bad in enumerate(faulty)]
        messages = self.messages(histories)
        had: set[tuple[int, MessageId]] = set()
        at_correct: set[MessageId] = set()
        anywhere: set[MessageId] = set()
        for process, history in enumerate(histories):
            for m in _delivered(history):
                had.add((process, m))
                anywhere.add(m)
                if not faulty[process]:
                    at_correct.add(m)
        broken: set[str] = set()
        for m in sorted(messages):
            origin = origin_of(m)
            for process in messages[m]:
                if gone[process] or (process, m) in had:
                    continue
                if origin >= len(faulty) or not faulty[origin]:
                    broken.add(VALIDITY)
                if m in at_correct:
                    broken.add(AGREEMENT)
                if m in anywhere:
                    broken.add(UNIFORM)
        return [name for name in self.properties if name in broken]

    def _prefix(
        self, delivered: list[list[MessageId]], messages: dict[MessageId, Destinations]
    ) -> bool:
        for p in range(len(delivered)):
            for q in range(p):
                one = [m for m in delivered[p] if q in messages.get(m, ())]
                other = [m for m in delivered[q] if p in messages.get(m, ())]
                if one[: len(other)] != other[: len(one)]:
                    return False
        return True

    def _synchronous(self, histories: Histories) -> bool:
        """Tell whether processes that go from one view to the same next one delivered the same
        before it, of what is for both."""
        messages = self.messages(histories)
        between: dict[tuple[int, int], list[tuple[int, set[MessageId]]]] = {}
        for process, history in enumerate(histories):
            view = -1
            had: set[MessageId] = set()
            for entry in history:
                if is_delivery(entry):
                    had.add(message_in(entry))
                elif is_view(entry):
                    if view >= 0:
                        between.setdefault((view, view_in(entry)), []).append((process, had))
                    view = view_in(entry)
                    had = set()
        for stays in between.values():
            for process, had in stays:
                for _, others in stays:
                    for m in others - had:
                        if process in messages.get(m, ()):
                            return False
        return True

    def _ordered(
        self, delivered: list[list[MessageId]], histories: Histories, causal: bool
    ) -> bool:
        """Tell whether no process delivers a message before an earlier one for it."""
        messages = self.messages(histories)
        # What a liar multicast first, nobody knows.
        messages = {m: to for m, to in messages.items() if origin_of(m) not in self._liars}
        before = _happened_before(histories, messages) if causal else _sent_before(messages)
        for process, order in enumerate(delivered):
            had: set[MessageId] = set()
            for m in order:
                for earlier in before.get(m, []):
                    if process in messages[earlier] and earlier not in had:
                        return False
                had.add(m)
        return True


def _delivered(history: tuple[int, ...]) -> list[MessageId]:
    return [message_in(entry) for entry in history if is_delivery(entry)]


def _sent_before(messages: dict[MessageId, Destinations]) -> dict[MessageId, list[MessageId]]:
    return {
        m: [
            other
            for other in messages
            if origin_of(other) == origin_of(m) and seq_of(other) < seq_of(m)
        ]
        for m in messages
    }


def _happened_before(
    histories: Histories, messages: dict[MessageId, Destinations]
) -> dict[MessageId, list[MessageId]]:
    """Return, for each message m, what its origin had cast or delivered before m, and so on."""
    before: dict[MessageId, set[MessageId]] = {m: set() for m in messages}
    for history in histories:
        known: list[MessageId] = []
        for entry in history:
            m = message_in(entry)
            if is_view(entry) or m not in before:
                continue
            if is_cast(entry):
                before[m].update(known)
            known.append(m)
    for m, others in _sent_before(messages).items():
        before[m].update(others)
    changed = True
    while changed:
        changed = False
        for earlier in before.values():
            more: set[MessageId] = set()
            for m in earlier:
                more |= before[m]
            if not more <= earlier:
                earlier |= more
                changed = True
    return {m: sorted(earlier) for m, earlier in before.items()}
