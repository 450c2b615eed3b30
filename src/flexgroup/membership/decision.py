"""What a change is about: the decision, from which every server makes the next configuration.

A decision tells what changes and not what stays, so it is as small as the change.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.flush import DomainFlush
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import AnyOperation


class Requested(Struct, frozen=True, array_like=True):
    """An operation that a server has proposed."""

    origin: int
    """The number of the server that proposed it."""
    ticket: int
    """Its number among the proposals of that server."""
    operation: AnyOperation
    group: int | None
    """The number of the group that the operation names, where it was proposed."""
    newcomer: Server | None = None
    """The new server, if the operation is to admit one."""


@dataclass(frozen=True, slots=True)
class ProposalResult:
    """How a proposal ended."""

    origin: int
    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""
    admitted: int | None = None
    """The number of the new server, if it was proposed to admit one."""


Casts = tuple[tuple[int, int, int], ...]
"""Groups and servers, with how many messages the server has multicast to the group."""


class Decision(Struct, frozen=True, array_like=True):
    """The step to a configuration; every server that takes it takes the same one."""

    number: int
    """The number of the configuration that it leads to."""
    requests: tuple[Requested, ...] = ()
    without: tuple[int, ...] = ()
    """The servers that do not go on, since the others do not hear them."""
    renewed: tuple[int, ...] = ()
    """The domains that were frozen, and begin anew."""
    flush: list[DomainFlush] = []
    """What is left to deliver in these."""
    casts: Casts = ()
    """What has to be delivered everywhere, by its stack, before the groups change to which nothing
    is multicast meanwhile."""
    restarted: tuple[tuple[int, int], ...] = ()
    """The servers that have come back without the processes that were connected to them, with how
    often they have: one that comes back once more has lost others."""
    ballot: tuple[int, int] = (0, 0)
    """The attempt that it was made in; others may propose it again."""
    apart: tuple[int, ...] = ()
    """The servers whose processes were not in the views of the configuration before, but in those
    of a side."""


def carried_out(
    before: Configuration, decision: Decision
) -> tuple[Configuration, list[ProposalResult]]:
    """The configuration that a decision leads to, and what has become of the proposals.

    A leader asks several times about the same proposals, and all make one again that they have
    looked at before; so the last answer is kept with the configuration that it starts from.
    """
    asked = (
        decision.requests,
        decision.without,
        decision.renewed,
        decision.restarted,
        decision.apart,
    )
    made: tuple[object, tuple[Configuration, list[ProposalResult]]] | None
    made = before.__dict__.get("_carried_out")
    if made is None or made[0] != asked:
        made = asked, _carried_out(before, decision)
        before.__dict__["_carried_out"] = made
    return made[1]


def excludes(decision: Decision, before: Configuration, server: int) -> bool:
    """Whether others go on without this server."""
    following, _ = carried_out(before, decision)
    numbers = [other.number for other in following.servers]
    return bool(numbers) and server not in numbers


def _carried_out(
    before: Configuration, decision: Decision
) -> tuple[Configuration, list[ProposalResult]]:
    following = NextConfiguration(before)
    following.without(decision.without)
    following.lose_processes({server for server, _ in decision.restarted})
    results = []
    for request in decision.requests:
        if request.newcomer is not None:
            following.admit(request.newcomer)
            admitted = request.newcomer.number
            results.append(ProposalResult(request.origin, request.ticket, None, admitted))
        else:
            error = following.apply(request.origin, request.operation, request.group)
            results.append(ProposalResult(request.origin, request.ticket, error))
    return following.finish(decision.renewed, decision.apart), results
