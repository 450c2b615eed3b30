"""Has processes stand still until standard input ends, which it does whatever way its owner ends.

`python -m flexgroup.load.standstill PID...`
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress


def send(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def main() -> None:
    processes = [int(word) for word in sys.argv[1:]]
    try:
        send(processes, signal.SIGSTOP)
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        send(processes, signal.SIGCONT)


if __name__ == "__main__":
    main()
