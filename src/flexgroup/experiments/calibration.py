"""The constants of a machine, measured by small runs of real servers, for the simulator.

Every run is one of a few servers, or of a load that no figure has: messages to one server alone, or
to all. Servers tell what they did meanwhile (frames, packets, bytes, messages taken and handed out)
and how much processor time it took. What each of these costs is the non-negative solution, with the
least squares of relative errors, of one equation for each server in each run. Nothing is fitted to
the throughput of any run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from flexgroup.core.errors import UsageError
from flexgroup.experiments.experiment import RealRun
from flexgroup.experiments.real_runs import (
    Counted,
    counted_of,
    is_finished,
    local_servers,
    record_real,
)
from flexgroup.sweeps.folder import write_whole
from flexgroup.trace.run import SOFTWARE

Progress = Callable[[float], None]

FEW, MANY = 4, 16
STACKS = ("skeen", "df", "dcc", "dcc/rv")
PLAIN = "best-effort"
SECONDS = 1.0

COSTS = ("read", "write", "send", "receive", "byte", "cast", "deliver")
LEAST_CPU = 0.02
"""Processor seconds below which a server's share of a run is too little to learn from."""


def micro_runs(servers: int) -> list[RealRun]:
    """Return the runs that constants are learnt from, for one size of a cluster."""

    def runs(stack: str, workload: str, *clients: int) -> list[RealRun]:
        return [RealRun(stack, servers, count, workload, SECONDS, 1) for count in clients]

    if servers == FEW:
        found = [*runs(PLAIN, "random:1", 1, 8, 32), *runs(PLAIN, "broadcast", 1, 32)]
        for stack in STACKS:
            found += [*runs(stack, "broadcast", 1, 16), *runs(stack, "partitioned:2x2", 8)]
        return found
    found = runs(PLAIN, "random:1", 1, 32)
    for stack in STACKS:
        found += runs(stack, "broadcast", 2)
    return found


@dataclass(frozen=True)
class Constants:
    """What things cost on a machine: seconds of a processor, unless something else is said."""

    cores: int
    delay: float
    """Seconds from when a process has sent something until another one, which waits, runs."""
    read: float
    """A frame that a server reads."""
    write: float
    send: float
    """A packet of a stack, beside its frame."""
    receive: float
    byte: float
    """A byte that is sent, or received."""
    cast: float
    """A message of a client that is taken in."""
    deliver: float
    """A message that is handed to a member."""
    client: float
    """A message, for the process of the clients."""
    frame: float
    """A frame, for that process."""
    background: float
    """The share of all processors that 16 servers take for what is not about messages."""

    @property
    def network(self) -> str:
        """Return the network of the simulator with these constants."""
        told = [f"cores={self.cores}", f"background={self.background:.3f}"]
        for name in ("delay", "read", "write", "send", "receive", "cast", "deliver", "client",
                     "frame"):  # fmt: skip
            told.append(f"{name}={round(getattr(self, name) * 1e9)}ns")
        told.append(f"byte={self.byte * 1e9:.3f}ns")
        return f"machine:{','.join(told)}"


@dataclass(frozen=True)
class Explained:
    """How well the constants account for the processor time of a run that they are learnt from."""

    run: str
    cpu: float
    explained: float


@dataclass(frozen=True)
class Calibration:
    constants: Constants
    explained: tuple[Explained, ...]

    def to_json(self) -> dict[str, Any]:
        return {"software": SOFTWARE, "network": self.constants.network, **asdict(self)}


def read_calibration(file: Path) -> Calibration:
    """Return the calibration that was written into a file."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        constants = Constants(**told["constants"])
        return Calibration(constants, tuple(Explained(**each) for each in told["explained"]))
    except OSError as error:
        raise UsageError(
            f"cannot read '{file}': {error.strerror}; write it with flexgroup calibrate --out FILE"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"'{file}' holds no calibration; write one with: flexgroup calibrate --out {file}"
        ) from None


def write_calibration(calibration: Calibration, file: Path) -> None:
    write_whole(file, f"{json.dumps(calibration.to_json(), indent=2)}\n".encode())


def calibrate(directory: Path, progress: Progress = lambda share: None) -> Calibration:
    """Make the small runs, those that are not in the directory yet, and learn from them."""
    planned = {size: micro_runs(size) for size in (FEW, MANY)}
    count = sum(map(len, planned.values()))
    done = 0
    for size, runs in planned.items():
        missing = [real for real in runs if not is_finished(directory, real)]
        done += len(runs) - len(missing)
        if not missing:
            continue
        with local_servers(size) as servers:
            for real in missing:
                progress(done / count)
                record_real(real, servers, directory)
                done += 1
    counted = {real: counted_of(directory, real.run) for runs in planned.values() for real in runs}
    return learn(counted)


def learn(counted: dict[RealRun, Counted]) -> Calibration:
    """Return the constants that account best for the processor time of the runs."""
    servers = _servers_cost(counted)
    client, frame = _clients_cost(counted)
    constants = Constants(
        cores=os.cpu_count() or 1,
        delay=_delay(counted),
        client=client,
        frame=frame,
        background=_background(counted, servers),
        **servers,
    )
    return Calibration(
        constants,
        tuple(
            Explained(real.run, each.load.server_cpu, _explained(each, servers))
            for real, each in counted.items()
        ),
    )


def _features(totals: dict[str, float]) -> list[float]:
    """Return how often a server did each of COSTS."""
    return [
        totals["frames_received"],
        totals["frames_sent"],
        totals["packets_sent"],
        totals["packets_received"],
        totals["bytes_sent"] + totals["bytes_received"],
        totals["multicasts"],
        totals["deliveries"],
    ]


def _solved(rows: Sequence[Sequence[float]], results: Sequence[float]) -> list[float]:
    """Return the non-negative factors with the least squares of relative errors."""
    weights = 1.0 / np.array(results)
    found, _ = nnls(np.array(rows) * weights[:, None], np.ones(len(weights)))
    return [float(each) for each in found]


def _servers_cost(counted: dict[RealRun, Counted]) -> dict[str, float]:
    """Return what each of COSTS takes of a server."""
    shares = [
        (_features(totals), totals["cpu_seconds"])
        for each in counted.values()
        for totals in each.servers
        if totals["cpu_seconds"] > LEAST_CPU
    ]
    if len(shares) < len(COSTS):
        raise UsageError("the servers were hardly busy; is the machine stopped or overloaded?")
    found = _solved([row for row, _ in shares], [cpu for _, cpu in shares])
    return dict(zip(COSTS, found, strict=True))


def _clients_cost(counted: dict[RealRun, Counted]) -> tuple[float, float]:
    rows = [
        ([each.load.completed + each.load.delivered, each.client_frames], each.load.member_cpu)
        for each in counted.values()
        if each.load.member_cpu > LEAST_CPU
    ]
    client, frame = _solved([row for row, _ in rows], [cpu for _, cpu in rows])
    return client, frame


def _delay(counted: dict[RealRun, Counted]) -> float:
    """Return half of what is left of a round trip without the processor time that it takes; of the
    median, so that what else a machine does now and then weighs little."""
    each = _run(counted, FEW, 1)
    trip = each.load.percentile(0.5) / 1_000
    cpu = (each.load.server_cpu + each.load.member_cpu) / max(1, each.load.completed)
    return max(0.0, trip - cpu) / 2


def _background(counted: dict[RealRun, Counted], servers: dict[str, float]) -> float:
    """Return the share of all processors that goes to what servers tell each other in any case,
    while messages go to single servers: what these messages cost is taken off."""
    each = _run(counted, MANY, 1)
    messages = each.load.completed
    one = sum(servers[name] for name in ("read", "write", "cast", "deliver"))
    left = each.load.server_cpu - messages * one
    return min(0.5, max(0.0, left / each.load.seconds / (os.cpu_count() or 1)))


def _run(counted: dict[RealRun, Counted], servers: int, clients: int) -> Counted:
    wanted = (PLAIN, servers, clients, "random:1")
    return next(
        each
        for real, each in counted.items()
        if (real.stack, real.processes, real.clients, real.workload) == wanted
    )


def _explained(counted: Counted, servers: dict[str, float]) -> float:
    return sum(
        factor * servers[name]
        for totals in counted.servers
        for name, factor in zip(COSTS, _features(totals), strict=True)
    )
