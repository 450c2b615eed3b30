"""How fast Spark verifies a large run, against sorting the same rows with Spark.

    python benchmarks/spark_verify.py [--deliveries 10000000] [--in-flight 64] [--rounds 2]
                                      [--processes 16] [--through-spark] [--swap]

Does all that `flexgroup verify` does once Spark has started, asked for integrity, agreement and
acyclic order: it opens the trace set of one run, refuses what is no valid trace, steps that were
taken twice among it, checks the properties and fetches the verdicts. And it sorts the deliveries by
(run, process, step), in turns in one session of two cores with Spark's default memory. Prints the
time of both and the ratio of the fastest rounds; the processor time of the last check, of Java and
of all Python processes; how large the trace is, and what stages handed to each other; and the most
memory that Java and that any Python worker held.

`--in-flight` is the message rate: how many messages are multicast until the last destination of one
has delivered it. `--through-spark` has Spark read the files, as on a cluster. With `--swap`, one
process delivers the first and the last message of the run in each other's place.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from flexgroup.core.guarantees import Guarantee
from flexgroup.pipeline.reading.trace_set import TraceSet, open_remote, open_trace_set
from flexgroup.pipeline.spark.session import start
from flexgroup.pipeline.verify import verify
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace import schema
from flexgroup.trace.history import Ints
from flexgroup.trace.run import Run
from flexgroup.trace.writer import write_run

RUN = "correct"
PROCESSES = 16
CLIENTS = 64
DESTINATIONS = 4
GAP = 1000
"""Nanoseconds from one multicast to the next."""

MESSAGES_AT_ONCE = 250_000

PROPERTIES = ["integrity", "agreement", "acyclic order"]


class Writer:
    """Events of one kind, written piece by piece."""

    def __init__(self, directory: Path, kind: str) -> None:
        folder = directory / "events" / f"event={kind}"
        folder.mkdir(parents=True)
        self._file = pq.ParquetWriter(
            folder / f"{RUN}.parquet",
            schema.EVENT_COLUMNS,
            use_dictionary=["run"],
            column_encoding=dict.fromkeys(
                ("process", "step", "time", "origin", "seq"), "DELTA_BINARY_PACKED"
            ),
        )

    def write(self, **columns: object) -> None:
        count = len(columns["step"])  # type: ignore[arg-type]
        columns["run"] = [RUN] * count
        arrays = [
            pa.array(columns[field.name]).cast(field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in schema.EVENT_COLUMNS
        ]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=schema.EVENT_COLUMNS))

    def close(self) -> None:
        self._file.close()


def write_run_of(
    directory: Path,
    deliveries: int,
    in_flight: int,
    swap: bool = False,
    processes: int = PROCESSES,
) -> None:
    """Messages of clients to random sets, delivered in one order with delays that vary. The first
    and the last message, of a client of their own, may be swapped at process 0."""
    chance = np.random.default_rng(1)
    multicasts = Writer(directory, schema.MULTICAST)
    delivered = Writer(directory, schema.DELIVER)
    sent = np.zeros(CLIENTS + 1, dtype=np.int64)
    steps = np.zeros(processes, dtype=np.int64)
    latest = np.zeros(processes, dtype=np.int64)
    total = deliveries // DESTINATIONS
    for begin in range(0, total, MESSAGES_AT_ONCE):
        number = np.arange(begin, min(total, begin + MESSAGES_AT_ONCE))
        client = chance.integers(0, CLIENTS, len(number))
        drawn = np.argsort(chance.random((len(number), processes)), axis=1)[:, :DESTINATIONS]
        far_apart = np.isin(number, [0, total - 1])
        client[far_apart] = CLIENTS
        drawn[far_apart] = np.arange(DESTINATIONS)
        seq = counted(client, sent)
        process = np.sort(drawn, axis=1).ravel()
        lists = pa.ListArray.from_arrays(
            np.arange(0, len(process) + 1, DESTINATIONS, dtype=np.int32), process.astype(np.int32)
        )
        origin = client + processes
        multicasts.write(
            process=origin, step=seq, time=number * GAP, origin=origin, seq=seq, destinations=lists
        )
        moment = np.repeat(number * GAP, DESTINATIONS) + in_flight * GAP // 2
        moment += chance.integers(0, max(1, in_flight * GAP // 2), len(moment))
        for place in range(processes):
            rows = np.flatnonzero(process == place)
            moment[rows] = np.maximum(np.maximum.accumulate(moment[rows]), latest[place])
            latest[place] = moment[rows[-1]] if len(rows) else latest[place]
        step = counted(process, steps)
        order = np.argsort(moment, kind="stable")
        about = np.repeat(np.arange(len(number)), DESTINATIONS)[order]
        process, delivered_seq = process[order], seq[about]
        if swap:
            delivered_seq[far_apart[about] & (process == 0)] ^= 1
        delivered.write(
            process=process,
            step=step[order],
            time=moment[order],
            origin=origin[about],
            seq=delivered_seq,
        )
    multicasts.close()
    delivered.close()
    (directory / "runs").mkdir()
    promises = parse_stack("skeen").promises(frozenset({Guarantee.RELIABLE, Guarantee.FIFO}))
    described = Run(
        run=RUN,
        world="made up",
        stack="skeen",
        processes=processes,
        clients=CLIENTS,
        outcome=schema.COMPLETE,
        promises=promises,
    )
    write_run(directory, described)


def counted(key: Ints, seen: Ints) -> Ints:
    """Per row, how many rows of the same key came before; `seen` goes on from call to call."""
    order = np.argsort(key, kind="stable")
    place = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    result = np.empty(len(key), dtype=np.int64)
    result[order] = seen[key[order]] + place
    seen += np.bincount(key, minlength=len(seen))
    return result


class MemoryWatch:
    """The most memory that Java and that any one Python worker of ours held meanwhile."""

    def __init__(self) -> None:
        self.java = 0
        self.worker = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            for pid in descendants(os.getpid()):
                name, resident = about_process(pid)
                if name == "java":
                    self.java = max(self.java, resident)
                elif name.startswith("python"):
                    self.worker = max(self.worker, resident)


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = list(children.get(root, ()))
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], ())
    return found


def about_process(pid: int) -> tuple[str, int]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "", 0
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return fields["Name"].strip(), int(fields.get("VmRSS", "0 kB").split()[0]) * 1024


def processor_seconds() -> float:
    """Return how much processor time this process and those that it started have had."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        # Its own, and that of its children which have ended.
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def shuffled_bytes(spark: SparkSession) -> int:
    """Return how many bytes all stages have handed to others so far."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    nothing = gateway.new_array(gateway.jvm.double, 0)
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, nothing, gateway.jvm.java.util.ArrayList())
    return sum(stages.apply(place).shuffleWriteBytes() for place in range(stages.size()))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sort_deliveries(traces: TraceSet) -> None:
    """The yardstick: Spark sorts all deliveries once, and throws them away."""
    rows = traces.recorded(schema.DELIVER).select("run", "process", "step", "time", "origin", "seq")
    rows.orderBy("run", "process", "step").write.format("noop").mode("overwrite").save()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=10_000_000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--through-spark", action="store_true")
    parser.add_argument("--swap", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write_run_of(
            directory, options.deliveries, options.in_flight, options.swap, options.processes
        )
        size = sum(path.stat().st_size for path in directory.rglob("*.parquet"))
        started = start(name="benchmark")
        traces = open_trace_set(started.spark, folder)

        def check() -> None:
            spark, wrong = started.spark, {"acyclic order"} if options.swap else set()
            opened = (
                open_remote(spark, f"file:{folder}")
                if options.through_spark
                else open_trace_set(spark, folder)
            )
            found = verify(opened, PROPERTIES, refuse_mixed=True).toArrow().to_pylist()
            assert {row["property"] for row in found if row["outcome"] != "holds"} == wrong, found
            # The next round is not to find what this one kept.
            started.spark.catalog.clearCache()

        sorting, checking = [], []
        with MemoryWatch() as memory:
            for number in range(options.rounds):
                sorting.append(seconds(lambda: sort_deliveries(traces)))
                worked, handed = processor_seconds(), shuffled_bytes(started.spark)
                checking.append(seconds(check))
                worked = processor_seconds() - worked
                handed = shuffled_bytes(started.spark) - handed
                print(f"round {number + 1}: sort {sorting[-1]:.1f} s, verify {checking[-1]:.1f} s")
        started.spark.stop()
    ratio = min(checking) / min(sorting)
    million = options.deliveries / 1e6
    print(f"{options.deliveries:,} deliveries, {options.in_flight} in flight")
    print(f"verify / sort: {ratio:.2f}; {min(checking) / million:.2f} s per million deliveries")
    print(f"processor time: {worked / million:.2f} s per million deliveries")
    print(f"the trace: {size / options.deliveries:.1f} bytes a delivery")
    print(f"between stages: {handed / options.deliveries:.1f} bytes a delivery")
    print(f"most memory: Java {memory.java >> 20} MiB, a Python worker {memory.worker >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
