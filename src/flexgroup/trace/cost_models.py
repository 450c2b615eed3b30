"""Cost models: what handling packets costs a process, as the row of a run tells it.

A cost model is written as its name and its figures, so that whoever reads a trace needs no table
of names: `lan:send_ns=15000,receive_ns=15000,byte_ps=100000,answers=all`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BY_ALL = "all"
BY_LAST = "last"
BY_LAST_GROUP = "last-group"

EXAMPLE = f"lan:send_ns=15000,receive_ns=15000,byte_ps=100000,answers={BY_ALL}"

_PATTERN = re.compile(
    rf"(?P<name>[^:]+):send_ns=(\d+),receive_ns=(\d+),byte_ps=(\d+),"
    rf"answers=({BY_ALL}|{BY_LAST}|{BY_LAST_GROUP})"
)


@dataclass(frozen=True)
class CostModel:
    """Sending or receiving a packet costs so much, and each of its bytes so much more.

    Costs of packets are in nanoseconds, those of bytes in picoseconds. An answer to a client costs
    as much as a packet without content, and no trace records it; all destinations of a message
    answer, or the last of them alone, or all that are in one group of replicas with the last.
    """

    name: str
    send: int
    receive: int
    byte: int
    answers: str
    """Who answers: BY_ALL, BY_LAST or BY_LAST_GROUP."""

    @property
    def text(self) -> str:
        return (
            f"{self.name}:send_ns={self.send},receive_ns={self.receive},"
            f"byte_ps={self.byte},answers={self.answers}"
        )


def parse_cost_model(text: str | None) -> CostModel | None:
    """Return the cost model of a run, or None if it has none or tells only a name."""
    found = _PATTERN.fullmatch(text or "")
    if found is None:
        return None
    name, send, receive, byte, answers = found.groups()
    return CostModel(name, int(send), int(receive), int(byte), answers)
