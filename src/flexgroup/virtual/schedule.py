"""A schedule: what clients do and what goes wrong, to the microsecond.

It is drawn from a seed, prints itself, and is read again from what it printed. One line is one
action, so that a schedule which shows a fault can be cut down to the lines that matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from flexgroup.core.errors import UsageError
from flexgroup.virtual.network import Latency


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
    "join": "CLIENT GROUP: the client joins one more group",
    "leave": "CLIENT GROUP: the client leaves a group",
    "kill": "SERVER: its process is killed",
    "restart": "SERVER: a server that was killed is started again, and joins the others",
    "stop": "SERVER: its process stands still",
    "resume": "SERVER: it goes on",
    "cut": "SERVER SERVER: nothing passes from the first to the second",
    "slow": "SERVER SERVER SECONDS: what passes from the first to the second takes longer",
    "heal": "all ways are open and fast again",
}


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
                f"latency {latency.least} {latency.tail}",
                f"patience {self.patience}",
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
        except (ValueError, IndexError):
            raise UsageError(
                f"line {number} of the schedule is '{line:.80}'; a line sets seed, stack, servers,"
                f" latency or patience, names a client, or is a time and one of"
                f" {', '.join(ACTIONS)}"
            ) from None
    if not schedule.stack:
        raise UsageError("the schedule names no stack; add a line such as: stack RELIABLE ATOMIC")
    return schedule


def _with_line(schedule: Schedule, first: str, rest: list[str]) -> Schedule:
    match first:
        case "seed":
            return replace(schedule, seed=int(rest[0]))
        case "stack":
            return replace(schedule, stack=" ".join(rest))
        case "servers":
            return replace(schedule, servers=int(rest[0]))
        case "latency":
            return replace(schedule, latency=Latency(float(rest[0]), float(rest[1])))
        case "patience":
            return replace(schedule, patience=float(rest[0]))
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
LATENCIES = (Latency(0.0002, 0.0001), Latency(0.0002, 0.002), Latency(0.0005, 0.005))


@dataclass(frozen=True)
class Load:
    """What schedules are drawn from."""

    servers: int = 4
    clients: int = 6
    messages: int = 200
    seconds: float = 1.0
    """The messages are sent within this time."""
    changes: int = 10
    """How often a client joins or leaves a group."""
    faults: int = 0
    """How often something goes wrong."""


def draw_schedule(seed: int, stack: str, load: Load) -> Schedule:
    random = Random(f"{seed} {stack}")
    clients = _clients(random, load)
    # The servers work for so long, and faults need time to be noticed.
    patience = random.choice((0.5, 1.0, 2.0))
    seconds = load.seconds + (5 * patience if load.faults else 0)
    actions = [
        *_sends(random, load, clients, seconds),
        *_changes(random, load, clients, seconds),
        *_faults(random, load, seconds, patience),
    ]
    return Schedule(
        seed,
        stack,
        load.servers,
        clients,
        tuple(sorted(actions, key=lambda action: action.at)),
        random.choice(LATENCIES),
        patience,
    )


def _clients(random: Random, load: Load) -> tuple[ClientPlan, ...]:
    """Groups overlap: A is on all servers but one, B on all, C on two."""
    places = {
        "A": range(max(1, load.servers - 1)),
        "B": range(load.servers),
        "C": range(min(2, load.servers)),
    }
    clients = []
    for number in range(load.clients):
        server = number % load.servers
        groups = [g for g in GROUPS if server in places[g] and (g != "C" or random.random() < 0.5)]
        clients.append(ClientPlan(f"c{number}", server, tuple(groups)))
    return tuple(clients)


def _time(random: Random, seconds: float) -> float:
    return round(random.uniform(0, seconds), 6)


def _sends(
    random: Random, load: Load, clients: tuple[ClientPlan, ...], seconds: float
) -> Iterable[Action]:
    for _ in range(load.messages):
        client = random.choice(clients)
        count = random.choice((1, 1, 2, len(client.groups)))
        groups = random.sample(client.groups, min(count, len(client.groups)))
        yield Action(_time(random, seconds), "send", (client.name, *sorted(groups)))


def _changes(
    random: Random, load: Load, clients: tuple[ClientPlan, ...], seconds: float
) -> Iterable[Action]:
    for _ in range(load.changes):
        client = random.choice(clients)
        begin = _time(random, seconds)
        if random.random() < 0.7:  # a group that nobody else is in
            group = f"own-{client.name}"
            yield Action(begin, "join", (client.name, group))
            yield Action(
                round(begin + _time(random, seconds / 4), 6), "leave", (client.name, group)
            )
        else:
            group = random.choice(client.groups)
            yield Action(begin, "leave", (client.name, group))
            yield Action(round(begin + _time(random, seconds / 4), 6), "join", (client.name, group))


def _faults(random: Random, load: Load, seconds: float, patience: float) -> Iterable[Action]:
    for _ in range(load.faults):
        begin = _time(random, seconds)
        end = round(begin + random.uniform(0.1, 4) * patience, 6)
        server, other = map(str, random.sample(range(load.servers), 2))
        match random.choice(("kill", "stop", "cut", "part", "outage", "slow")):
            case "kill":
                yield Action(begin, "kill", (server,))
                yield Action(end, "restart", (server,))
            case "stop":
                yield Action(begin, "stop", (server,))
                yield Action(end, "resume", (server,))
            case "cut":
                yield Action(begin, "cut", (server, other))
                if random.random() < 0.5:
                    yield Action(begin, "cut", (other, server))
                yield Action(end, "heal", ())
            case "part":
                names = [str(number) for number in range(load.servers)]
                side = random.sample(names, random.randint(1, load.servers - 1))
                yield from _parted(begin, side, [name for name in names if name not in side])
                yield Action(end, "heal", ())
            case "outage":
                names = [str(number) for number in range(load.servers)]
                for source in names:
                    yield from (Action(begin, "cut", (source, o)) for o in names if o != source)
                yield Action(end, "heal", ())
            case "slow":
                seconds_more = f"{random.uniform(0.01, 0.5):.3f}"
                yield Action(begin, "slow", (server, other, seconds_more))
                yield Action(end, "heal", ())


def _parted(at: float, side: list[str], others: list[str]) -> Iterable[Action]:
    for one in side:
        for other in others:
            yield Action(at, "cut", (one, other))
            yield Action(at, "cut", (other, one))
