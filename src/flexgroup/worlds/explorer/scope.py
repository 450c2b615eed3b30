"""What is explored: a small system, its casts, its channels, and how much may go wrong."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from itertools import chain

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees, guarantees_of_channels
from flexgroup.core.replicas import Replicas, check_destinations, check_replicas
from flexgroup.liars.named import Liars, check_liars, in_words

Destinations = tuple[int, ...]

MOST_PROCESSES = 64
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class PlannedCast:
    """A member, or a client (any number from the number of processes on), multicasts."""

    origin: int
    destinations: Destinations


@dataclass(frozen=True)
class Bounds:
    """The most faults of each kind, and the most timers that run out, over a whole run."""

    crashes: int = 0
    suspicions: int = 0
    """How often a process is suspected that has not crashed."""
    losses: int = 0
    duplicates: int = 0
    timers: int = 0
    restarts: int = 0
    """How often a process that has crashed starts again, with what it has in stable storage."""


@dataclass(frozen=True)
class Scope:
    """A system small enough that every schedule of it can be tried."""

    processes: int
    casts: tuple[PlannedCast, ...]
    fifo: bool = True
    any_order: bool = False
    """Whether the casts of one origin may happen in any order, not only as listed."""
    bounds: Bounds = field(default=Bounds())
    groups: tuple[Destinations, ...] = ()
    """The groups that messages stay within, as layers are told; empty if they are told nothing."""
    views: tuple[Destinations, ...] = ()
    """The members of view 1, view 2 and so on; each process is told of each at any time."""
    crashing: Destinations = ()
    """Who may crash; empty for anybody."""
    suspecting: tuple[tuple[int, int], ...] = ()
    """Who may suspect whom wrongly, as pairs; empty for anybody and anybody else."""
    replicas: Replicas = ()
    """The groups of replicas that the processes are divided into, if they are."""
    liars: Liars = ()
    """Who is Byzantine, and in which way."""

    def __post_init__(self) -> None:
        if not 1 <= self.processes <= MOST_PROCESSES:
            raise UsageError(
                f"{self.processes} processes cannot be explored; give 1 to {MOST_PROCESSES}"
            )
        if len(self.casts) > len(LETTERS):
            raise UsageError(
                f"{len(self.casts)} messages cannot be explored; give at most {len(LETTERS)}"
            )
        for cast in self.casts:
            if not cast.destinations:
                raise UsageError("a message needs at least one destination, as in --message 0,2")
            for destination in cast.destinations:
                if not 0 <= destination < self.processes:
                    raise UsageError(
                        f"destination {destination} does not exist; "
                        f"processes are 0 to {self.processes - 1}"
                    )
        self._check_groups()
        check_liars(self.liars, self.processes)
        for process in self.named:
            if not 0 <= process < self.processes:
                raise UsageError(
                    f"process {process}, which may crash, suspect or be suspected, does not exist; "
                    f"processes are 0 to {self.processes - 1}"
                )
        for suspicious, suspected in self.suspecting:
            if suspicious == suspected:
                raise UsageError(
                    f"process {suspected} cannot suspect itself; name whom it suspects, as in 1:0"
                )
        check_replicas(self.replicas, self.processes)
        for cast in self.casts:
            check_destinations(self.replicas, cast.destinations)
        for view in self.views:
            if not view or not all(0 <= member < self.processes for member in view):
                raise UsageError(
                    f"a view of {','.join(map(str, view)) or 'nobody'} cannot be; "
                    f"processes are 0 to {self.processes - 1}"
                )
        clients = {cast.origin for cast in self.client_casts.values()}
        if clients != set(range(self.processes, self.processes + len(clients))):
            raise UsageError(
                f"clients are numbered from {self.processes} on without gaps, "
                f"but these multicast: {', '.join(map(str, sorted(clients)))}"
            )
        if any(cast.origin < 0 for cast in self.casts):
            raise UsageError("an origin cannot be negative")
        if any(bound < 0 for bound in astuple(self.bounds)):
            raise UsageError("a bound on faults or timers cannot be negative; give 0 or more")

    def _check_groups(self) -> None:
        for group in self.groups:
            if not all(0 <= member < self.processes for member in group):
                raise UsageError(
                    f"group {','.join(map(str, group))} has a member that does not exist; "
                    f"processes are 0 to {self.processes - 1}"
                )
        for cast in self.casts if self.groups else ():
            members = {cast.origin, *cast.destinations}
            if not any(members <= set(group) for group in self.groups):
                raise UsageError(
                    f"no group has all of {','.join(map(str, sorted(members)))}, "
                    "the origin and the destinations of a message; add one, or give no groups"
                )

    @property
    def named(self) -> set[int]:
        """Those that may crash, suspect or be suspected wrongly, where not anybody may, and those
        that lie."""
        return {*self.crashing, *chain(*self.suspecting), *dict(self.liars)}

    @property
    def crashes_by_name(self) -> bool:
        """Whether each that is named may crash, whoever else does: no stock can run out."""
        if self.bounds.restarts:
            return False  # it may crash again
        return 0 < len(set(self.crashing)) <= self.bounds.crashes

    @property
    def suspicions_by_name(self) -> bool:
        """The same for wrong suspicions."""
        return 0 < len(set(self.suspecting)) <= self.bounds.suspicions

    @property
    def stock(self) -> Bounds:
        """What all processes draw on: the bounds, without those of faults by name."""
        return replace(
            self.bounds,
            crashes=0 if self.crashes_by_name else self.bounds.crashes,
            suspicions=0 if self.suspicions_by_name else self.bounds.suspicions,
        )

    @property
    def channels(self) -> Guarantees:
        return guarantees_of_channels(
            not self.bounds.losses and not self.bounds.duplicates, self.fifo
        )

    @property
    def client_casts(self) -> dict[int, PlannedCast]:
        """What clients multicast, by place among all casts."""
        casts = enumerate(self.casts)
        return {place: cast for place, cast in casts if cast.origin >= self.processes}

    @property
    def clients(self) -> int:
        return len({cast.origin for cast in self.client_casts.values()})

    def described(self) -> str:
        sets = " ".join("{" + ",".join(map(str, c.destinations)) + "}" for c in self.casts)
        views = " ".join("{" + ",".join(map(str, view)) + "}" for view in self.views)
        told = f", views {views}" if views else ""
        sizes = " and ".join(str(len(group)) for group in self.replicas)
        divided = f" in groups of {sizes}" if sizes else ""
        lying = f", liars {' '.join(in_words(self.liars))}" if self.liars else ""
        casts = f"{len(self.casts)} messages to {sets}" if self.casts else "no messages"
        return f"{self.processes} processes{divided}, {casts}{told}{lying}"


def from_clients(processes: int, *messages: Destinations, fifo: bool = True) -> Scope:
    """Return a scope in which each message is cast by a client of its own, so any may be first."""
    casts = tuple(
        PlannedCast(processes + number, destinations)
        for number, destinations in enumerate(messages)
    )
    return Scope(processes, casts, fifo)
