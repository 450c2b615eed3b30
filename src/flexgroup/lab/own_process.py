"""Work in a process of its own, which ends when the lab does.

The process is a module that is told what to do in one line of JSON, and answers in lines of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any


def started(module: str) -> subprocess.Popen[str]:
    """Start a module as a process that waits to be told what to do."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def told() -> dict[str, Any]:
    """Return, in such a process, what it is told to do; from then on it ends with the lab."""
    wanted: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_lab, daemon=True).start()
    return wanted


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def _end_with_the_lab() -> None:
    sys.stdin.read()
    os._exit(1)
