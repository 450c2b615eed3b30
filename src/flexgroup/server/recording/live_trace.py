"""The trace of a live cluster: every server records its own part of each run.

A run is one domain. The files of all servers have different names, so the
folders of several machines can be laid into one. Another process writes them (see `trace_writer`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from flexgroup.membership.configuration import (
    Configuration,
    DomainEntry,
    ReplicatedDomain,
    name_in_files,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.recording.handoff import (
    Events,
    Handoff,
    Pipe,
    RunBegan,
    RunEnded,
    ServerEnded,
)
from flexgroup.server.recording.trace_writer import ENDED
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.run import Run, channel_names, with_liars
from flexgroup.trace.writer import STARTED, as_json, make_folders
from flexgroup.worlds.network.faults import Faults

ROWS_AT_ONCE = 1 << 16

HAND_OVER_SECONDS = 0.2
"""Events are handed over this often: whoever kills a server loses those that were not."""


def pipe_to(directory: Path, server: str) -> Pipe:
    """Have a process write the trace of a server into this directory."""
    make_folders(directory, STARTED, ENDED)
    return Pipe(directory, name_in_files(server))


class RunSink(Sink):
    """Hands over the rows of one run."""

    def __init__(self, run: str, handoff: Handoff) -> None:
        self._run = run
        self._handoff = handoff
        self._labels = 0
        self._sets = 0

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        new_labels, new_sets = labels[self._labels :], destination_sets[self._sets :]
        self._labels, self._sets = len(labels), len(destination_sets)
        self._handoff.put(Events(self._run, columns, new_labels, new_sets))


@dataclass
class RecordedRun:
    began: RunBegan
    recorder: Recorder
    servers: Sequence[int] | Sequence[str]
    """The numbers of the servers, by process; those of replicas come and go under their names."""
    has_traffic: bool = False


class LiveTrace:
    """What one server records, domain after domain."""

    def __init__(
        self,
        handoff: Handoff,
        faults: Faults,
        most_waiting: int,
        clock: Callable[[], int],
        attacks: dict[str, str],
    ) -> None:
        self.handoff = handoff
        self._faults = faults
        self._most_waiting = most_waiting
        self._clock = clock
        self._attacks = attacks
        """The kinds of attack that servers make of which this one knows: its own."""
        self._runs: dict[int, RecordedRun] = {}
        """The runs that go on, by the number of the domain."""
        self._replicas: set[int] = set()
        """The replicated domains among them."""
        self._handed_over = 0.0

    def recorder(
        self,
        cluster: str,
        configuration: Configuration,
        domain: DomainEntry | ReplicatedDomain,
        steps: int = 0,
    ) -> Recorder:
        """The recorder for a domain that begins; or for a replica that goes on, whose history is so
        many steps long."""
        if isinstance(domain, ReplicatedDomain):
            return self._replica_recorder(cluster, domain, steps)
        names = {server.number: server.name for server in configuration.servers}
        numbers = domain.servers
        return self._begin(
            cluster,
            domain.number,
            domain.stack,
            numbers,
            [names[number] for number in numbers],
            {
                group.name: [numbers.index(server) for server in group.servers]
                for group in configuration.groups_in[domain.key].values()
            },
        )

    def _replica_recorder(self, cluster: str, domain: ReplicatedDomain, steps: int) -> Recorder:
        """The recorder for a replica. It goes on whatever changes, and ends with the server or the
        domain."""
        servers = domain.servers
        recorder = self._begin(
            cluster,
            domain.number,
            domain.stack,
            servers,
            servers,
            [[servers.index(server) for server in group.servers] for group in domain.groups],
            steps,
            {servers.index(name): kind for name, kind in self._attacks.items() if name in servers},
        )
        self._replicas.add(domain.number)
        return recorder

    def finish_replicas(
        self, present: Collection[str] = (), going_on: Collection[int] = ()
    ) -> None:
        """The replicated domains are over that this server has recorded, except for these; servers
        of these names are there."""
        ended = self._replicas.difference(going_on)
        self._replicas -= ended
        self.finish(sorted(ended), present)

    def _begin(
        self,
        cluster: str,
        domain: int,
        stack: str,
        servers: Sequence[int] | Sequence[str],
        names: Sequence[str],
        groups: dict[str, list[int]] | list[list[int]],
        steps: int = 0,
        liars: Mapping[int, str] = MappingProxyType({}),
    ) -> Recorder:
        readable = "".join(c if c.isalnum() else "-" for c in stack.lower())
        run = f"{cluster}-{domain:06}-{readable}"
        plan = parse_stack(stack)
        channels = self._faults.channels()
        described = Run(
            run=run,
            world="network",
            stack=plan.name,
            processes=len(names),
            groups=as_json(groups),
            faults=as_json(self._faults.shares()) if self._faults.any else None,
            started=self._clock(),
            channels=channel_names(channels),
            promises=plan.promises(channels),
        )
        described = with_liars(described, [f"{process}:{liars[process]}" for process in liars])
        began = RunBegan(described, tuple(name_in_files(name) for name in names), steps)
        recorder = Recorder(RunSink(run, self.handoff), ROWS_AT_ONCE)
        self._runs[domain] = RecordedRun(began, recorder, servers)
        self.handoff.put(began)
        return recorder

    def hand_over(self, now: float) -> None:
        """Hand over what was recorded, if it is time; to be called every moment."""
        if now - self._handed_over >= HAND_OVER_SECONDS:
            self._handed_over = now
            for run in self._runs.values():
                self._flush(run)
        self.handoff.push()

    def hand_over_of(self, recorder: Recorder) -> None:
        """Hand over what this one recorded, now: others are to learn of it. While more is recorded
        than can be written, what there is no room for stays behind all the same."""
        for run in self._runs.values():
            if run.recorder is recorder:
                self._flush(run)
        self.handoff.push()

    @property
    def is_behind(self) -> bool:
        """More happens than can be written: the server has to hold its peers and clients up."""
        return self.handoff.waiting_bytes > self._most_waiting

    def finish(
        self,
        domains: Collection[int] | None = None,
        present: Collection[int] | Collection[str] = (),
    ) -> None:
        """These domains are over, or all but replicated ones; of their servers these go on, as far
        as is known."""
        ordinary = [number for number in self._runs if number not in self._replicas]
        for number in ordinary if domains is None else domains:
            run = self._runs.pop(number)
            self._flush(run)
            places = enumerate(run.servers)
            missed = tuple(place for place, server in places if server not in present)
            self.handoff.put(RunEnded(run.began.run.run, missed))
        self.handoff.push()

    def close(self, is_last: bool) -> None:
        """Wait until everything is written."""
        self.finish_replicas()
        self.handoff.put(ServerEnded(is_last))
        self.handoff.close()

    def _flush(self, run: RecordedRun) -> None:
        recorder = run.recorder
        if recorder.has_messages or recorder.sends.count or recorder.receives.count:
            run.has_traffic = True
        if run.has_traffic:  # where nothing was sent, views are not worth a run
            recorder.flush()
