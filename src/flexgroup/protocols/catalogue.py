"""Stacks by name, and protocols that others add to the table.

A stack is written as the names of its layers, lowest first: `fifo dcc`. An option of a
layer follows its name after a slash: `dcc/rv`. Names are not case-sensitive.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees, names
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.layer import Context, Layer
from flexgroup.core.promises import PROMISED_BY, promised_properties
from flexgroup.core.replicas import Replicas, check_replicas
from flexgroup.core.seals import Notary
from flexgroup.core.stack import BuildStack, Stack, guarantees_above
from flexgroup.protocols.table import CRASHES, PROTOCOLS, Answers, Fault, Genuine, Protocol

__all__ = [
    "PROTOCOLS",
    "Answers",
    "Fault",
    "Genuine",
    "Protocol",
    "StackPlan",
    "parse_stack",
    "register",
]

RENAMED = {"xamp-atomic/published": "xamp-atomic-published"}
"""Names that people, scripts and traces may still use, and what they are called now."""


def register(protocol: Protocol) -> None:
    """Let stacks name a protocol that is not part of this package."""
    name = protocol.name
    if name != name.lower() or not name.replace("-", "").isalnum():
        raise UsageError(f"'{name}' cannot name a protocol; use small letters, digits and dashes")
    if name in PROTOCOLS:
        raise UsageError(f"there is a protocol '{name}' already; choose another name")
    PROTOCOLS[name] = protocol


@dataclass(frozen=True)
class StackPlan:
    """A stack, and what to build of it at every process."""

    name: str
    protocols: tuple[Protocol, ...]
    options: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, *protocols: Protocol) -> StackPlan:
        """The plan for these protocols, the lowest first; they need not be in the table."""
        name = " ".join(protocol.name for protocol in protocols)
        return cls(name, protocols, tuple(protocol.always for protocol in protocols))

    @property
    def layers(self) -> list[type[Layer]]:
        return [protocol.layer for protocol in self.protocols]

    @property
    def closed(self) -> bool:
        """Only members multicast."""
        return any(layer.CLOSED for layer in self.layers)

    @property
    def broadcasts(self) -> bool:
        """Every message goes to all members."""
        return any(layer.BROADCAST for layer in self.layers)

    @property
    def heeds_groups(self) -> bool:
        """Some layer wants to be told of groups and their members."""
        return any(layer.HEEDS_GROUPS for layer in self.layers)

    @property
    def needs_replicas(self) -> bool:
        """Some layer works only where the processes are divided into groups of replicas."""
        return any(layer.NEEDS_REPLICAS for layer in self.layers)

    @property
    def needs_seals(self) -> bool:
        """Some layer works only where there is a notary."""
        return any(layer.NEEDS_SEALS for layer in self.layers)

    @property
    def stores(self) -> bool:
        """Some layer keeps something in stable storage, and can start again after a crash."""
        return any(layer.STORED for layer in self.layers)

    @property
    def starts_again(self) -> bool:
        """A process that has crashed goes on from what its layers have in stable storage."""
        return self.stores and all(Fault.RESTARTS in one.faults for one in self.protocols)

    @property
    def tolerates_liars(self) -> bool:
        """Its promises hold though some processes are Byzantine."""
        return any(Fault.BYZANTINE in one.faults for one in self.protocols)

    def check_survives(self) -> None:
        """Raise UsageError unless it survives crashes by itself, and delivers what its replicas
        agree on: servers run nothing else in groups of replicas."""
        frail = [one.name for one in self.protocols if not CRASHES.intersection(one.faults)]
        if frail:
            raise UsageError(
                f"'{self.name}' does not survive a crash: {', '.join(frail)} does not; leave it "
                "out, since links between replicas are reliable and FIFO as they are"
            )
        if not self.layers[-1].NEEDS_REPLICAS:
            raise UsageError(
                f"'{self.name}' has '{self.top.name}' above its replicas, who would not know after "
                "a crash what that has delivered; leave it out: what replicas deliver is uniform"
            )

    def check_restarts(self) -> None:
        """Raise UsageError if its replicas must not start again after a crash."""
        forgets = not self.stores and Fault.RESTARTS not in self.top.faults
        # What rests on a log survives restarts only if the log does; `log` never crashes.
        below = self.protocols[0]
        forgets = forgets or (Fault.BYZANTINE in below.faults and not self.starts_again)
        if self.needs_replicas and forgets:
            raise UsageError(
                f"a process of '{self.name}' that has crashed cannot start again: what it told "
                "others is not in stable storage, and it would break that; let it stay down, "
                "or take a stack that stores, such as 'leader white-box'"
            )

    def check_replicas(self, replicas: Replicas, processes: int) -> None:
        """Raise UsageError if these groups do not divide the processes, or there must be some."""
        if self.needs_replicas and not replicas:
            raise UsageError(
                f"'{self.name}' works in groups of replicas, and the processes are not divided into"
                " any: give simulate --groups 10x3, explore --replicas 3,1 or, in a script, "
                "replicas 3,1; servers have such groups if they are created with create_replicated"
            )
        check_replicas(replicas, processes)

    def check_seals(self, notary: Notary | None) -> None:
        """Raise UsageError if some layer needs a notary, and there is none."""
        if notary is None and self.needs_seals:
            sealing = [one.name for one in self.protocols if one.layer.NEEDS_SEALS]
            raise UsageError(
                f"'{self.name}' rests on seals ({', '.join(sealing)} quotes what others said), and "
                "there is no notary here to make and check them; the simulator, the explorer and "
                "scripts have one, and servers with --seals have one for groups of replicas, which "
                "are created with create_replicated"
            )

    @property
    def top(self) -> Protocol:
        return self.protocols[-1]

    @property
    def genuine(self) -> bool:
        """Only the origin and the destinations of a message take part in its delivery."""
        return self.top.genuine == Genuine.YES

    def promises(self, channels: Guarantees) -> tuple[str, ...]:
        """The properties that the stack promises over channels that give these guarantees.

        Raises UsageError, naming the missing guarantee, when a layer's needs are not met.
        """
        return promised_properties(guarantees_above(self.layers, channels), self.genuine)

    def gives_one_sequence(self, channels: Guarantees) -> bool:
        """Whether all servers of a group deliver the same sequence, those that fail included."""
        return "safe" in self.name.split() and "acyclic order" in self.promises(channels)

    def lets_views_flow(self, channels: Guarantees) -> bool:
        """Whether a view can take a place among messages. Layers that heed groups are told of
        views when nothing is under way."""
        return self.gives_one_sequence(channels) and not self.heeds_groups

    def check_nothing_is_lost(self, channels: Guarantees) -> None:
        """Raise UsageError if the stack promises less than its name says, because a layer takes
        away what one below it gives, or needs what is not there."""
        promised = guarantees_above(self.layers, channels)
        loss = self._loss()
        if loss is not None:
            giver, taker, lost = loss
            instead = " or ".join(f"'{plan.name}'" for plan in self._instead(channels))
            raise UsageError(
                f"'{taker.name}' does not keep what '{giver.name}' below it gives: {names(lost)}; "
                f"the stack '{self.name}' would promise only: {names(promised)}; write "
                f"{instead or 'one of the two'} instead"
            )

    def _loss(self) -> tuple[Protocol, Protocol, Guarantees] | None:
        """The first layer that gives something, the one above it that does not keep that, and
        what is lost. What a layer needs it may use up, as in `fifo dcc`; what promises nothing of
        messages, such as a leader, no application misses."""
        for place, giver in enumerate(self.protocols):
            given = giver.layer.GIVES.intersection(PROMISED_BY)
            for taker in self.protocols[place + 1 :]:
                given -= taker.layer.NEEDS | taker.layer.GIVES
                if lost := given - taker.layer.KEEPS:
                    return giver, taker, lost
        return None

    def _instead(self, channels: Guarantees) -> list[StackPlan]:
        """The stacks that lose nothing: the other way round, or with one layer less."""
        places = range(len(self.protocols))
        orders = [[place for place in places if place != left_out] for left_out in places]
        found: dict[str, StackPlan] = {}
        for order in (list(reversed(places)), *orders):
            plan = StackPlan(
                " ".join(self.name.split()[place] for place in order),
                tuple(self.protocols[place] for place in order),
                tuple(self.options[place] for place in order),
            )
            with suppress(UsageError):
                guarantees_above(plan.layers, channels)
                if plan._loss() is None:
                    found[plan.name] = plan
        return list(found.values())

    def build(
        self,
        process: int,
        size: int,
        groups: tuple[tuple[int, ...], ...] = (),
        replicas: Replicas = (),
        notary: Notary | None = None,
    ) -> Stack:
        self.check_replicas(replicas, size)
        self.check_seals(notary)
        return Stack(
            [
                protocol.layer(Context(process, size, chosen, groups, replicas, notary))
                for protocol, chosen in zip(self.protocols, self.options, strict=True)
            ]
        )

    def builder(
        self,
        size: int,
        groups: tuple[tuple[int, ...], ...] = (),
        replicas: Replicas = (),
        notary_of: Callable[[int], Notary] | None = None,
    ) -> BuildStack:
        """What builds the stack of any process, in a world that runs all of them."""
        codec = Codec(self.layers)

        def build(process: int) -> Stack:
            notary = notary_of(process) if notary_of is not None else KeyedNotary(process, codec)
            return self.build(process, size, groups, replicas, notary)

        return build


def parse_stack(text: str) -> StackPlan:
    """The plan for a stack such as `skeen`, `dcc/rv` or `fifo dcc`."""
    words = [RENAMED.get(word, word) for word in text.lower().split()]
    if not words:
        raise UsageError("the stack is empty; name at least one protocol, for example: skeen")
    protocols: list[Protocol] = []
    options: list[frozenset[str]] = []
    for word in words:
        name, *chosen = word.split("/")
        protocol = PROTOCOLS.get(name)
        if protocol is None:
            raise UsageError(f"unknown protocol '{name}'; choose from: {', '.join(PROTOCOLS)}")
        for option in chosen:
            if option not in protocol.layer.OPTIONS:
                known = ", ".join(protocol.layer.OPTIONS) or "none"
                raise UsageError(f"'{name}' has no option '{option}'; it has: {known}")
        protocols.append(protocol)
        options.append(protocol.always.union(chosen))
    return StackPlan(" ".join(words), tuple(protocols), tuple(options))
