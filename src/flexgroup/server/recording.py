"""The trace of a live cluster: every server writes its own part of each run.

A run is one domain in one configuration. The files of all servers have different names, so the
folders of several machines can be laid into one.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flexgroup import __version__
from flexgroup.core.errors import UsageError
from flexgroup.server.configuration import Configuration, GroupEntry
from flexgroup.trace import schema
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.writer import as_json, run_file, write_part, write_run
from flexgroup.worlds.network.faults import Faults

ROWS_AT_ONCE = 1 << 16


class PartWriter(Sink):
    """Writes the rows of one server and run, a file for every block and kind of event.

    A thread does it: a server that writes files must not keep others waiting.
    """

    def __init__(self, directory: Path, run: str, server: str, scribe: ThreadPoolExecutor) -> None:
        self._directory = directory
        self._run = run
        self._server = server
        self._scribe = scribe
        self._parts = 0

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        name = f"{self._run}@{self._server}-{self._parts:06}.parquet"
        self._parts += 1
        self._scribe.submit(
            write_part,
            self._directory,
            self._run,
            name,
            columns,
            list(labels),
            list(destination_sets),
        )


def network_text(faults: Faults) -> str | None:
    """What lies below the stacks, in the words of simulated networks; None: reliable and FIFO."""
    if not faults.any:
        return None
    fifo = "no" if faults.reordering else "yes"
    return f"lan:loss={faults.loss:g},duplication={faults.duplication:g},fifo={fifo}"


class LiveTrace:
    """What one server records, configuration after configuration."""

    def __init__(self, directory: Path, server: str, faults: Faults) -> None:
        self._directory = directory
        self._server = "".join(c if c.isalnum() or c in "-." else "-" for c in server)
        self._network = network_text(faults)
        self._open: dict[str, tuple[Recorder, dict[str, object]]] = {}
        self._scribe = ThreadPoolExecutor(1, "trace")
        try:
            (directory / "runs").mkdir(parents=True, exist_ok=True)
            (directory / "events").mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot write a trace into '{directory}': {error.strerror or error}; "
                "choose a directory that you may write to"
            ) from None

    def recorder(
        self, cluster: str, configuration: Configuration, stack: str, groups: tuple[GroupEntry, ...]
    ) -> Recorder:
        numbers = [server.number for server in configuration.servers]
        readable = "".join(c if c.isalnum() else "-" for c in stack.lower())
        run = f"{cluster}-{configuration.number:06}-{readable}"
        recorder = Recorder(
            PartWriter(self._directory, run, self._server, self._scribe), ROWS_AT_ONCE
        )
        self._open[run] = (
            recorder,
            {
                "world": "network",
                "stack": stack.lower(),
                "options": "{}",
                "processes": len(configuration.servers),
                "clients": 0,
                "groups": as_json(
                    {group.name: [numbers.index(s) for s in group.servers()] for group in groups}
                ),
                "network": self._network,
                "software": f"flexgroup {__version__}",
                "started": time.time_ns(),
            },
        )
        return recorder

    def flush_if_full(self) -> None:
        for recorder, _ in self._open.values():
            recorder.flush_if_full()

    def finish(self, complete: bool) -> None:
        """The configuration is over: all its messages were delivered, or not."""
        for run, (recorder, description) in self._open.items():
            if not (recorder.sends.count or recorder.receives.count or recorder.has_drained):
                continue  # nothing was sent: not worth a run
            recorder.flush()
            ended = schema.COMPLETE if complete else schema.CUT
            self._scribe.submit(self._write_run, run, {**description, "outcome": ended})
        self._open = {}

    def close(self) -> None:
        """Wait until everything is written."""
        self._scribe.shutdown()

    def _write_run(self, run: str, description: dict[str, object]) -> None:
        # The last word on how a run ended has a server that saw it end well.
        if description["outcome"] == schema.COMPLETE or not self._is_written(run):
            write_run(self._directory, run, description, writer=f"{self._server}-")

    def _is_written(self, run: str) -> bool:
        return (self._directory / "runs" / run_file(run)).exists()
