"""Fault plans as people write them.

- `3@1.5s` for --crash and --recover: process 3, at 1.5 seconds.
- `0,1|2,3@1s-2s` for --partition: sides, from, until; with `!drop` at the end, what is sent
  across meanwhile is lost instead of late.
- `0:3@1s-1.2s` for --suspect: process 0 wrongly suspects 3, from, until.
- `3` for --twin and `2:skip` for --liar: who is Byzantine, and how (`flexgroup.liars`).
- `0,1,2@1.2s` for --view: all are told that these are the members from then on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from flexgroup.core.errors import UsageError
from flexgroup.worlds.simulator.faults import FaultPlan, Partition
from flexgroup.worlds.simulator.networks import parse_time


@dataclass(frozen=True)
class Faults:
    """What the user asked for, as text; recorded with the run."""

    crashes: tuple[str, ...] = ()
    recoveries: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = ()
    detection: str | None = None
    views: tuple[str, ...] = field(default=(), repr=False)
    """Written only where there are any, so that other runs keep their names and texts."""
    liars: tuple[str, ...] = field(default=(), repr=False)
    """Those that lie, and how; written where there are any, like views."""

    @property
    def text(self) -> str:
        """The JSON that is recorded with the run; equal faults give equal text."""
        rare = ("views", "liars")
        told = {name: value for name, value in self.__dict__.items() if name not in rare or value}
        return json.dumps(told, sort_keys=True, separators=(",", ":"))

    @property
    def drops(self) -> bool:
        return any(text.endswith("!drop") for text in self.partitions)


def parse_faults(faults: Faults, processes: int, total: int) -> FaultPlan:
    """The plan for a run of these processes; `total` counts the clients as well."""
    plan = FaultPlan()
    plan.crashes = sorted(_moment(text, "--crash", processes) for text in faults.crashes)
    plan.recoveries = sorted(_moment(text, "--recover", processes) for text in faults.recoveries)
    for recovery, process in plan.recoveries:
        if not any(crashed == process and crash < recovery for crash, crashed in plan.crashes):
            raise UsageError(
                f"--recover {process}@{recovery}ns: the process has not crashed before; "
                f"add --crash {process}@TIME with an earlier time"
            )
    plan.partitions = [_partition(text, total) for text in faults.partitions]
    plan.suspicions = sorted(_suspicion(text, processes) for text in faults.suspicions)
    plan.views = sorted(_view(text, processes) for text in faults.views)
    if faults.detection is not None:
        plan.detection = parse_time(faults.detection)
    return plan


def _process(text: str, where: str, processes: int) -> int:
    if not text.isdecimal() or int(text) >= processes:
        raise UsageError(f"{where}: '{text}' is not a process; they are 0 to {processes - 1}")
    return int(text)


def _moment(text: str, option: str, processes: int) -> tuple[int, int]:
    process, at, time = text.partition("@")
    if not at:
        raise UsageError(f"{option} '{text}': write PROCESS@TIME, for example 3@1.5s")
    return parse_time(time), _process(process, f"{option} '{text}'", processes)


def _interval(text: str, option: str, example: str) -> tuple[str, int, int]:
    match = re.fullmatch(r"(.+)@([^@-]+)-([^@-]+)", text)
    if match is None:
        raise UsageError(f"{option} '{text}': write for example {example}")
    start, end = parse_time(match[2]), parse_time(match[3])
    if end <= start:
        raise UsageError(f"{option} '{text}': it ends before it starts")
    return match[1], start, end


def _partition(text: str, total: int) -> Partition:
    drop = text.endswith("!drop")
    sides, start, end = _interval(text.removesuffix("!drop"), "--partition", "0,1|2,3@1s-2s")
    side: dict[int, int] = {}
    for number, members in enumerate(sides.split("|")):
        for member in members.split(","):
            process = _process(member.strip(), f"--partition '{text}'", total)
            if process in side:
                raise UsageError(f"--partition '{text}': process {process} is on two sides")
            side[process] = number
    return Partition(side, start, end, drop)


def _view(text: str, processes: int) -> tuple[int, tuple[int, ...]]:
    members, at, time = text.partition("@")
    if not at:
        raise UsageError(f"--view '{text}': write MEMBERS@TIME, for example 0,1,2@1.2s")
    listed = {_process(one.strip(), f"--view '{text}'", processes) for one in members.split(",")}
    return parse_time(time), tuple(sorted(listed))


def _suspicion(text: str, processes: int) -> tuple[int, int, int, int]:
    pair, start, end = _interval(text, "--suspect", "0:3@1s-1.2s")
    suspicious, colon, suspected = pair.partition(":")
    if not colon:
        raise UsageError(f"--suspect '{text}': write WHO:WHOM@START-END, for example 0:3@1s-1.2s")
    where = f"--suspect '{text}'"
    who, whom = [_process(word, where, processes) for word in (suspicious, suspected)]
    if who == whom:
        raise UsageError(f"{where}: a process does not suspect itself; name another one")
    return start, end, who, whom
