"""Stacks by name, and protocols that others add to the table.

A stack is written as the names of its layers, lowest first: `fifo dcc`. An option of a
layer follows its name after a slash: `dcc/rv`. Names are not case-sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.promises import promised_properties
from flexgroup.core.stack import Stack, guarantees_above
from flexgroup.protocols.table import PROTOCOLS, Answers, Fault, Genuine, Protocol

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

    def build(self, process: int, size: int, groups: tuple[tuple[int, ...], ...] = ()) -> Stack:
        return Stack(
            [
                protocol.layer(Context(process, size, chosen, groups))
                for protocol, chosen in zip(self.protocols, self.options, strict=True)
            ]
        )


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
