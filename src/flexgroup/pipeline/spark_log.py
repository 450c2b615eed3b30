"""What Spark prints while it starts: errors only.

By default these are half a dozen lines on every command, about levels of logging, the name of the
host and libraries that nobody misses. A user's own configuration is left alone.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIGURATION = Path(__file__).with_name("log4j2.properties")

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the Java that PySpark starts, and for no other of Spark's."""


@contextmanager
def errors_only() -> Iterator[None]:
    """While this lasts, the Java that PySpark starts uses our configuration of log4j."""
    before = os.environ.get(OPTIONS, "")
    if "log4j" in before or "SPARK_CONF_DIR" in os.environ or _is_configured_at_home():
        yield
        return
    ours = shlex.quote(f"-Dlog4j2.configurationFile={CONFIGURATION.as_uri()}")
    os.environ[OPTIONS] = f"{before} {ours}".strip()
    try:
        yield
    finally:
        if before:
            os.environ[OPTIONS] = before
        else:
            del os.environ[OPTIONS]


def _is_configured_at_home() -> bool:
    home = os.environ.get("SPARK_HOME")
    return home is not None and any(Path(home, "conf").glob("log4j2.*"))
