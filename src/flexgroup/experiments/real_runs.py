"""Runs on real servers: clients load them, the servers record, and the trace joins a trace set.

A run is one domain of a cluster, with a group and a member for each server. What its servers have
recorded becomes one run of the trace set of an experiment, named after what was run: its row is
written last, so a run that has one is finished, as in sweeps of simulations.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.client import blocking
from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.experiments.experiment import HERE, RealRun
from flexgroup.load.local_cluster import LocalCluster
from flexgroup.load.measurement import Load, cpu_seconds
from flexgroup.load.processes import ChildProcess, ProcessFailedError, measure
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.sweeps.folder import write_whole
from flexgroup.trace import schema
from flexgroup.trace.reader import read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.writer import as_json, prepare_trace_set, run_file, write_part, write_run
from flexgroup.workloads.catalogue import parse_workload

OPTIONS = ("--log", "none", "--pack", "1")
"""How servers are started: each message of a client is a multicast of its own."""

LISTED_SECONDS = 60.0
"""How long servers may take to write the rest of a trace."""

SETTLED_SECONDS = 60.0
RELEASE_SECONDS = 30.0
LOOK_SECONDS = 0.5
LITTLE = 0.4
"""Processors that servers which have just started take when they have settled, at most."""

WARM_UP = 4
"""One part in so many of the measured time comes before it: a fifth of the run, as in
`flexgroup.metrics.period`."""


@dataclass(frozen=True)
class Counted:
    """What one run cost, from before its first message until its last delivery, beside what its
    clients saw. Servers are not asked in between: they would answer late when they are busy."""

    load: Load
    """What the clients saw while messages counted."""
    seconds: float
    messages: int
    client_frames: int
    """How many frames the process of the clients has read and written."""
    client_cpu: float
    """The seconds of processor time that this process took."""
    servers: tuple[dict[str, float], ...]
    """How much the totals of each server grew, and `packet_bytes`: how many bytes the packets had
    that it sent or received, as far as traces tell."""

    @property
    def server_cpu(self) -> float:
        """Return the seconds of processor time that all servers took."""
        return sum(totals["cpu_seconds"] for totals in self.servers)

    @property
    def deliveries(self) -> float:
        return sum(totals["deliveries"] for totals in self.servers)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "load": vars(self.load)}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Counted:
        read = {"load": Load.from_json(told["load"]), "servers": tuple(told["servers"])}
        return cls(**{**told, **read})


class Servers:
    """Running servers with the folder they record into; the links show how much they have done."""

    def __init__(
        self, addresses: Sequence[str], traces: Path, pids: Callable[[], list[int]]
    ) -> None:
        self.traces = traces
        self._pids = pids
        self._stack = ExitStack()
        links = [self._stack.enter_context(blocking.connect(address)) for address in addresses]
        by_age = sorted((_number_of(link.inspect()), place) for place, link in enumerate(links))
        if len({number for number, _ in by_age}) < len(links):
            raise UsageError("an address of a server is given twice; give each server once")
        self.addresses = [addresses[place] for _, place in by_age]
        """They are in the order of the servers' ages, which numbers the processes of a domain."""
        self._links = [links[place] for _, place in by_age]

    def close(self) -> None:
        self._stack.close()

    def settle(self) -> None:
        """Wait until the processes that write traces have loaded what they need."""
        until = time.monotonic() + SETTLED_SECONDS
        before = cpu_seconds(self._writers())
        while time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            now = cpu_seconds(self._writers())
            if now - before < LOOK_SECONDS * LITTLE:
                return
            before = now

    def totals(self) -> list[dict[str, float]]:
        """Return what each server has counted since it began."""
        return [dict(link.inspect()["totals"]) for link in self._links]

    @contextmanager
    def nothing_written(self) -> Iterator[None]:
        """Have the processes that write the traces stand still meanwhile, as what they cost is no
        part of what is measured; the servers keep what is to be written."""
        # Another process holds them, so that they go on if this one is killed meanwhile.
        pids = [str(writer) for writer in self._writers()]
        holding = ChildProcess([sys.executable, "-m", "flexgroup.load.standstill", *pids])
        try:
            holding.read_line()
            yield
        finally:
            holding.end(RELEASE_SECONDS)

    def _writers(self) -> list[int]:
        return [child for pid in self._pids() for child in _children_of(pid)]


def _number_of(told: dict[str, Any]) -> int:
    return next(int(each["number"]) for each in told["servers"] if each["name"] == told["server"])


def _children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextmanager
def local_servers(size: int) -> Iterator[Servers]:
    """Start servers on this machine that record, and stop them in the end."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        traces = Path(folder) / "traces"
        options = [*OPTIONS, "--trace", str(traces)]
        cluster = stack.enter_context(LocalCluster(size, Path(folder) / "logs", options))
        servers = Servers(
            cluster.addresses, traces, lambda: [each.process.pid for each in cluster.servers]
        )
        stack.callback(servers.close)
        servers.settle()
        yield servers


@contextmanager
def given_servers(addresses: Sequence[str], traces: Path) -> Iterator[Servers]:
    """Use servers that run somewhere, and record into a folder that is seen here."""
    if not traces.is_dir():
        raise UsageError(
            f"'{traces}' is no folder of this machine; start the servers with --pack 1 and "
            "--trace DIR, where DIR is shared with this machine, and name it with --traces DIR"
        )
    servers = Servers(addresses, traces, list)
    try:
        yield servers
    finally:
        servers.close()


def is_finished(directory: Path, real: RealRun) -> bool:
    return (directory / "runs" / run_file(real.run)).exists()


def counted_file(directory: Path, run: str) -> Path:
    return directory / "counted" / f"{run}.json"


def counted_of(directory: Path, run: str) -> Counted:
    """Return what a finished run has cost."""
    return Counted.from_json(json.loads(counted_file(directory, run).read_text(encoding="utf-8")))


def record_real(real: RealRun, servers: Servers, directory: Path) -> Counted:
    """Load the servers, and record the run in the trace set; its row is written last."""
    parse_workload(real.workload, real.processes)
    if len(servers.addresses) != real.processes:
        raise UsageError(
            f"{real.processes} servers are needed, and there are {len(servers.addresses)}"
        )
    prepare_trace_set(directory, real.run)
    before = _listed(servers.traces)
    counted = _load(real, servers)
    described = _recorded_run(servers.traces, before, real)
    tables = _tables(servers.traces, described.run, real.run)
    if tables[schema.MULTICAST].num_rows != counted.messages:
        raise UsageError(
            f"the clients have sent {counted.messages:,} messages, and the servers have recorded "
            f"{tables[schema.MULTICAST].num_rows:,} multicasts; start servers with --pack 1"
        )
    counted = replace(counted, servers=_with_packet_bytes(counted.servers, tables.get(schema.SEND)))
    for kind, table in tables.items():
        write_part(directory, kind, run_file(real.run), table)
    file = counted_file(directory, real.run)
    file.parent.mkdir(exist_ok=True)
    write_whole(file, f"{json.dumps(counted.to_json())}\n".encode())
    write_run(
        directory,
        replace(
            described,
            run=real.run,
            clients=real.clients,
            groups=None,
            workload=real.workload,
            network=HERE,
            seed=real.seed,
            options=as_json({"answers": real.answers, "measured": real.duration}),
            started=None,
            events=as_json({kind: table.num_rows for kind, table in tables.items()}),
        ),
    )
    _forget(servers.traces, described.run)
    return counted


def _load(real: RealRun, servers: Servers) -> Counted:
    """Let the clients run, and return what was counted."""
    command = [
        sys.executable, "-m", "flexgroup.load.subsets", *servers.addresses,
        "--groups", f"load-{secrets.token_hex(4)}", "--stack", real.stack,
        "--workload", real.workload, "--clients", str(real.clients),
        "--answers", real.answers, "--seed", str(real.seed),
    ]  # fmt: skip
    with TemporaryDirectory() as folder:
        log = Path(folder) / "clients.log"
        clients = ChildProcess(command, log=log)
        pids = [clients.process.pid]
        try:
            clients.read_line()
            with servers.nothing_written():
                began, before, cpu = time.monotonic(), servers.totals(), cpu_seconds(pids)
                warm_up = real.duration / WARM_UP
                load = measure([clients], real.duration, lambda: 0.0, warm_up=warm_up)
                seconds = time.monotonic() - began
                after, cpu = servers.totals(), cpu_seconds(pids) - cpu
            clients.write_line("end")
            told = json.loads(clients.read_line())
        except ProcessFailedError as error:
            said = log.read_text(errors="replace").strip().splitlines()
            why = said[-1].removeprefix("flexgroup: error: ") if said else str(error)
            raise FlexGroupError(f"the clients of {real.run} have failed: {why}") from None
        finally:
            clients.end(1.0)
    grown = tuple(
        {name: now[name] - then[name] for name in now}
        for then, now in zip(before, after, strict=True)
    )
    return Counted(load, seconds, told["sent"], told["frames"], cpu, grown)


def _listed(traces: Path) -> dict[str, Run]:
    if not any((traces / "runs").glob("[!_]*.parquet")):
        return {}
    return {run.run: run for run in read_runs(traces)}


def _recorded_run(traces: Path, before: Collection[str], real: RealRun) -> Run:
    """Return the row of what the servers have recorded, as soon as it is listed."""
    stack = parse_stack(real.stack).name
    until = time.monotonic() + LISTED_SECONDS
    while time.monotonic() < until:
        for name, run in _listed(traces).items():
            if name not in before and run.stack == stack:
                return run
        time.sleep(0.1)
    raise FlexGroupError(
        f"no run of '{real.stack}' is listed in '{traces}' {LISTED_SECONDS:g} s after its end; do "
        "all servers run, and record into this folder?"
    )


def _tables(traces: Path, recorded: str, run: str) -> dict[str, pa.Table]:
    """Return what was recorded of each kind of event, under another name for the run."""
    tables: dict[str, pa.Table] = {}
    for kind in schema.KINDS:
        files = sorted((traces / "events" / f"event={kind}").glob(f"{recorded}@*.parquet"))
        if not files:
            continue
        table = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
        named = pa.DictionaryArray.from_arrays(
            pa.array([0] * table.num_rows, pa.int32()), pa.array([run])
        )
        tables[kind] = table.set_column(table.schema.get_field_index("run"), "run", named)
    return tables


def _with_packet_bytes(
    servers: Sequence[dict[str, float]], sends: pa.Table | None
) -> tuple[dict[str, float], ...]:
    """Return the totals with the bytes of packets to and from others, as traces tell them."""
    if sends is None:
        return tuple({**totals, "packet_bytes": 0.0} for totals in servers)
    source, target, headers, payloads = (
        sends[name].to_numpy().copy()
        for name in ("process", "peer", "header_bytes", "payload_bytes")
    )
    # A packet to oneself is in no frame.
    sizes = np.where(source == target, 0, headers + payloads)
    count = len(servers)
    moved = np.bincount(source, sizes, count) + np.bincount(target, sizes, count)
    return tuple(
        {**totals, "packet_bytes": float(moved[process])} for process, totals in enumerate(servers)
    )


def _forget(traces: Path, recorded: str) -> None:
    """Remove what the servers have recorded of a run that is in another trace set now."""
    for file in traces.glob(f"**/{recorded}*"):
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
