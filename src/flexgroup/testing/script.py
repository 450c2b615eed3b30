"""Golden scripts: commands to a bench, and what it must answer.

A script is a text of blocks. A block is one or more command lines, a line of four
dashes, and the expected answer up to a blank line:

    stack skeen over fifo channels, processes 3
    ----
    ok

    cast 3 a to=0,1
    ----
      3->0 Start a
      3->1 Start a

    deliver 3->0
    ----
    > 3->0 Start a
      0->0 LocalTs a ts=(1,0)
      0->1 LocalTs a ts=(1,0)

Commands:

    stack NAME over fifo|reordering channels, processes N[, groups P,Q,... R,S,...]
                                      [, replicas SIZE,SIZE,...]
    cast ORIGIN NAME to=P,Q,...       a process or, from N on, a client multicasts
    deliver P->Q [PLACE]              the packet at that place (0, the oldest, if not given)
    drop P->Q [PLACE]                 it is lost
    duplicate P->Q [PLACE]            it is there twice
    timer P NAME                      a timer runs out
    choose P NUMBER                   the world chooses
    crash P, recover P
    crash-after N COMMAND             the command, whose process crashes after N of its effects
    drop ->Q                          all that is in flight to Q is lost
    suspect P Q                       the failure detector of P takes Q for crashed
    trust P Q                         it does so no longer
    view P NUMBER of=Q,R,...          P is told that these are the members from now on
    stabilize                         deliver everything, oldest channel first, until quiet
    in-flight                         what is in the channels
    delivered                         what each process has delivered, in order
    stored P                          what the layers of P have in stable storage
    verdict                           cycles, missing and wrong deliveries, failing handlers
    verdict NAME, NAME                these properties, as the checks of traces judge them

Lines that start with `>` tell what happened, indented ones what it led to. `#` starts a
comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.guarantees import guarantees_of_channels
from flexgroup.core.journal import Journal
from flexgroup.core.layer import View
from flexgroup.core.message import (
    Message,
    MessageId,
    Packet,
    name_of,
    origin_of,
)
from flexgroup.core.precedence import find_cycle
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.stack import guarantees_above
from flexgroup.liars.named import liars_of
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.testing.packets_in_words import packet_in_words
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer.schedule import is_over

STABILIZE_AT_MOST = 100_000

HAPPENINGS = frozenset(
    {
        "cast", "deliver", "timer", "choose", "crash", "crash-after", "recover", "suspect",
        "trust", "view",
    }
)  # fmt: skip
"""The commands whose answer ends with what they led to: deliveries, views and packets."""


HEAD = re.compile(
    r"(.+) over (fifo|reordering) channels, processes (\d+)"
    r"(?:, groups (\d[\d, ]*?))?(?:, replicas (\d+(?:,\d+)*))?(?:, liars (\d[\w: ]*))?"
)
"""What stands behind `stack`: the stack, the channels, how many processes, groups, the sizes of
groups of replicas, liars."""


@dataclass
class Block:
    """Commands, and the answer that is expected of them together."""

    line: int
    commands: list[str]
    dashes: int = 0
    """The line of dashes before the answer; 0 if there is none."""
    expected: list[str] = field(default_factory=list)


@dataclass
class Mismatch:
    line: int
    command: str
    expected: list[str]
    answered: list[str]

    def __str__(self) -> str:
        def text(lines: list[str]) -> str:
            return "\n".join("    " + line for line in lines) or "    (nothing)"

        return (
            f"line {self.line}: {self.command}\n  expected\n{text(self.expected)}\n"
            f"  answered\n{text(self.answered)}"
        )


def parse(text: str) -> list[Block]:
    blocks: list[Block] = []
    block: Block | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if block is not None and block.dashes:
            if line.strip():
                block.expected.append(line.rstrip())
            else:
                block = None
        elif line.strip() == "----":
            if block is None:
                raise UsageError(
                    f"script line {number}: there is an answer without a command before it"
                )
            block.dashes = number
        elif line.strip() and not line.lstrip().startswith("#"):
            if block is None:
                block = Block(number, [])
                blocks.append(block)
            block.commands.append(line.partition(" #")[0].strip())
    return blocks


class Script:
    """Runs commands on a bench, one at a time, and tells what they did."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._bench: Bench | None = None
        self._journal = journal
        self._done: list[str] = []
        """The commands so far, but for verdicts."""
        self._failures: list[str] = []
        """What handlers raised."""
        self._condemned = False
        self._names: dict[MessageId, str] = {}
        self._fifo = True
        self._commands: dict[str, Callable[[str], list[str]]] = {
            "stack": self._stack,
            "cast": self._cast,
            "deliver": self._deliver,
            "drop": self._drop,
            "duplicate": self._duplicate,
            "timer": self._timer,
            "choose": self._choose,
            "crash": self._crash,
            "crash-after": self._crash_after,
            "recover": self._recover,
            "suspect": self._suspect,
            "trust": self._trust,
            "view": self._view,
            "stabilize": self._stabilize,
            "in-flight": self._in_flight,
            "delivered": self._delivered,
            "stored": self._stored,
            "verdict": self._verdict,
        }

    @property
    def bench(self) -> Bench:
        if self._bench is None:
            raise UsageError(
                "the script must begin with a stack, for example: "
                "stack skeen over fifo channels, processes 3"
            )
        return self._bench

    @property
    def violated(self) -> bool:
        """Whether what has been delivered so far breaks the order or integrity, a handler failed,
        or a property was found violated that a verdict named."""
        return self._condemned or (self._bench is not None and bool(self._violations()))

    def run(self, command: str) -> list[str]:
        word, _, rest = command.partition(" ")
        handler = self._commands.get(word)
        if handler is None:
            raise UsageError(f"unknown command '{word}'; commands: {', '.join(self._commands)}")
        if word not in ("verdict", "stabilize"):  # which lets commands of its own happen
            self._done.append(command)
        if word not in HAPPENINGS:
            return handler(rest.strip())
        # The packets are kept alive, so that no new one gets the number of an old one.
        in_flight = {id(sent): sent for sent in chain(*self.bench.channels.values())}
        lengths = [len(order) for order in self.bench.delivered]
        views = [len(installed) for installed in self.bench.installed]
        named = [len(leaders) for leaders in self.bench.leaders]
        try:
            answer = handler(rest.strip())
        except UsageError:
            raise  # the command makes no sense, or asks for what the stack does not do
        except Exception as error:
            if isinstance(error, PeerError) and self._is_tampered_with():
                raise
            # A script shows what a handler does, also that it fails or blames a correct peer.
            self._failures.append(f"{type(error).__name__}: {error}")
            answer = [f"> {command} fails with {self._failures[-1]}"]
        for process, order in enumerate(self.bench.delivered):
            told = [f"  {process} delivers {self._name(m.id)}" for m in order[lengths[process] :]]
            # The last view first, as each one moves what stands behind it.
            for before, view in reversed(self.bench.installed[process][views[process] :]):
                members = ",".join(map(str, view.members))
                installs = f"  {process} installs view {view.number} of {members}"
                told.insert(before - lengths[process], installs)
            for leader in self.bench.leaders[process][named[process] :]:
                trusted = ",".join(map(str, leader.trusted))
                answer.append(f"  {process} is told that {leader.process} leads {trusted}")
            answer += told
        for (source, target), packets in self.bench.channels.items():
            answer += [
                f"  {source}->{target} {self.describe(sent.packet)}"
                for sent in packets
                if id(sent) not in in_flight
            ]
        return answer

    def _is_tampered_with(self) -> bool:
        """Tell whether packets were lost or doubled although the stack relies on channels."""
        if not any(command.startswith(("drop", "duplicate")) for command in self._done):
            return False
        try:
            guarantees_above(
                self.bench.plan.layers, guarantees_of_channels(reliable=False, fifo=self._fifo)
            )
        except UsageError:
            return True
        return False

    def describe(self, packet: Packet) -> str:
        return packet_in_words(packet, self._name)

    def _name(self, identity: MessageId) -> str:
        return self._names.get(identity) or name_of(identity)

    def _stack(self, rest: str) -> list[str]:
        match = HEAD.fullmatch(rest)
        if match is None:
            raise UsageError(
                f"'stack {rest}': write: stack NAME over fifo channels, processes 3 "
                "(or: over reordering channels)"
            )
        plan = parse_stack(match[1])
        self._fifo = match[2] == "fifo"
        size = int(match[3])
        if size < 1:
            raise UsageError("a script needs at least one process")
        guarantees_above(plan.layers, guarantees_of_channels(reliable=True, fifo=self._fifo))
        groups = [
            tuple(sorted({_number(member) for member in word.split(",")}))
            for word in (match[4] or "").split()
        ]
        if any(group[-1] >= size for group in groups):
            raise UsageError(f"groups {match[4]}: processes are 0 to {size - 1}")
        sizes = [_number(word) for word in match[5].split(",")] if match[5] else []
        replicas = replicas_of_sizes(sizes)
        liars = liars_of((match[6] or "").split())
        self._bench = Bench(plan, size, tuple(groups), self._journal, replicas, liars)
        self._names = {}
        self._failures = []
        return ["ok"]

    def _cast(self, rest: str) -> list[str]:
        match = re.fullmatch(r"(\d+) (\w+) to=(\d+(?:,\d+)*)", rest)
        if match is None:
            raise UsageError(f"'cast {rest}': write: cast ORIGIN NAME to=0,2")
        if match[2] in self._names.values():
            raise UsageError(f"message '{match[2]}' has been cast before; give each its own name")
        destinations = tuple(sorted({int(word) for word in match[3].split(",")}))
        origin = int(match[1])
        self._names[self.bench.next_id(origin)] = match[2]
        self.bench.cast(origin, destinations)
        return []

    def _deliver(self, rest: str) -> list[str]:
        return [self._done_to_packet(self.bench.deliver, rest)]

    def _drop(self, rest: str) -> list[str]:
        if rest.startswith("->"):
            self.bench.lose(self._process(rest[2:]))
            return [f"> all that is in flight to {rest[2:]} is lost"]
        return [f"{self._done_to_packet(self.bench.remove, rest, anywhere=True)} is lost"]

    def _duplicate(self, rest: str) -> list[str]:
        return [f"{self._done_to_packet(self.bench.duplicate, rest)} is there twice"]

    def _done_to_packet(
        self, act: Callable[[int, int, int], Packet], rest: str, anywhere: bool = False
    ) -> str:
        match = re.fullmatch(r"(\d+)->(\d+)(?: (\d+))?", rest)
        if match is None:
            raise UsageError(f"'{rest}' is not a channel; write for example 2->1, or 2->1 1")
        source, target, place = int(match[1]), int(match[2]), int(match[3] or 0)
        if place and self._fifo and not anywhere:
            raise UsageError("channels are fifo: only the oldest packet can arrive")
        return f"> {source}->{target} {self.describe(act(source, target, place))}"

    def _timer(self, rest: str) -> list[str]:
        process, _, name = rest.partition(" ")
        level = self.bench.level_of_timer(_number(process), name)
        self.bench.end_timer(int(process), level, name)
        return [f"> {process} timer {name}"]

    def _choose(self, rest: str) -> list[str]:
        process, _, chosen = rest.partition(" ")
        self.bench.choose(_number(process), _number(chosen))
        return [f"> {process} gets {chosen}"]

    def _crash(self, rest: str) -> list[str]:
        self.bench.crash(self._process(rest))
        return [f"> {rest} crashes"]

    def _crash_after(self, rest: str) -> list[str]:
        match = re.fullmatch(r"(\d+) ((\S+) (?:\d+->)?(\d+)\b.*)", rest)
        if match is None or match[3] not in HAPPENINGS:
            raise UsageError(
                f"'crash-after {rest}': write: crash-after 1 deliver 0->2 (process 2 crashes after "
                "the first thing it does about that)"
            )
        process = self._process(match[4])
        answer: list[str] = []
        happens = self._commands[match[3]]

        def act() -> None:
            answer.extend(happens(match[2].partition(" ")[2]))

        self.bench.crash_after(process, int(match[1]), act)
        return [*answer, f"> {process} crashes"]

    def _recover(self, rest: str) -> list[str]:
        self.bench.recover(self._process(rest))
        return [f"> {rest} recovers"]

    def _suspect(self, rest: str) -> list[str]:
        return self._judge("suspect", rest, self.bench.suspect)

    def _trust(self, rest: str) -> list[str]:
        return self._judge("trust", rest, self.bench.trust)

    def _judge(self, verb: str, rest: str, tell: Callable[[int, int], None]) -> list[str]:
        match = re.fullmatch(r"(\d+) (\d+)", rest)
        if match is None:
            raise UsageError(f"'{verb} {rest}': write: {verb} 0 2 (process 0 {verb}s 2)")
        tell(self._process(match[1]), self._process(match[2]))
        return [f"> {match[1]} {verb}s {match[2]}"]

    def _view(self, rest: str) -> list[str]:
        match = re.fullmatch(r"(\d+) (\d+) of=(\d+(?:,\d+)*)", rest)
        if match is None:
            raise UsageError(f"'view {rest}': write: view 0 1 of=0,2 (0 is told of view 1)")
        members = tuple(sorted({self._process(word) for word in match[3].split(",")}))
        self.bench.tell(self._process(match[1]), View(int(match[2]), members))
        return [f"> {match[1]} is told of view {match[2]} of {','.join(map(str, members))}"]

    def _stabilize(self, rest: str) -> list[str]:
        answer: list[str] = []
        for _ in range(STABILIZE_AT_MOST):
            if self.bench.quiet:
                return answer
            source, target = next(iter(self.bench.channels))
            answer += self.run(f"deliver {source}->{target}")
        raise UsageError(f"the system is not quiet after {STABILIZE_AT_MOST} packets")

    def _in_flight(self, rest: str) -> list[str]:
        return [
            f"  {source}->{target} {self.describe(sent.packet)}"
            for (source, target), packets in sorted(self.bench.channels.items())
            for sent in packets
        ] or ["  nothing"]

    def _delivered(self, rest: str) -> list[str]:
        return [
            f"  {process}: {' '.join(self._name(m.id) for m in order) or '-'}"
            for process, order in enumerate(self.bench.delivered)
        ]

    def _stored(self, rest: str) -> list[str]:
        host = self.bench.hosts[self._process(rest)]
        answer = []
        for stored in host.stored:
            if stored.saved is not None:
                answer.append(f"saved {self.describe(stored.saved)}")
            if stored.first:
                answer.append(f"entries from {stored.first} on")
            for number, packet in sorted(stored.archive.items()):
                answer.append(f"{number}, set aside: {self.describe(packet)}")
            for number, packet in sorted(stored.log.items()):
                answer.append(f"{number}: {self.describe(packet)}")
        return [f"  {line}" for line in answer] or ["  nothing"]

    def _verdict(self, rest: str) -> list[str]:
        if rest:
            return self._judged([name.strip() for name in rest.split(",")])
        return self._violations() or ["holds"]

    def _judged(self, names: list[str]) -> list[str]:
        """Judge properties by the checks of traces, on a trace of the same commands."""
        # Imported here because Arrow takes longer to load than a script to run.
        from flexgroup.properties.catalogue import check
        from flexgroup.trace.collector import Collector
        from flexgroup.trace.recorder import Recorder

        collector = Collector()
        recorder = Recorder(collector)
        again = Script(recorder)
        for command in self._done:
            again.run(command)
        recorder.flush()
        history = collector.history(
            "script",
            self.bench.size,
            is_over(self.bench),
            tuple(sorted(self.bench.liars)),
            self._names,
        )
        answer = []
        for verdict in check(history, names):
            self._condemned |= verdict.outcome == Outcome.VIOLATED
            answer += str(verdict).splitlines()
        return answer

    def _violations(self) -> list[str]:
        delivered = self._delivered_by_correct()
        answer = [f"conduct: violated, {failure}" for failure in self._failures]
        found = find_cycle([[m.id for m in order] for order in delivered])
        if found:
            names = [self._name(identity) for identity in [*found, found[0]]]
            answer.append(f"acyclic order: violated, {' < '.join(names)}")
        for identity, process in wrongly_delivered(delivered):
            answer.append(f"integrity: violated, {self._name(identity)} at process {process}")
        if self.bench.quiet:
            for identity, process in self._missing():
                answer.append(
                    f"validity: violated, {self._name(identity)} never reaches process {process}"
                )
        return answer

    def _delivered_by_correct(self) -> list[list[Message]]:
        liars = self.bench.liars
        return [
            [] if process in liars else order for process, order in enumerate(self.bench.delivered)
        ]

    def _missing(self) -> list[tuple[MessageId, int]]:
        bench = self.bench
        faulty = bench.crashed | bench.liars
        messages = list(bench.messages.values())
        at_correct = {
            m.id
            for process, order in enumerate(bench.delivered)
            if process not in faulty
            for m in order
        }
        return [
            (m, process)
            for m, process in undelivered(bench.delivered, messages)
            if process not in faulty and (origin_of(m) not in faulty or m in at_correct)
        ]

    def _process(self, text: str) -> int:
        process = _number(text)
        if process >= self.bench.size:
            raise UsageError(f"there is no process {process}; they are 0 to {self.bench.size - 1}")
        return process


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"'{text}' is not a number")
    return int(text)


def check(text: str) -> list[Mismatch]:
    """Run a golden script; the blocks whose answer was another one."""
    script = Script()
    mismatches = []
    for block in parse(text):
        answered = [line for command in block.commands for line in script.run(command)]
        if answered != block.expected:
            mismatches.append(
                Mismatch(block.line, "; ".join(block.commands), block.expected, answered)
            )
    return mismatches


def rewrite(text: str) -> str:
    """The script with the answers it gets now in place of the expected ones."""
    script = Script()
    lines = text.splitlines()
    out: list[str] = []
    copied = 0
    for block in parse(text):
        if block.dashes:
            out += lines[copied : block.dashes]
            for command in block.commands:
                out += script.run(command)
            copied = block.dashes + len(block.expected)
    return "\n".join([*out, *lines[copied:], ""])
