"""The files of a run: which belong to it, and whether any are missing or too many.

Their names tell, and how many rows they have, which footers tell: nothing else has to be read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.run import Run

AGAIN = "copy the trace set again, or record the run again"

FileRows = Mapping[str, Mapping[str, int | None]]
"""How many rows each file has, by kind of event and by name without ending, or None if nobody
knows."""


@dataclass(frozen=True)
class Part:
    """The place of a file among those of a run: parts of one writer are numbered."""

    run: str
    writer: str | None
    number: int | None
    """None if the name has no number."""


AS_PART = r"(?:-part|@([^@/]+))-(\d+)"
"""What follows the run in the name of a part: perhaps who writes it, and its number."""

_AS_PART = re.compile(AS_PART)


def part_of(name: str, runs: Collection[str]) -> Part | None:
    """Return which part of which of these runs a file of this name, without ending, is; None if
    the name is another, as that of a file with several runs."""
    if name in runs:
        return Part(name, None, None)
    for begin in [found.start() for found in re.finditer("-part-|@", name)]:
        if name[:begin] in runs:
            found = _AS_PART.fullmatch(name, begin)
            if found:
                return Part(name[:begin], found[1], int(found[2]))
            if name[begin] == "@":
                return Part(name[:begin], name[begin + 1 :], None)
    return None


@dataclass(frozen=True)
class FileProblem:
    """What is wrong with the files of one kind of events of a run."""

    run: str
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"run '{self.run}' {self.reason}"


def file_problems(
    described: Iterable[Run], files: FileRows, others: Collection[str] = ()
) -> Iterator[FileProblem]:
    """Yield which files are missing or too many, as far as their names and sizes tell.

    Files may be those of other runs, too, which are still being written.
    """
    told = {run.run: run.told_events for run in described}
    names = told.keys() | others
    for kind in schema.KINDS:
        parts = [(part_of(name, names), rows) for name, rows in files.get(kind, {}).items()]
        known = [(part, rows) for part, rows in parts if part is not None and part.run in told]
        yield from _missing_parts(kind, [part for part, _ in known])
        if all(part is not None for part, _ in parts):  # a file of several runs may hold any
            yield from _other_numbers(kind, told, known)


def refuse_file_problems(
    described: Iterable[Run], files: FileRows, others: Collection[str] = ()
) -> None:
    """Raise a UsageError if files are missing or too many."""
    for problem in file_problems(described, files, others):
        raise UsageError(str(problem))


def other_number(kind: str, told: int, found: int) -> str:
    """Say what is wrong if a run has another number of events than is told of it."""
    wrong = "files are missing" if found < told else "two runs with the same name are mixed"
    return f"has {found} {kind} events, and `runs` tells of {told}: {wrong}; {AGAIN}"


def _missing_parts(kind: str, parts: Iterable[Part]) -> Iterator[FileProblem]:
    numbers: dict[tuple[str, str | None], set[int]] = {}
    for part in parts:
        if part.number is not None:
            numbers.setdefault((part.run, part.writer), set()).add(part.number)
    for (run, writer), found in numbers.items():
        for missing in sorted({*range(max(found))} - found)[:1]:
            whose = f"its {kind} events" if writer is None else f"the {kind} events of {writer}"
            last = max(found)
            reason = f"lacks part {missing} of {whose}, and part {last} is there; {AGAIN}"
            yield FileProblem(run, kind, reason)


def _other_numbers(
    kind: str,
    told: Mapping[str, Mapping[str, int] | None],
    files: Iterable[tuple[Part, int | None]],
) -> Iterator[FileProblem]:
    found = Counter[str]()
    unread = set()
    for part, rows in files:
        found[part.run] += rows or 0
        if rows is None:
            unread.add(part.run)
    for run, events in told.items():
        if events is not None and run not in unread and events.get(kind, 0) != found[run]:
            reason = other_number(kind, events.get(kind, 0), found[run])
            yield FileProblem(run, kind, reason)
