"""A group with a total order, of which nothing is real: it decides what comes when.

Members come, go and lose their connections; each is given the one sequence of views and messages
at its own pace. What a member sends takes its place in the sequence later, or never, if the member
is gone first. The state is told beside all that, in the order of the one that tells it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from flexgroup.replica.machine import (
    Answer,
    Begin,
    Forget,
    GiveUp,
    ReplicaMachine,
    Send,
    Tell,
)
from flexgroup.replica.packets import Part, encode


class Lines:
    """A state that remembers everything that was called, and who came and went."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._coming: list[str] = []

    @property
    def methods(self) -> list[str]:
        return []

    def apply(self, caller: str, method: str, arguments: bytes) -> bytes:
        self.lines.append(f"{caller} {method}")
        return str(len(self.lines)).encode()

    def joined(self, member: str) -> None:
        self.lines.append(f"+{member}")

    def left(self, member: str) -> None:
        self.lines.append(f"-{member}")

    def pieces(self) -> Iterator[bytes]:
        return iter([line.encode() for line in self.lines])

    def begin_restoring(self) -> None:
        self._coming = []

    def restore(self, piece: bytes) -> None:
        self._coming.append(piece.decode())

    def end_restoring(self) -> None:
        self.lines = self._coming


@dataclass
class View:
    number: int
    members: tuple[str, ...]


@dataclass
class Message:
    sender: str
    body: bytes


@dataclass
class Process:
    """A process that wants to be a replica, whatever happens to its connection."""

    name: str
    state: Lines = field(default_factory=Lines)
    machine: ReplicaMachine = field(init=False)
    place: int | None = None
    """How much of the sequence it has been given, if it is a member."""
    unsent: deque[bytes] = field(default_factory=deque)
    """What it has sent that has no place yet."""
    telling: deque[tuple[str, bytes]] = field(default_factory=deque)
    answers: dict[int, bytes | None] = field(default_factory=dict)
    """The outcomes of its calls, and None for those that nobody knows of."""
    calls: int = 0

    def __post_init__(self) -> None:
        self.machine = ReplicaMachine(self.state, f"session of {self.name}")


class GroupModel:
    def __init__(self, seed: int, processes: int) -> None:
        self.random = Random(seed)
        self.processes = [Process(f"p{number}") for number in range(processes)]
        self.sequence: list[View | Message] = []
        self.members: tuple[str, ...] = ()

    def times_begun(self) -> int:
        """How often nobody in the group had the state."""
        return sum(process.machine.times_begun for process in self.processes)

    def _change(self, members: tuple[str, ...]) -> None:
        self.members = members
        number = sum(isinstance(item, View) for item in self.sequence) + 1
        self.sequence.append(View(number, members))

    # What may happen.

    def enter(self, process: Process) -> None:
        process.machine.entering(process.name)
        self._change((*self.members, process.name))
        process.place = len(self.sequence) - 1

    def lose(self, process: Process) -> None:
        """It is gone for the others; some of what it has sent last goes with it."""
        for _ in range(self.random.randint(0, len(process.unsent))):
            self.put(process)
        process.unsent.clear()
        process.telling.clear()
        process.place = None
        process.machine.lost()
        self._change(tuple(name for name in self.members if name != process.name))

    def put(self, process: Process) -> None:
        """What it has sent first takes its place in the sequence."""
        self.sequence.append(Message(process.name, process.unsent.popleft()))

    def give(self, process: Process) -> None:
        """It is given the next item of the sequence."""
        assert process.place is not None
        item = self.sequence[process.place]
        process.place += 1
        if isinstance(item, View):
            process.machine.viewed(item.number, item.members)
        else:
            process.machine.delivered(item.sender, item.body)
        self._act(process)

    def tell(self, process: Process) -> None:
        """The next part of a state that it is telling comes to the newcomer, or to nobody."""
        newcomer, body = process.telling.popleft()
        for other in self.processes:
            if other.name == newcomer and other.place is not None:
                other.machine.told(process.name, body)
                self._act(other)

    def call(self, process: Process) -> None:
        process.calls += 1
        process.machine.call(f"{process.name}.{process.calls}", b"")
        self._act(process)

    def _act(self, process: Process) -> None:
        for effect in process.machine.effects():
            match effect:
                case Send(packet):
                    process.unsent.append(encode(packet))
                case Answer(number, outcome):
                    assert number not in process.answers, "a call is answered once"
                    process.answers[number] = outcome
                case Forget(number):
                    assert number not in process.answers
                    process.answers[number] = None
                case Tell(newcomer, view, pieces):
                    told = list(pieces)
                    for place, piece in enumerate(told):
                        part = Part(newcomer, view, place, piece, True, place == len(told) - 1)
                        process.telling.append((newcomer, encode(part)))
                case Begin():
                    assert process.place is not None
                case GiveUp():
                    raise AssertionError("a snapshot has failed")

    # Schedules.

    def run(self, steps: int, losses: int, calls: int) -> None:
        """Let something happen, again and again; then let everybody come back and catch up."""
        random = self.random
        for _ in range(steps):
            process = random.choice(self.processes)
            possible = []
            if process.place is None:
                possible.append(self.enter)
            else:
                possible += [self.give] * 6 * (process.place < len(self.sequence))
                possible += [self.put] * 4 * bool(process.unsent)
                possible += [self.tell] * 4 * bool(process.telling)
                if losses and random.random() < 0.05:
                    losses -= 1
                    possible = [self.lose]
            if calls and random.random() < 0.2:
                calls -= 1
                possible = [self.call]
            if possible:
                random.choice(possible)(process)
        self.come_to_rest()

    def come_to_rest(self) -> None:
        for process in self.processes:
            if process.place is None:
                self.enter(process)
        while True:
            behind = [p for p in self.processes if p.place is not None]
            moves = [
                *((self.give, p) for p in behind if p.place != len(self.sequence)),
                *((self.put, p) for p in behind if p.unsent),
                *((self.tell, p) for p in behind if p.telling),
            ]
            if not moves:
                return
            move, process = self.random.choice(moves)
            move(process)
