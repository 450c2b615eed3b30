"""What every workload answers: where does this client's next multicast go?

A workload decides destinations and nothing else. When a client multicasts belongs to
the world that runs it: a closed loop, say, where a client waits for one message to be
delivered before it sends the next.

All randomness comes from the generator that the caller passes, and only through its
method `random()`: Python promises that this method gives the same numbers for the same
seed in later versions, which it does not promise of `sample`, `choice` or `randrange`.
A seed therefore names the same run on every machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random


class Workload(ABC):
    """Where the messages of `processes` processes, numbered from 0, are sent."""

    payload_bytes: int = 64
    """What the application puts into each message, without any protocol's headers."""

    def __init__(self, name: str, processes: int) -> None:
        self.name = name
        """The canonical spec: parsing it gives this workload again."""
        self.processes = processes

    @abstractmethod
    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        """The destinations of the client's next multicast: ascending, distinct, at least one."""
