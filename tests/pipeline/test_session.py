"""A Spark session of our own making works, on this machine's defaults, and starts in silence."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.java import FAST_START, spark_environment
from flexgroup.pipeline.spark.session import (
    JAVA_OPTIONS,
    errors_only,
    is_set_elsewhere,
    packed,
    start,
    times_told,
)

from ..trace.recorded import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_counts(spark: SparkSession) -> None:
    assert spark.range(1000).count() == 1000


@pytest.mark.parametrize(("start", "rest", "is_said"), [(5.9, 3.1, True), (5.9, 6.1, False)])
def test_a_job_that_is_mostly_sparks_start_says_so(
    start: float, rest: float, is_said: bool
) -> None:
    told = times_told(start, "measuring", rest)
    assert told.startswith(f"Spark started in {start} s, measuring took {rest} s")
    assert told.endswith("most of it was Spark's start") == is_said


def test_while_it_starts_spark_prints_errors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(JAVA_OPTIONS, "-Dmine=1")
    with errors_only():
        mine, ours = os.environ[JAVA_OPTIONS].split()
        assert mine == "-Dmine=1"
        assert ours.startswith("-Dlog4j2.configurationFile=file:")
    assert os.environ[JAVA_OPTIONS] == "-Dmine=1"


@pytest.mark.parametrize(
    ("name", "value"), [("SPARK_CONF_DIR", "/etc/spark"), (JAVA_OPTIONS, "-Dlog4j2.level=info")]
)
def test_a_configuration_of_the_users_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with errors_only():
        assert dict(os.environ) == before


def test_a_session_that_is_there_is_used_as_it_is(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll)
    started = start(name="another", settings={"spark.sql.shuffle.partitions": "77"})
    assert started.spark is spark or started.spark._jsparkSession is spark._jsparkSession
    assert not started.is_ours
    assert dict(spark.conf.getAll) == before
    started.stop()
    assert spark.range(3).count() == 3


def test_a_session_on_another_master_is_no_substitute(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="runs in this process on"):
        start("spark://nowhere:7077")


@pytest.mark.parametrize(
    ("environ", "elsewhere"),
    [
        ({}, False),
        ({"PYSPARK_GATEWAY_PORT": "4711"}, True),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.sql.shuffle.partitions=3 pyspark-shell"}, False),
        ({"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, True),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}, True),
    ],
)
def test_who_has_said_where_spark_runs(environ: dict[str, str], elsewhere: bool) -> None:
    assert is_set_elsewhere(environ) == elsewhere


@pytest.mark.parametrize(
    ("line", "elsewhere"),
    [("spark.master  yarn", True), ("# spark.master yarn", False), ("spark.ui.port 1", False)],
)
def test_a_file_of_settings_says_where_spark_runs(
    tmp_path: Path, line: str, elsewhere: bool
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\n")
    assert is_set_elsewhere({"SPARK_CONF_DIR": str(tmp_path)}) == elsewhere


PROGRAM = """
import json, sys
from pathlib import Path
from flexgroup.cli.main import main

code = main(["verify", *sys.argv[2:], "--property", "integrity"])

from pyspark.sql import SparkSession
spark = SparkSession.active()

def where(batches):
    import flexgroup.core.stack
    import pyarrow as pa
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [flexgroup.core.stack.__file__]})

found = spark.range(1).mapInArrow(where, "file string").collect()[0].file
names = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
settings = [spark.conf.get(name) for name in names]
Path(sys.argv[1]).write_text(json.dumps([spark.sparkContext.master, settings, found]))
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_submit_says_where_and_how(tmp_path: Path) -> None:
    """With the package shipped, and an executor in a process of its own."""
    record(tmp_path / "traces")
    program, told, package = tmp_path / "program.py", tmp_path / "told", packed()
    program.write_text(PROGRAM)
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local-cluster[1,1,1024]", "--py-files", str(package)),
        *("--conf", "spark.sql.shuffle.partitions=3", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.sql.session.timeZone=Asia/Tokyo"),
        *("--driver-java-options", FAST_START),
        *(str(program), str(told), str(tmp_path / "traces")),
    ]
    # In a folder where Python finds no other package of that name.
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment = {**bare, **spark_environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    # Else what is installed here would be found, which is the same: see test_shipped.py.
    environment["FLEXGROUP_PURE"] = "1"
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    master, settings, found = json.loads(told.read_text())
    assert master == "local-cluster[1,1,1024]"
    assert settings == ["3", "Asia/Tokyo"]
    assert "flexgroup.zip" in found
    assert "integrity" in done.stdout
