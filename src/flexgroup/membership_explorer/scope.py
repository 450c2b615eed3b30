"""What is explored: a few servers, their groups, what clients ask for, and what may go wrong."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from functools import cached_property

from flexgroup.core.errors import UsageError
from flexgroup.membership.configuration import (
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    Server,
)
from flexgroup.membership.operations import AnyOperation, JoinGroup, LeaveGroup
from flexgroup.membership.timings import Timings
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.scope import LETTERS
from flexgroup.worlds.network.faults import Faults

TIMINGS = Timings(beat=1.0, patience=4.0)
"""Time passes in steps of one beat, and silence is noticed after four of them."""

MOST_SERVERS = 5
GROUP_NAMES = "ABCDEFGH"


@dataclass(frozen=True)
class PlannedAction:
    """Something that a client of a server does once: it multicasts, joins or leaves."""

    kind: str
    """`cast`, `join` or `leave`."""
    server: int
    groups: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.server} {','.join(self.groups)}"

    def operation(self) -> AnyOperation:
        """What the server proposes for it. Each server has a client in each of its groups, and
        another one that joins."""
        (group,) = self.groups
        if self.kind == "join":
            return JoinGroup(group, f"new{self.server}", 2)
        return LeaveGroup(group, f"p{self.server}", 1)


@dataclass(frozen=True)
class FaultBounds:
    """The most that goes wrong in a run, and the time that it takes."""

    crashes: int = 0
    cuts: int = 0
    """How often a link falls silent: what is in flight on it is lost, and what is said."""
    breaks: int = 0
    """How often a link breaks and is replaced at once: what is in flight on it is lost."""
    delays: int = 0
    """How often a beat of time passes while something is in flight that could arrive."""
    ticks: int = 8
    """How many beats of time pass. Time that only passes when nothing else can happen is free."""
    restarts: int = 0
    """How often a server that has crashed comes back. Servers keep data if any may."""


@dataclass(frozen=True)
class ClusterScope:
    """Servers 1 to `servers`, in one configuration with these groups when the search begins."""

    servers: int
    stack: str
    groups: tuple[tuple[int, ...], ...]
    """The servers with members of each group; groups are called A, B, and so on."""
    actions: tuple[PlannedAction, ...]
    """Those of one server happen in this order."""
    bounds: FaultBounds = field(default=FaultBounds())

    def __post_init__(self) -> None:
        if not 1 <= self.servers <= MOST_SERVERS:
            raise UsageError(f"{self.servers} servers cannot be explored; give 1 to {MOST_SERVERS}")
        if not 1 <= len(self.groups) <= len(GROUP_NAMES):
            raise UsageError(f"give 1 to {len(GROUP_NAMES)} groups, as in --group 1,2")
        present = range(1, self.servers + 1)
        for members in self.groups:
            if not members or any(server not in present for server in members):
                raise UsageError(
                    f"group {','.join(map(str, members))}: name the servers with members; "
                    f"servers are 1 to {self.servers}"
                )
        names = GROUP_NAMES[: len(self.groups)]
        for action in self.actions:
            if action.server not in present:
                raise UsageError(f"'{action}': servers are 1 to {self.servers}")
            if not action.groups or any(group not in names for group in action.groups):
                raise UsageError(f"'{action}': the groups are {', '.join(names)}")
            if action.kind != "cast" and len(action.groups) != 1:
                raise UsageError(f"'{action}': name one group")
        if any(bound < 0 for bound in astuple(self.bounds)):
            raise UsageError("a bound cannot be negative; give 0 or more")

    @property
    def keeps_data(self) -> bool:
        return self.bounds.restarts > 0

    @cached_property
    def configuration(self) -> Configuration:
        """The one in which the search begins."""
        numbers = range(1, self.servers + 1)
        groups = tuple(
            GroupEntry(
                name=name,
                number=number,
                stack=self.stack,
                owner=None,
                open=True,
                allow=None,
                view=1,
                members=tuple(Member(f"p{server}", server, 1) for server in servers),
                senders=tuple(
                    sorted(
                        {
                            action.server
                            for action in self.actions
                            if action.kind == "cast" and name in action.groups
                        }.difference(servers)
                    )
                ),
                flows=parse_stack(self.stack).lets_views_flow(Faults().channels()),
            )
            for number, (name, servers) in enumerate(zip(GROUP_NAMES, self.groups, strict=False), 1)
        )
        taking_part = {server for group in groups for server in group.taking_part}
        domain = DomainEntry(1, self.stack, "", tuple(sorted(taking_part)))
        return Configuration(
            number=1,
            servers=tuple(
                Server(number, f"s{number}", f"s{number}:1", self.keeps_data) for number in numbers
            ),
            groups=groups,
            next_server=self.servers + 1,
            next_group=len(groups) + 1,
            domains=(domain,),
            next_domain=2,
        )

    def lines(self) -> list[str]:
        """The scope as the head of a script has it."""
        bounds = self.bounds
        return [
            f"servers {self.servers}",
            f"stack {self.stack}",
            *(
                f"group {name} {','.join(map(str, members))}"
                for name, members in zip(GROUP_NAMES, self.groups, strict=False)
            ),
            *(
                f"plan {letter} {action}"
                for letter, action in zip(LETTERS, self.actions, strict=False)
            ),
            f"bounds crashes={bounds.crashes} cuts={bounds.cuts} breaks={bounds.breaks} "
            f"delays={bounds.delays} ticks={bounds.ticks} restarts={bounds.restarts}",
        ]

    def described(self) -> str:
        groups = " ".join(
            f"{name}={{{','.join(map(str, members))}}}"
            for name, members in zip(GROUP_NAMES, self.groups, strict=False)
        )
        actions = ", ".join(map(str, self.actions)) or "no requests"
        return f"{self.stack} on {self.servers} servers, {groups}; {actions}"
