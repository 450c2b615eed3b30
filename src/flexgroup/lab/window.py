"""The address of a window on a recorded run: which events of it, and from when to when.

    traces=first&run=NAME&from=1200&to=3400&processes=0-3,7&kind=send&message=5.0

Times are those of the trace, in nanoseconds. A window without times reaches from the first to the
last of the events that it chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode

from flexgroup.core.errors import UsageError
from flexgroup.core.message import ORIGIN_MASK, MessageId, message_id
from flexgroup.trace.names import Names
from flexgroup.trace.schema import KINDS
from flexgroup.trace.timeline import Chosen

LONGEST = 16_384
MOST_CHOSEN = 200
"""Messages, and events that are named, in one address."""

TOP = "#top"
"""Ends the address of a page that is looked at from its beginning, wherever the link to it was."""

MOST_IN_A_SET = 12
"""Sets of so many processes are written one by one."""

FIELDS = (
    "traces", "run", "with", "from", "to", "processes", "message", "kind", "destinations", "named",
    "skip", "called",
)  # fmt: skip

LARGEST = (1 << 63) - 1

Place = tuple[int, int]


@dataclass(frozen=True)
class RunName:
    """A run of one of the trace sets that the lab was given."""

    traces: str
    run: str


@dataclass(frozen=True)
class Window:
    """Events of a run that are looked at together, or those of two runs side by side."""

    of: RunName
    beside: RunName | None = None
    """The run to compare with; times then count from the first difference."""
    first: int | None = None
    last: int | None = None
    """The first moment that is not in the window any more."""
    processes: str = ""
    """Those that are wanted, as one writes them: `0-3,7`; empty for all."""
    kinds: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    destinations: str = ""
    named: tuple[Place, ...] = ()
    """Events to be found: those that a verdict names."""
    skip: int = 0
    """How many of the events come before those that are shown one by one."""
    called: str = ""
    """What a message to be looked for is called where the run comes from."""

    @property
    def query(self) -> str:
        pairs: list[tuple[str, object]] = [("traces", self.of.traces), ("run", self.of.run)]
        if self.beside is not None:
            pairs.append(("with", f"{self.beside.traces}/{self.beside.run}"))
        pairs += [
            ("from", "" if self.first is None else self.first),
            ("to", "" if self.last is None else self.last),
            ("processes", self.processes),
            *(("kind", kind) for kind in self.kinds),
            ("message", " ".join(self.messages)),
            ("destinations", self.destinations),
            ("named", " ".join(f"{process}.{step}" for process, step in self.named)),
            ("skip", self.skip or ""),
            ("called", self.called),
        ]
        return urlencode([pair for pair in pairs if pair[1] != ""], safe=",/")

    @property
    def path(self) -> str:
        return f"/{'window' if self.beside is None else 'compare'}?{self.query}"

    @property
    def chosen(self) -> Chosen:
        """Which events are wanted, whenever they are."""
        return Chosen(
            numbers_of(self.processes) if self.processes else None,
            self.kinds or None,
            tuple(map(identity_of, self.messages)) or None,
            numbers_of(self.destinations) if self.destinations else None,
        )

    def at(self, first: int, last: int) -> Window:
        """The same events, as far as they are in these times."""
        return replace(self, first=first, last=max(last, first + 1), skip=0)

    @property
    def whole(self) -> Window:
        """The same events, whenever they are."""
        return replace(self, first=None, last=None, skip=0)


def read_window(query: str) -> Window:
    """Return the window of an address; a UsageError says what is wrong with it."""
    if len(query) > LONGEST:
        raise UsageError(f"an address has at most {LONGEST:,} characters, and this {len(query):,}")
    try:
        words = parse_qs(query, max_num_fields=60, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise UsageError("this is not an address of the lab: begin on its first page") from None
    unknown = sorted(set(words) - set(FIELDS))
    if unknown:
        raise UsageError(f"a window has no '{unknown[0]}'; it has: {', '.join(FIELDS)}")

    def word(name: str) -> str:
        return words.get(name, [""])[-1].strip()

    if not word("run"):
        raise UsageError("which run? Choose one on the first page of the lab")
    traces, _, run = word("with").partition("/")
    found = Window(
        RunName(word("traces"), word("run")),
        RunName(traces, run) if run else None,
        _time(word("from"), "from"),
        _time(word("to"), "to"),
        ",".join(word("processes").split()),
        tuple(kind for kind in KINDS if kind in _kinds(words.get("kind", []))),
        tuple(dict.fromkeys(" ".join(words.get("message", [])).split())),
        ",".join(map(str, numbers_of(word("destinations")))) if word("destinations") else "",
        tuple(_place(each) for each in word("named").split()),
        _time(word("skip"), "skip") or 0,
        word("called"),
    )
    if found.first is not None and found.last is not None and found.first >= found.last:
        raise UsageError(f"a window ends after it begins, and this goes from {found.first} to "
                         f"{found.last}")  # fmt: skip
    if max(len(found.messages), len(found.named)) > MOST_CHOSEN:
        raise UsageError(f"an address names at most {MOST_CHOSEN} messages or events")
    assert found.chosen is not None  # whatever is wrong in it is told of now
    return found


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers that a text such as `0-3,7` stands for, in ascending order."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part.strip())
        if match is None:
            raise UsageError(f"'{part}' stands for no processes; write them as in 0-3,7")
        first = int(match[1])
        last = int(match[2] or first)
        if not first <= last <= ORIGIN_MASK:
            raise UsageError(f"'{part}' stands for no processes; write them as in 0-3,7")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def ranges_of(numbers: Iterable[int]) -> str:
    """Return numbers as one writes them, `0-3,7`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ",".join("-".join(map(str, each)) for each in found)


def set_of(numbers: Sequence[int], names: Names) -> str:
    """Return a set of processes as one reads it: one by one, unless these are many."""
    few = len(numbers) <= MOST_IN_A_SET
    return f"{{{names.listed(numbers) if few else ranges_of(numbers)}}}"


def _kinds(words: Sequence[str]) -> list[str]:
    for word in words:
        if word not in KINDS:
            raise UsageError(f"there are no events of kind '{word}'; the kinds are: "
                             f"{', '.join(KINDS)}")  # fmt: skip
    return list(words)


def _time(text: str, name: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"-?\d{1,19}", text) or abs(int(text)) > LARGEST:
        raise UsageError(f"'{name}' is '{text}', and must be a whole number, nanoseconds for times")
    return int(text)


def identity_of(text: str) -> MessageId:
    """Return the message of a name such as `5.0`."""
    match = re.fullmatch(r"(\d{1,7})\.(\d{1,13})", text)
    if match is None or int(match[1]) > ORIGIN_MASK or int(match[2]) >= 1 << 43:
        raise UsageError(f"'{text}' is no message; one is named as 5.0 is, the first of process 5")
    return message_id(int(match[1]), int(match[2]))


def _place(text: str) -> Place:
    match = re.fullmatch(r"(\d{1,7})\.(\d{1,18})", text)
    if match is None:
        raise UsageError(f"'{text}' names no event; one is named by process and step, as in 3.17")
    return int(match[1]), int(match[2])
