"""The measures of docs/measures.md once more, message by message, as slowly as they are defined."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path

from flexgroup.core.message import origin_of
from flexgroup.core.replicas import group_of
from flexgroup.protocols.catalogue import Answers, parse_stack
from flexgroup.trace.history import History
from flexgroup.trace.reader import load_history, read_events
from flexgroup.trace.run import Run
from flexgroup.workloads.catalogue import parse_workload
from flexgroup.workloads.fixed_sets import Partitioned
from flexgroup.worlds.simulator.networks import parse_network

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Message:
    time: int
    destinations: tuple[int, ...]


class Reference:
    """One run of the simulator, measured."""

    def __init__(self, directory: Path, run: Run) -> None:
        self.run = run
        self.directory = directory
        self.history = load_history(directory, run)
        self.failing = {*self.history.crashes.process.tolist(), *self.history.faulty}
        """Those that crash, and those that are faulty by design."""
        duration: float = json.loads(run.options)["duration"]
        self.begin, self.end = duration / 5 * SECOND, duration * SECOND
        self.messages = messages_of(self.history)
        self.deliveries = deliveries_of(self.history)
        self.delivered: dict[int, dict[int, int]] = defaultdict(dict)
        """When each process delivered each message."""
        for message, process, time, _ in self.deliveries:
            self.delivered[message][process] = time

    def is_measured(self, time: int) -> bool:
        return self.begin <= time < self.end

    def is_answered(self, message: int) -> bool:
        delivered = set(self.delivered[message])
        destinations = set(self.messages[message].destinations)
        if self.run.replicas:
            groups, heard = ({self._group(p) for p in some} for some in (destinations, delivered))
            if not groups <= heard:
                return False
        return bool(delivered) and destinations - self.failing <= delivered

    def throughput(self) -> float:
        lasts = [
            max(self.delivered[message].values())
            for message in self.messages
            if self.is_answered(message)
        ]
        return sum(map(self.is_measured, lasts)) / (self.end - self.begin) * SECOND

    def latencies_first(self) -> list[int]:
        return [
            min(self.delivered[message].values()) - multicast.time
            for message, multicast in self.messages.items()
            if self.is_measured(multicast.time) and self.delivered[message]
        ]

    def first_in_groups(self, message: int) -> dict[int, int]:
        """When the first of each group delivered a message; groups by their lowest member."""
        found: dict[int, int] = {}
        for process, time in self.delivered[message].items():
            group = self._group(process)
            found[group] = min(time, found.get(group, time))
        return found

    def latencies_group(self) -> list[int]:
        found = []
        for message, multicast in self.messages.items():
            first = self.first_in_groups(message)
            owed = {self._group(process) for process in set(multicast.destinations) - self.failing}
            if self.is_measured(multicast.time) and first and owed <= first.keys():
                found.append(max(first.values()) - multicast.time)
        return found

    def gaps(self) -> tuple[float | None, float | None]:
        """For how long a process that never fails delivered nothing, in the measured period: of
        those with whom somebody in their group failed, and of others."""
        struck = {self._group(process) for process in self.failing}
        moments: dict[int, list[int]] = defaultdict(list)
        for _, process, time, _ in self.deliveries:
            if self.is_measured(time) and process not in self.failing:
                moments[process].append(time)
        found: dict[bool, list[float]] = defaultdict(list)
        for process, times in moments.items():
            marks = [self.begin, *sorted(times), self.end]
            longest = max(later - earlier for earlier, later in pairwise(marks))
            found[self._group(process) in struck].append(longest / SECOND)
        return max(found[True], default=None), max(found[False], default=None)

    def _group(self, process: int) -> int:
        return min(group_of(self.run.replicas, process), default=process)

    def latencies_last(self) -> list[int]:
        return [
            max(self.delivered[message].values()) - multicast.time
            for message, multicast in self.messages.items()
            if self.is_measured(multicast.time) and self.is_answered(message)
        ]

    def latencies_delivery(self) -> list[int]:
        return [
            time - multicast.time
            for message, multicast in self.messages.items()
            for time in self.delivered[message].values()
            if self.is_measured(multicast.time)
        ]

    def costs(self) -> dict[str, float]:
        """The rates, steps and packets, message by message and packet by packet."""
        sends, receives = self.history.sends, self.history.receives
        involved: dict[int, set[int]] = defaultdict(set)
        for rows in (sends, receives):
            for message, process in zip(rows.message.tolist(), rows.process.tolist(), strict=True):
                involved[message].add(process)
        foreign = [
            message
            for message, multicast in self.messages.items()
            if involved[message] - {origin_of(message), *multicast.destinations}
        ]
        slow = {
            message
            for message, code in zip(
                sends.message.tolist(), sends.detail_code.tolist(), strict=True
            )
            if sends.detail[code] == '{"mode":"slow"}'
        }
        depths: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for message, process, _, depth in self.deliveries:
            depths[message][self._group(process)].append(depth)
        groups = [list(depths[message].values()) for message in self.messages]
        headers = [
            size
            for process, message, size in zip(
                sends.process.tolist(),
                sends.message.tolist(),
                sends.header_bytes.tolist(),
                strict=True,
            )
            if process < self.run.processes and message >= 0
        ]
        count = max(len(self.messages), 1)
        return {
            "genuine": 1 - len(foreign) / count,
            "fast": 1 - len(slow & self.messages.keys()) / count,
            "steps": sum(max(map(max, each), default=0) for each in groups) / count,
            "steps_group": sum(max(map(min, each), default=0) for each in groups) / count,
            "steps_first": sum(min(map(min, each), default=0) for each in groups) / count,
            "volume": len(headers) / count,
            "header_bytes": sum(headers) / max(len(headers), 1),
        }

    def is_local(self, multicast: Message) -> bool:
        size = self._group_size() * (len(self.run.replicas[0]) if self.run.replicas else 1)
        groups = {process // size for process in multicast.destinations}
        return len(groups) == 1

    def _group_size(self) -> int:
        workload = (self.run.workload or "").partition("@")[0]
        parsed = parse_workload(workload, len(self.run.replicas) or self.run.processes)
        return len(parsed._groups[0]) if isinstance(parsed, Partitioned) else 1

    def local_latencies(self) -> tuple[list[int], list[int]]:
        """Of deliveries of local messages: those alone, those convoyed."""
        alone: list[int] = []
        convoyed: list[int] = []
        for message, multicast in self.messages.items():
            if not self.is_local(multicast) or not self.is_measured(multicast.time):
                continue
            for process, time in self.delivered[message].items():
                meets = any(
                    not self.is_local(other)
                    and other.time <= multicast.time < self.delivered[name].get(process, 0)
                    for name, other in self.messages.items()
                )
                (convoyed if meets else alone).append(time - multicast.time)
        return alone, convoyed

    def queued(self) -> list[int]:
        rows = read_events(self.directory, self.run.run, "receive").to_pylist()
        return [row["queued"] for row in rows if self.is_measured(row["time"])]

    def busy_shares(self) -> list[float]:
        history = self.history
        network = parse_network(self.run.network or "")
        spent = [0.0] * self.run.processes
        for packets, cost in (
            (history.sends, network.send_cost),
            (history.receives, network.receive_cost),
        ):
            rows = (packets.process, packets.peer, packets.header_bytes + packets.payload_bytes)
            for process, peer, size in zip(*(column.tolist() for column in rows), strict=True):
                if process < self.run.processes and process != peer:
                    spent[process] += cost + size * network.byte_cost_ps / 1000
        plan = parse_stack(self.run.stack)
        chosen = json.loads(self.run.options).get("answers", plan.top.answers)
        if chosen == Answers.LAST:
            answers = [
                process
                for multicast in self.messages.values()
                for process in multicast.destinations
                if process == multicast.destinations[-1]
                or (
                    plan.needs_replicas
                    and self._group(process) == self._group(multicast.destinations[-1])
                )
            ]
        else:
            answers = [process for _, process, _, _ in self.deliveries]
        for process in answers:
            spent[process] += network.send_cost
        latest = max(int(history.receives.time.max(initial=1)), 1)
        return [time / latest for time in spent]


def messages_of(history: History) -> dict[int, Message]:
    rows = history.multicasts
    return {
        int(message): Message(
            int(rows.time[place]),
            tuple(rows.targets[rows.offsets[place] : rows.offsets[place + 1]].tolist()),
        )
        for place, message in enumerate(rows.message)
    }


def deliveries_of(history: History) -> list[tuple[int, int, int, int]]:
    """Message, process, time and depth of the deliveries that count."""
    rows = history.deliveries
    columns = (rows.message, rows.process, rows.time, rows.depth)
    every = zip(*(column.tolist() for column in columns), strict=True)
    return [row for row in every if row[1] not in history.faulty]


def trimmed_mean(values: list[int]) -> float:
    """Without the twentieth part at either end."""
    dropped = len(values) // 20
    kept = sorted(values)[dropped : len(values) - dropped]
    return sum(kept) / len(kept)


def percentile(values: list[int], percent: int) -> int:
    """By nearest rank."""
    return sorted(values)[ceil(percent * len(values) / 100) - 1]
