"""What a server must not forget while it is not running, if it is to come back as the same one.

An agreement holds because whoever takes part remembers what it has promised and accepted. A server
that keeps this on stable storage, together with the configuration that it has installed, may be
started again and take part as before; what its domains and clients had is lost with its process.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Decision, carried_out
from flexgroup.membership.messages import NO_BALLOT, Ballot


class Record(Struct, frozen=True, array_like=True):
    """Something that is saved before anybody is told of it."""


class Snapshot(Record, frozen=True, tag=1):
    """All that a server has to remember."""

    number: int
    """The number of the server."""
    configuration: Configuration
    step: Decision | None = None
    """What led to the configuration, for servers that missed it."""
    promised: Ballot = NO_BALLOT
    """The attempt at the next configuration that the server follows."""
    accepted: tuple[Ballot, Decision] | None = None
    life: int = 0
    """How often the server has come back."""


class Promised(Record, frozen=True, tag=2):
    ballot: Ballot


class AcceptedDecision(Record, frozen=True, tag=3):
    ballot: Ballot
    decision: Decision


class Installed(Record, frozen=True, tag=4):
    decision: Decision


AnyRecord = Snapshot | Promised | AcceptedDecision | Installed
"""What a decoder of records is made for."""


def may_be_late(record: AnyRecord) -> bool:
    """Whether a record may be saved with the next one.

    Who forgets that a decision is installed is like one that has missed the commit, and others tell
    it.
    """
    return isinstance(record, Installed)


def recovered(snapshot: Snapshot, since: Iterable[AnyRecord]) -> Snapshot:
    """What a server remembers that has saved all this, in this order.

    A snapshot is of the time when it was written, and what was to be saved before that may follow
    it: what is about a configuration that it contains already has no effect.
    """
    for record in since:
        following = snapshot.configuration.number + 1
        match record:
            case Snapshot():
                snapshot = record
            case Promised():
                snapshot = replace(snapshot, promised=record.ballot)
            case AcceptedDecision() if record.decision.number == following:
                accepted = record.ballot, record.decision
                snapshot = replace(snapshot, promised=record.ballot, accepted=accepted)
            case Installed() if record.decision.number == following:
                entered, _ = carried_out(snapshot.configuration, record.decision)
                snapshot = Snapshot(snapshot.number, entered, record.decision, life=snapshot.life)
    return snapshot


def first_number(life: int) -> int:
    """Where a server counts from what it numbers in one of its lives, so that nothing is taken for
    something of an earlier life."""
    return (life << 32) + 1
