"""Starting Spark: on two cores of this machine by default, or on any cluster.

A session on this machine is set up for small jobs, where Spark's start is most of the time. A
master that the user names keeps the settings of its own cluster: only this package is shipped to
the executors, which need Python with numpy and pyarrow.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import signal
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakSet

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.java import FAST_START, spark_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[2]"
MASTERS = ("local", "spark://", "yarn", "k8s://", "sc://")
SUCH_MASTERS = "give a master such as local[4], spark://host:7077, yarn, k8s://... or sc://host"

CONNECT = "sc://"
"""A master that is a Spark Connect server: the driver is there, and only plans go over the wire."""

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the Java that PySpark starts, and for no other of Spark's."""

CONNECT_PORT = 15002
SECONDS_TO_ANSWER = 10

# One collector thread: on two cores, the Python workers need the rest.
LOCAL_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:-UsePerfData"

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": LOCAL_JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "16",
    # Python workers keep the memory of arrays for the next ones; to give it back and get it again
    # takes a sixth of their time. (The C library of Linux reads these, and others ignore them.)
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}

# Where most of the time would go into getting Java warm: quick compiling takes half of that away,
# and few partitions spare handing over next to nothing.
SMALL_JOB = {
    "spark.driver.extraJavaOptions": FAST_START,
    "spark.sql.shuffle.partitions": "4",
}

# What this package relies on, and so the same on every cluster.
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Batches are limited by rows. By bytes, Spark would measure the batch again after each row,
    # which takes a time that grows with the square of the batch where rows hold lists.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}


@dataclass(frozen=True)
class Started:
    """A session, and how long it took to get it: in small jobs, most of the time."""

    spark: SparkSession
    seconds: float
    is_ours: bool = True
    """Whether it was started here, to be stopped here; else somebody goes on working with it."""

    def stop(self) -> None:
        """Stop the session, unless it is somebody else's."""
        if self.is_ours:
            self.spark.stop()


GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The variable that spark-submit sets for the Python program that it has started."""

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The variable with arguments for the Java that PySpark starts."""


def is_set_elsewhere(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether Spark's own means say where it runs: spark-submit, its arguments, or its file of
    settings."""
    told = _told_elsewhere(environ)
    return GATEWAY in environ or re.search(r"--master\b|\bspark\.master\b", told) is not None


def _told_elsewhere(environ: Mapping[str, str]) -> str:
    """Return what the arguments and the file of settings of spark-submit say."""
    home = environ.get("SPARK_HOME")
    folder = environ.get("SPARK_CONF_DIR", home and f"{home}/conf")
    defaults = Path(folder, "spark-defaults.conf") if folder else None
    told = defaults.read_text() if defaults and defaults.is_file() else ""
    lines = [line for line in told.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([environ.get(ARGUMENTS, ""), *lines])


def refuse_without_pyspark() -> None:
    """Say what to do where pyspark is missing, before anything imports it."""
    if importlib.util.find_spec("pyspark") is None:
        raise UsageError(
            "this needs Spark, and the package pyspark is not installed; "
            "install it, from the folder with FlexGroup's sources: pip install '.[spark]'"
        )


def start(
    master: str | None = None, name: str = "flexgroup", settings: Mapping[str, str] | None = None
) -> Started:
    """Return the session that is there, as it is. If there is none, start Spark: on the given
    master, else where Spark's own means say, else on two cores of this machine."""
    refuse_without_pyspark()
    if master is not None and not master.startswith(MASTERS):
        raise UsageError(f"there is no Spark '{master}'; {SUCH_MASTERS}")
    began = time.perf_counter()
    is_connect = master is not None and master.startswith(CONNECT)
    if is_connect:
        _refuse_without_answer(str(master))
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = None if is_connect else SparkSession.getActiveSession()
    if active is not None:
        _refuse_another_master(active, master)
        _ship(active)
        return Started(active, time.perf_counter() - began, is_ours=False)
    is_submitted = GATEWAY in os.environ
    if not is_connect and not is_submitted:
        os.environ.update(spark_environment())
    is_elsewhere = master is None and is_set_elsewhere()
    builder = SparkSession.builder
    if is_connect:
        builder = builder.remote(str(master))
    elif not is_elsewhere:
        builder = builder.master(master or LOCAL_MASTER)
    chosen = {"spark.app.name": name, **ALWAYS}
    if master is None and not is_elsewhere:
        chosen |= {**LOCAL_SETTINGS, **(settings or {})}
    try:
        with errors_only(), interrupted_later():
            told = _given() if is_submitted else _told_elsewhere(os.environ)
            for key, value in chosen.items():
                if key not in told:
                    builder = builder.config(key, value)
            spark = builder.getOrCreate()
        if not is_connect and not is_submitted:
            spark.sparkContext.setLogLevel("OFF")
        _ship(spark)
    except (PySparkException, RuntimeError, OSError) as problem:
        reason = str(problem).strip().splitlines()[0]
        where = master or ("the master of its settings" if is_elsewhere else LOCAL_MASTER)
        raise UsageError(f"cannot start Spark on '{where}': {reason}; {SUCH_MASTERS}") from None
    return Started(spark, time.perf_counter() - began)


def _given() -> frozenset[str]:
    """Return the settings that spark-submit was given, by options or by its files."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return frozenset(key for key, _ in SparkConf().getAll())


def _refuse_another_master(spark: SparkSession, master: str | None) -> None:
    context = getattr(spark, "sparkContext", None)
    if master is not None and context is not None and context.master != master:
        raise UsageError(
            f"Spark runs in this process on '{context.master}', and cannot run on '{master}' as "
            "well; leave out the master, or stop the session first"
        )


_has_package: WeakSet[SparkSession] = WeakSet()
"""The sessions to whose executors this package was sent."""


def _ship(spark: SparkSession) -> None:
    """Send this package to executors that are elsewhere, unless it was sent with the program."""
    if not executors_are_here(spark) and not is_packed() and spark not in _has_package:
        spark.addArtifacts(str(packed()), pyfile=True)
        _has_package.add(spark)


def is_packed() -> bool:
    """Tell whether this package is in a zip file, as spark-submit ships it with --py-files."""
    return not Path(__file__).exists()


def refuse_connect(master: str | None, doing: str) -> None:
    """Raise a UsageError if the master is Spark Connect, which cannot serve this."""
    if master is not None and master.startswith(CONNECT):
        raise UsageError(
            f"{doing} needs Spark's driver in this process, which Spark Connect (sc://) has"
            " elsewhere; give a master such as local[4], spark://host:7077, yarn or k8s://..."
        )


def _refuse_without_answer(master: str) -> None:
    """Raise a UsageError if no server answers; Spark itself would try for ten minutes."""
    if importlib.util.find_spec("grpc") is None:
        raise UsageError(
            f"'{master}' is a Spark Connect server, and the packages for that are not installed;"
            " install them with: pip install 'flexgroup[connect]'"
        )
    try:
        address = urlsplit(master)
        host, port = address.hostname or "", address.port or CONNECT_PORT
        socket.create_connection((host, port), SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"no Spark Connect server answers at '{master}': {problem}; start one with"
            " start-connect-server.sh of that Spark, or give another master, as sc://host:15002"
        ) from None


def times_told(start: float, doing: str, seconds: float) -> str:
    """Return a line on where the time went."""
    told = f"Spark started in {start:.1f} s, {doing} took {seconds:.1f} s"
    return f"{told}: most of it was Spark's start" if start > seconds else told


def is_on_this_machine(master: str | None) -> bool:
    """Tell whether the executors are threads of this process's Spark, with its Python packages."""
    return master is None or master == "local" or master.startswith("local[")


def executors_are_here(spark: SparkSession) -> bool:
    """Tell whether this session's executors see the files of this machine, at the same paths."""
    # A session over Spark Connect has no context.
    context = getattr(spark, "sparkContext", None)
    return context is not None and is_on_this_machine(context.master)


def packed() -> Path:
    """Return this package as a zip file for the executors, in its pure-Python form."""
    root = Path(__file__).parents[2]
    folder = Path(tempfile.mkdtemp(prefix="flexgroup-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "flexgroup.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(root.rglob("*.py")):
            target.write(path, Path("flexgroup") / path.relative_to(root))
    return archive


@contextmanager
def errors_only() -> Iterator[None]:
    """Have the Java that PySpark starts meanwhile print errors only.

    By default there are half a dozen lines on every command, about levels of logging, the name of
    the host and libraries that nobody misses. A user's own configuration of log4j is left alone.
    """
    before = os.environ.get(JAVA_OPTIONS, "")
    if "log4j" in before or "SPARK_CONF_DIR" in os.environ or _is_configured_at_home():
        yield
        return
    ours = shlex.quote(f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}")
    os.environ[JAVA_OPTIONS] = f"{before} {ours}".strip()
    try:
        yield
    finally:
        if before:
            os.environ[JAVA_OPTIONS] = before
        else:
            del os.environ[JAVA_OPTIONS]


def _is_configured_at_home() -> bool:
    home = os.environ.get("SPARK_HOME")
    return home is not None and any(Path(home, "conf").glob("log4j2.*"))


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Raise an interrupt that comes meanwhile at the end.

    A Java that PySpark has started and not talked to yet would stay behind for ever: it finds
    nobody to tell its port, and waits all the same. So the first interrupt has effect when Spark is
    there to be ended, seconds later; a second one, at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        # PySpark puts its own in place of it, which cancels jobs.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
    if seen:
        raise KeyboardInterrupt
