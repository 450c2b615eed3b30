"""Searching from a state of a run, in a process of its own, which ends when this one does.

The process is this module: it is told what to search in one line of JSON, says how far it is in
lines of JSON, and last what it has found. Runs are named by their addresses.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.lab.address import MOST_MOVES, Address, read_address
from flexgroup.lab.own_process import say, started, told
from flexgroup.worlds.explorer.explorer import Exploration, SearchLimits, SearchProgress
from flexgroup.worlds.explorer.search_setup import SearchOptions

MOST_SECONDS = 120.0
MOST_STATES = 3_000_000
MOST_MEMORY = 1 << 30
MOST_AT_ONCE = 2
MOST_KEPT = 32
GRACE_SECONDS = 15.0
"""How long a search may take to stop and to rebuild what it found, before it is ended."""

BETWEEN_WORDS = 0.2
"""The seconds between two words about progress."""


@dataclass
class RunningSearch:
    """A search in a process of its own, and the last that it said."""

    address: Address
    seconds: float
    process: subprocess.Popen[str]
    told: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False

    @property
    def over(self) -> bool:
        return "last_line" in self.told or "error" in self.told

    @property
    def words(self) -> str:
        """How far it is, or what it came to."""
        if "error" in self.told:
            return str(self.told["error"])
        if self.over:
            return str(self.told["last_line"])
        if not self.told:
            return "The search begins."
        return (
            f"{self.told['states']:,} states, depth {self.told['depth']}, "
            f"{self.told['frontier']:,} in the frontier, {self.told['seconds']:.1f} s"
        )

    @property
    def found(self) -> list[tuple[str, Address]]:
        """The properties that can be broken from here, each with a run from here on."""
        done = len(self.address.moves)
        runs = self.told.get("found", [])
        return [(name, read_address(query).at(done)) for name, query in runs]

    def stop(self) -> None:
        self.stopped = True
        self.process.kill()

    def follow(self) -> None:
        """Read what the process says until it has ended."""
        guard = threading.Timer(self.seconds + GRACE_SECONDS, self.process.kill)
        guard.start()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):
                self.told = json.loads(line)
        self.process.wait()
        guard.cancel()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdout.close()
        if not self.over:
            reason = "It was stopped." if self.stopped else "The search ended without a result."
            self.told = {"error": reason}


class Searches:
    """The searches that were begun, by number."""

    def __init__(self, protocols: Sequence[str] = ()) -> None:
        self._protocols = list(protocols)
        self._numbers = count(1)
        self._known: dict[int, RunningSearch] = {}
        self._lock = threading.Lock()

    def begin(self, address: Address, seconds: float) -> int:
        if not 1 <= seconds <= MOST_SECONDS:
            raise UsageError(f"a search takes from 1 to {MOST_SECONDS:g} seconds here")
        with self._lock:
            running = sum(not search.over for search in self._known.values())
            if running >= MOST_AT_ONCE:
                raise UsageError(f"{running} searches are going on; stop one, or wait for it")
            while len(self._known) >= MOST_KEPT:
                del self._known[next(n for n, search in self._known.items() if search.over)]
            number = next(self._numbers)
            search = RunningSearch(address, seconds, started(__name__))
            self._known[number] = search
        wanted = {"address": address.query, "seconds": seconds, "protocols": self._protocols}
        assert search.process.stdin is not None
        search.process.stdin.write(f"{json.dumps(wanted)}\n")
        search.process.stdin.flush()
        threading.Thread(target=search.follow, daemon=True).start()
        return number

    def get(self, number: int) -> RunningSearch:
        search = self._known.get(number)
        if search is None:
            raise UsageError("there is no such search any more; begin it again from its run")
        return search

    def stop_all(self) -> None:
        for search in self._known.values():
            if not search.over:
                search.stop()


def search(address: Address, seconds: float) -> None:
    """Search from where a run stands; say how far it is, and at last what was found."""
    options = SearchOptions(symmetry=False, follow_clients=True, begin=address.moves)
    said = 0.0

    def report(progress: SearchProgress) -> None:
        nonlocal said
        if progress.seconds - said >= BETWEEN_WORDS:
            said = progress.seconds
            say(
                states=progress.states,
                depth=progress.depth,
                frontier=progress.frontier,
                seconds=progress.seconds,
            )

    limits = SearchLimits(MOST_STATES, MOST_MOVES - len(address.moves), seconds, MOST_MEMORY)
    result = Exploration(address.plan, address.scope, options, limits, report=report).run()
    found = [
        (violation.name, Address(address.stack, address.scope, violation.run).query)
        for violation in result.violations
    ]
    say(last_line=result.last_line(), found=found)


def main() -> None:
    wanted = told()
    try:
        for module in wanted["protocols"]:
            importlib.import_module(module)
        search(read_address(wanted["address"]), wanted["seconds"])
    except FlexGroupError as error:
        say(error=str(error))


if __name__ == "__main__":
    main()
