"""The constants of a machine, measured by small runs of real servers, for the simulator.

Every run has a load that no figure has: messages to one server alone, or to all. Servers tell what
they did meanwhile (frames, packets, bytes, messages taken and handed out) and how much processor
time it took. What each of these costs is the non-negative solution, with the least squares of
relative errors, of one equation for each server in each run. Nothing is fitted to the throughput of
any run.
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

SERVERS = 16
"""The number that the figures have: the more processes share processors, the dearer they are."""
STACKS = ("skeen", "df", "dcc", "dcc/rv")
PLAIN = "best-effort"
TO_ONE, TO_ALL = "random:1", "broadcast"
SECONDS = 1.0

COSTS = ("read", "write", "send", "receive", "byte", "cast", "deliver")
COUNTERS = (
    "frames_received", "frames_sent", "packets_sent", "packets_received", "packet_bytes",
    "multicasts", "deliveries",
)  # fmt: skip
"""How servers call what COSTS are the costs of."""

LEAST_CPU = 0.015
"""Processor seconds below which a server's share of a run is too little to learn from."""


def micro_runs() -> list[RealRun]:
    """Return the runs that constants are learnt from: messages to one server, or to all."""
    alone = [RealRun(PLAIN, SERVERS, clients, TO_ONE, SECONDS, 1) for clients in (1, 8, 32)]
    return alone + [
        RealRun(stack, SERVERS, clients, TO_ALL, SECONDS, 1)
        for stack in (PLAIN, *STACKS)
        for clients in (2, 16)
    ]


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
    """The share of all processors that the servers take for what is not about messages."""

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
    runs = micro_runs()
    missing = [real for real in runs if not is_finished(directory, real)]
    if missing:
        with local_servers(SERVERS) as servers:
            for done, real in enumerate(missing, len(runs) - len(missing)):
                progress(done / len(runs))
                record_real(real, servers, directory)
    return learn({real: counted_of(directory, real.run) for real in runs})


def learn(counted: dict[RealRun, Counted]) -> Calibration:
    """Return the constants that account best for the processor time of the runs."""
    servers, idle = _servers_cost(counted)
    client, frame = _clients_cost(counted)
    constants = Constants(
        cores=os.cpu_count() or 1,
        delay=_delay(counted, servers, client, frame),
        client=client,
        frame=frame,
        background=_background(counted, servers),
        **servers,
    )
    return Calibration(
        constants,
        tuple(
            Explained(real.run, each.server_cpu, _explained(each, servers, idle))
            for real, each in counted.items()
        ),
    )


def _features(totals: dict[str, float]) -> list[float]:
    """Return how often a server did each of COSTS."""
    return [totals[name] for name in COUNTERS]


def _solved(rows: Sequence[Sequence[float]], results: Sequence[float]) -> list[float]:
    """Return the non-negative factors with the least squares of relative errors."""
    weights = 1.0 / np.array(results)
    found, _ = nnls(np.array(rows) * weights[:, None], np.ones(len(weights)))
    return [float(each) for each in found]


def _servers_cost(counted: dict[RealRun, Counted]) -> tuple[dict[str, float], float]:
    """Return what each of COSTS takes of a server, and what a second takes without any."""
    shares = [
        ([*_features(totals), each.seconds], totals["cpu_seconds"])
        for each in counted.values()
        for totals in each.servers
        if totals["cpu_seconds"] > LEAST_CPU
    ]
    if len(shares) <= len(COSTS):
        raise UsageError("the servers were hardly busy; is the machine stopped or overloaded?")
    *costs, idle = _solved([row for row, _ in shares], [cpu for _, cpu in shares])
    return dict(zip(COSTS, costs, strict=True)), idle


def _clients_cost(counted: dict[RealRun, Counted]) -> tuple[float, float]:
    rows = [
        ([each.messages + each.deliveries, each.client_frames], each.client_cpu)
        for each in counted.values()
        if each.client_cpu > LEAST_CPU
    ]
    client, frame = _solved([row for row, _ in rows], [cpu for _, cpu in rows])
    return client, frame


def _lone_client(counted: dict[RealRun, Counted]) -> Counted:
    return next(
        each for real, each in counted.items() if (real.workload, real.clients) == (TO_ONE, 1)
    )


def _delay(
    counted: dict[RealRun, Counted], servers: dict[str, float], client: float, frame: float
) -> float:
    """Return half of what is left of a round trip without the processor time of a message; of the
    median, so that what else a machine does now and then weighs little."""
    each = _lone_client(counted)
    return max(0.0, each.load.percentile(0.5) / 1_000 - _one(servers) - 2 * (client + frame)) / 2


def _background(counted: dict[RealRun, Counted], servers: dict[str, float]) -> float:
    """Return the share of all processors that goes to what servers tell each other in any case,
    while messages go to single servers: what these messages cost is taken off."""
    each = _lone_client(counted)
    left = each.server_cpu - each.messages * _one(servers)
    return min(0.5, max(0.0, left / each.seconds / (os.cpu_count() or 1)))


def _one(servers: dict[str, float]) -> float:
    """Return what a message costs a server that takes it from a client and hands it to a member."""
    return sum(servers[name] for name in ("read", "write", "cast", "deliver"))


def _explained(counted: Counted, servers: dict[str, float], idle: float) -> float:
    busy = sum(
        count * servers[name]
        for totals in counted.servers
        for name, count in zip(COSTS, _features(totals), strict=True)
    )
    return busy + idle * counted.seconds * len(counted.servers)
