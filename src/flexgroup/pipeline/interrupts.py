"""Ctrl-C while Spark starts.

A Java that PySpark has started and not talked to yet would stay behind for ever: it finds nobody to
tell its port, and waits all the same. So the first interrupt has effect when Spark is there to be
ended, seconds later; a second one, at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_later() -> Iterator[None]:
    """An interrupt that comes meanwhile is raised at the end."""
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
