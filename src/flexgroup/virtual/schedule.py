"""A schedule: what clients do and what goes wrong, to the microsecond.

It is drawn from a seed, prints itself, and is read again from what it printed. One line is one
action, so that a schedule which shows a fault can be cut down to the lines that matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from random import Random

from flexgroup.core.errors import UsageError
from flexgroup.core.promises import UNIFORM
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.virtual.network import Latency
from flexgroup.worlds.network.faults import Faults


@dataclass(frozen=True)
class Action:
    """Something that happens, so many seconds after all clients have joined."""

    at: float
    what: str
    """One of ACTIONS."""
    who: tuple[str, ...]
    """Clients, groups or servers, as the action takes them."""

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.what} {' '.join(self.who)}".rstrip()


ACTIONS = {
    "send": "CLIENT GROUP...: the client sends a message, to all these groups at once",
    "confirm": "CLIENT GROUP: the client waits until what it has sent to the group is confirmed",
    "join": "CLIENT GROUP: the client joins one more group",
    "leave": "CLIENT GROUP: the client leaves a group",
    "drop": "CLIENT: its connection breaks, and the client connects to the next server",
    "kill": "SERVER: its process is killed",
    "restart": "SERVER: a server that was killed is started again, and joins the others",
    "stop": "SERVER: its process stands still",
    "resume": "SERVER: it goes on",
    "cut": "SERVER SERVER: nothing passes from the first to the second",
    "slow": "SERVER SERVER SECONDS: what passes from the first to the second takes longer",
    "uneven": "SERVER SERVER SECONDS: each packet takes longer by another time up to so much",
    "disk": "SERVER HOW: its trace cannot be written; it `sticks` for now, or `fails` for good",
    "forgetful": "SERVER: what it has to remember cannot be saved; then the server ends",
    "heal": "all ways are open, fast and even again, and disks that were stuck or broken go on",
}


DISK_FAULTS = ("sticks", "fails")

OF_CLIENTS = ("send", "confirm", "join", "leave", "drop")
"""The actions of clients; the others are faults, and the end of faults."""


@dataclass(frozen=True)
class ClientPlan:
    name: str
    server: int
    """The server that it connects to; if that one fails, the client tries the next."""
    groups: tuple[str, ...]

    def __str__(self) -> str:
        return f"client {self.name} {self.server} {' '.join(self.groups)}".rstrip()


@dataclass(frozen=True)
class Schedule:
    seed: int
    """It decides how long packets travel, and whatever else is left to chance."""
    stack: str
    servers: int
    clients: tuple[ClientPlan, ...]
    actions: tuple[Action, ...]
    latency: Latency = field(default_factory=Latency)
    patience: float = 1.0
    pack: int = 256
    """How many messages may share an envelope."""
    data: bool = False
    """The servers keep what they need to come back after all of them were killed."""
    partitionable: bool = False
    """The groups are partitionable."""
    keep: int = 0
    """How many messages of each group the servers keep, too."""

    @property
    def seconds(self) -> float:
        return max((action.at for action in self.actions), default=0.0)

    def __str__(self) -> str:
        latency = self.latency
        return "\n".join(
            [
                f"seed {self.seed}",
                f"stack {self.stack}",
                f"servers {self.servers}",
                f"latency {latency.least} {latency.tail} {latency.spread}",
                f"patience {self.patience}",
                f"pack {self.pack}",
                *(["data yes"] if self.data else []),
                *(["partitionable yes"] if self.partitionable else []),
                *([f"keep {self.keep}"] if self.keep else []),
                *map(str, self.clients),
                *map(str, self.actions),
                "",
            ]
        )


def parse_schedule(text: str) -> Schedule:
    """Read what a schedule has printed; lines that begin with # are passed over."""
    schedule = Schedule(0, "", 1, (), ())
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        try:
            schedule = _with_line(schedule, words[0], words[1:])
        except (ValueError, LookupError):
            raise UsageError(
                f"line {number} of the schedule is '{line:.80}'; a line sets seed, stack, servers,"
                " latency, patience, pack, data, partitionable or keep, names a client, or is a"
                f" time and one of {', '.join(ACTIONS)}"
            ) from None
    if not schedule.stack:
        raise UsageError("the schedule names no stack; add a line such as: stack RELIABLE ATOMIC")
    if schedule.servers < 1 or schedule.pack < 1 or not 0 < schedule.patience < math.inf:
        raise UsageError("a schedule has at least one server, a pack of at least 1 and a patience")
    latency = schedule.latency
    if not all(0 <= seconds < math.inf for seconds in latency):
        raise UsageError(f"a latency of {latency.least} {latency.tail}: give seconds from 0 on")
    names = set()
    for client in schedule.clients:
        if client.server not in range(schedule.servers):
            raise UsageError(f"'{client}': servers are numbered from 0 to {schedule.servers - 1}")
        if client.name in names:
            raise UsageError(f"'{client}': there is another client {client.name}")
        names.add(client.name)
    check_settings(schedule)
    for action in schedule.actions:
        _check(action, names, schedule.servers)
    return schedule


def check_settings(schedule: Schedule) -> None:
    """Raise a UsageError for groups that servers refuse to create."""
    plan = parse_stack(schedule.stack)
    channels = Faults().channels()
    plan.check_nothing_is_lost(channels)
    if schedule.keep and not (schedule.data and plan.gives_one_sequence(channels)):
        raise UsageError(
            f"the messages of '{schedule.stack}' cannot be kept; that takes a total order with"
            " safe on top of it, and the line: data yes"
        )
    if schedule.partitionable and UNIFORM in plan.promises(channels):
        raise UsageError(f"groups with '{schedule.stack}' cannot be partitionable; leave out safe")


def _check(action: Action, clients: set[str], servers: int) -> None:
    """Raise a UsageError unless an action names what it takes, and that is there."""
    what, who = action.what, action.who
    if not 0 <= action.at < math.inf:
        raise UsageError(f"'{action}': {action.at:g} is no number of seconds from 0 on")
    takes = [word for word in ACTIONS[what].split(":")[0].split() if word.strip(".").isupper()]
    is_open = bool(takes) and takes[-1].endswith("...")
    if len(who) < len(takes) or (len(who) > len(takes) and not is_open):
        raise UsageError(f"'{action}': {what} takes {ACTIONS[what]}")
    for kind, word in zip(takes, who, strict=False):
        match kind:
            case "CLIENT":
                if word not in clients:
                    raise UsageError(
                        f"'{action}': there is no client {word}; clients are named before"
                    )
            case "SERVER":
                if word not in map(str, range(servers)):
                    raise UsageError(f"'{action}': servers are numbered from 0 to {servers - 1}")
            case "SECONDS":
                if not _is_time(word):
                    raise UsageError(f"'{action}': {word} is no number of seconds from 0 on")
            case "HOW":
                if word not in DISK_FAULTS:
                    raise UsageError(f"'{action}': a disk {' or '.join(DISK_FAULTS)}")


def _is_time(word: str) -> bool:
    try:
        return 0 <= float(word) < math.inf
    except ValueError:
        return False


def _with_line(schedule: Schedule, first: str, rest: list[str]) -> Schedule:
    match first:
        case "seed":
            return replace(schedule, seed=int(rest[0]))
        case "stack":
            return replace(schedule, stack=" ".join(rest))
        case "servers":
            return replace(schedule, servers=int(rest[0]))
        case "latency":
            return replace(schedule, latency=Latency(*map(float, rest)))
        case "patience":
            return replace(schedule, patience=float(rest[0]))
        case "pack":
            return replace(schedule, pack=int(rest[0]))
        case "data":
            return replace(schedule, data={"yes": True, "no": False}[rest[0]])
        case "partitionable":
            return replace(schedule, partitionable={"yes": True, "no": False}[rest[0]])
        case "keep":
            return replace(schedule, keep=int(rest[0]))
        case "client":
            client = ClientPlan(rest[0], int(rest[1]), tuple(rest[2:]))
            return replace(schedule, clients=(*schedule.clients, client))
        case _:
            action = Action(float(first), rest[0], tuple(rest[1:]))
            if action.what not in ACTIONS:
                raise ValueError(action.what)
            return replace(schedule, actions=(*schedule.actions, action))


# Drawing schedules.

GROUPS = ("A", "B", "C")
LATENCIES = (
    Latency(0.0002, 0.0001),
    Latency(0.0002, 0.002),
    Latency(0.0005, 0.005),
    Latency(0.0002, 0.001, 0.02),
)
PATIENCES = (0.5, 1.0, 2.0)
PACKS = (1, 3, 256)
FAULTS = ("kill", "stop", "cut", "part", "outage", "slow", "uneven", "disk")


@dataclass(frozen=True)
class Load:
    """What schedules are drawn from."""

    servers: Sequence[int] = (4,)
    """How many there may be."""
    clients: int = 6
    messages: int = 200
    seconds: float = 1.0
    """The messages are sent within this time."""
    changes: int = 10
    """How often a client joins or leaves a group."""
    drops: int = 0
    """How often the connection of a client breaks that has just asked to join a group."""
    faults: int = 0
    """How often something goes wrong."""
    kinds: tuple[str, ...] = FAULTS
    """What may go wrong."""
    longest: float = 4.0
    """It goes wrong for at most so long, in multiples of `patience`."""
    longest_stop: float = 4.0
    """A server stands still for at most so long, in multiples of `patience`."""
    most_killed: float = 1.0
    """The share of the servers that are dead at the same time, at most."""
    data: bool = False
    """Whether the servers keep what they need to come back."""
    partitionable: bool = False
    """Whether the groups are partitionable."""
    keep: int = 0
    """How many messages of a group they keep, too. Then all clients are in the group B, since
    groups that keep their messages have no order in common."""


def draw_schedule(seed: int, stack: str, load: Load) -> Schedule:
    return _Draw(seed, stack, load).schedule()


class _Draw:
    def __init__(self, seed: int, stack: str, load: Load) -> None:
        self._seed = seed
        self._stack = stack
        self._load = load
        self._random = random = Random(f"{seed} {stack}")
        self._servers = random.choice(load.servers)
        self._patience = random.choice(PATIENCES)
        # The servers work for so long, and faults need time to be noticed.
        self._seconds = load.seconds + (5 * self._patience if load.faults else 0)
        self._clients = self._draw_clients()

    def schedule(self) -> Schedule:
        actions = [*self._sends(), *self._changes(), *self._faults(), *self._drops()]
        return Schedule(
            self._seed,
            self._stack,
            self._servers,
            self._clients,
            tuple(sorted(actions, key=lambda action: action.at)),
            self._random.choice(LATENCIES),
            self._patience,
            self._random.choice(PACKS),
            self._load.data,
            self._load.partitionable,
            self._load.keep,
        )

    def _draw_clients(self) -> tuple[ClientPlan, ...]:
        """Groups overlap: A is on all servers but one, B on all, C on two."""
        servers = self._servers
        places = {
            "A": range(max(1, servers - 1)),
            "B": range(servers),
            "C": range(min(2, servers)),
        }
        clients = []
        for number in range(self._load.clients):
            server = number % servers
            groups = [
                group
                for group in GROUPS
                if server in places[group] and (group != "C" or self._random.random() < 0.5)
            ]
            if self._load.keep:
                groups = ["B"]
            clients.append(ClientPlan(f"c{number}", server, tuple(groups)))
        return tuple(clients)

    def _time(self, seconds: float) -> float:
        return round(self._random.uniform(0, seconds), 6)

    def _sends(self) -> Iterator[Action]:
        random = self._random
        for _ in range(self._load.messages):
            client = random.choice(self._clients)
            count = random.choice((1, 1, 2, len(client.groups)))
            groups = random.sample(client.groups, min(count, len(client.groups)))
            yield Action(self._time(self._seconds), "send", (client.name, *sorted(groups)))

    def _changes(self) -> Iterator[Action]:
        random = self._random
        for _ in range(self._load.changes):
            client = random.choice(self._clients)
            begin = self._time(self._seconds)
            end = round(begin + self._time(self._seconds / 4), 6)
            if random.random() < 0.7:  # a group that nobody else is in
                group = f"own-{client.name}"
                yield Action(begin, "join", (client.name, group))
                yield Action(end, "leave", (client.name, group))
            else:
                group = random.choice(client.groups)
                yield Action(begin, "leave", (client.name, group))
                yield Action(end, "join", (client.name, group))

    def _drops(self) -> Iterator[Action]:
        random = self._random
        for _ in range(self._load.drops):
            client = random.choice(self._clients)
            group = random.choice(client.groups)
            begin = self._time(self._seconds)
            again = round(begin + self._time(self._seconds / 4), 6)
            yield Action(begin, "leave", (client.name, group))
            yield Action(again, "join", (client.name, group))
            yield Action(round(again + self._time(0.02), 6), "drop", (client.name,))

    def _faults(self) -> Iterator[Action]:
        random = self._random
        names = [str(number) for number in range(self._servers)]
        dead: list[tuple[float, float]] = []
        for _ in range(self._load.faults):
            begin = self._time(self._seconds)
            end = round(begin + random.uniform(0.1, self._load.longest) * self._patience, 6)
            server, other = random.sample(names, 2)
            match random.choice(self._load.kinds):
                case "kill":
                    at_once = 1 + sum(begin <= to and since <= end for since, to in dead)
                    if at_once > self._load.most_killed * self._servers:
                        continue
                    dead.append((begin, end))
                    yield Action(begin, "kill", (server,))
                    yield Action(end, "restart", (server,))
                    continue
                case "stop":
                    latest = round(begin + self._load.longest_stop * self._patience, 6)
                    yield Action(begin, "stop", (server,))
                    yield Action(min(end, latest), "resume", (server,))
                    continue
                case "cut":
                    yield Action(begin, "cut", (server, other))
                    if random.random() < 0.5:
                        yield Action(begin, "cut", (other, server))
                case "part":
                    side = random.sample(names, random.randint(1, self._servers - 1))
                    others = [name for name in names if name not in side]
                    for one, another in product(side, others):
                        yield Action(begin, "cut", (one, another))
                        yield Action(begin, "cut", (another, one))
                case "outage":
                    for one, another in permutations(names, 2):
                        yield Action(begin, "cut", (one, another))
                case "forgetful":
                    yield Action(begin, "forgetful", (server,))
                case "disk":
                    yield Action(begin, "disk", (server, random.choice(DISK_FAULTS)))
                case "slow" | "uneven" as how:
                    seconds_more = f"{random.uniform(0.01, 0.5):.3f}"
                    yield Action(begin, how, (server, other, seconds_more))
            yield Action(end, "heal", ())
