"""The written-out table of protocols, and stacks by name.

A stack is written as the names of its layers, lowest first: `fifo dcc`. An option of a
layer follows its name after a slash: `dcc/rv`. Names are not case-sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Context, Layer
from flexgroup.core.stack import Stack
from flexgroup.protocols.best_effort import BestEffort
from flexgroup.protocols.dcc import Dcc
from flexgroup.protocols.dcc_published import DccPublished
from flexgroup.protocols.df import DelporteFauconnier
from flexgroup.protocols.fifo import Fifo
from flexgroup.protocols.skeen import Skeen

ALL = "all"
LAST = "last"


@dataclass(frozen=True)
class Protocol:
    """A row of the table."""

    name: str
    layer: type[Layer]
    summary: str
    source: str
    faults: str
    genuine: str
    answers: str
    """Who answers a client that multicast: all destinations, or the last (highest) one."""


PROTOCOLS: dict[str, Protocol] = {
    row.name: row
    for row in (
        Protocol(
            "best-effort",
            BestEffort,
            "send to every destination, deliver on arrival; no order",
            "folklore; Cachin, Guerraoui, Rodrigues 2011",
            faults="crashes of receivers",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "fifo",
            Fifo,
            "deliver what each process multicasts in that order",
            "Hadzilacos and Toueg 1994",
            faults="none",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "skeen",
            Skeen,
            "destinations exchange timestamps, deliver by the highest",
            "Skeen; Birman and Joseph 1987",
            faults="none",
            genuine="yes",
            answers=ALL,
        ),
        Protocol(
            "df",
            DelporteFauconnier,
            "walk up the destinations, each waiting for the end",
            "Delporte-Gallet and Fauconnier 2000",
            faults="none",
            genuine="yes",
            answers=LAST,
        ),
        Protocol(
            "dcc",
            Dcc,
            "Daisy Chain Cast, corrected: walk up without waiting, with edge clocks",
            "after Louzada 2024, chapter 4",
            faults="none",
            genuine="partly",
            answers=LAST,
        ),
        Protocol(
            "dcc-published",
            DccPublished,
            "Daisy Chain Cast as published: neither safe nor live",
            "Louzada 2024, algorithms 4.1 to 4.3",
            faults="none",
            genuine="partly",
            answers=LAST,
        ),
    )
}


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
    """A parsed stack: what to build at every process."""

    name: str
    protocols: tuple[Protocol, ...]
    options: tuple[frozenset[str], ...]

    @property
    def layers(self) -> list[type[Layer]]:
        return [protocol.layer for protocol in self.protocols]

    @property
    def top(self) -> Protocol:
        return self.protocols[-1]

    def build(self, process: int, size: int) -> Stack:
        return Stack(
            [
                protocol.layer(Context(process, size, chosen))
                for protocol, chosen in zip(self.protocols, self.options, strict=True)
            ]
        )


def parse_stack(text: str) -> StackPlan:
    """The plan for a stack such as `skeen`, `dcc/rv` or `fifo dcc`."""
    words = text.lower().split()
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
        options.append(frozenset(chosen))
    return StackPlan(" ".join(words), tuple(protocols), tuple(options))
