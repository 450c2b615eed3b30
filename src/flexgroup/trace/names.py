"""What processes, clients and messages of a run are called: by their names where it comes from, if
it tells them, and by numbers otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Names:
    """The names of one run."""

    processes: int | None = None
    """How many processes there are, if that is known: larger numbers are clients."""
    nodes: tuple[str, ...] = ()
    """The names of processes, and then of clients, by number."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The names of messages, by origin and number, as in `0.1`."""

    def is_client(self, process: int) -> bool:
        return self.processes is not None and process >= self.processes

    def process(self, process: int) -> str:
        """Return what a process or client is called where nothing says what is meant."""
        if process < len(self.nodes):
            return self.nodes[process]
        return f"{'client' if self.is_client(process) else 'process'} {process}"

    def short(self, process: int) -> str:
        """Return what it is called where it is clear that processes are meant."""
        return self.nodes[process] if process < len(self.nodes) else str(process)

    def listed(self, processes: Iterable[int]) -> str:
        return ",".join(map(self.short, processes))

    def message(self, message: str) -> str:
        return self.messages.get(message, message)
