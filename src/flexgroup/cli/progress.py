"""Progress on standard error where a person is looking, and requests to stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    description: str, wanted: bool, known: bool = True
) -> Iterator[Callable[[float], None]]:
    """Give a function that shows which share of the work is done, from 0 to 1.

    If it is not `known` how much is left, show what is being done, and for how long already.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = Progress(*(() if known else columns), console=Console(stderr=True), transient=True)
    with shown as progress:
        task = progress.add_task(description, total=1.0 if known else None)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def status_line(wanted: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows a line of text in place of the one before."""
    if not wanted or not sys.stderr.isatty():
        yield lambda text: None
        return
    yield lambda text: print(f"\r{text}   ", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


@contextmanager
def stop_requests(
    *signals: signal.Signals, most: int | None = None
) -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether a signal asked to stop, which ends nothing by itself.

    Of more than `most` of them, each ends the work at once.
    """
    asked: list[int] = []

    def handle(number: int, frame: object) -> None:
        asked.append(number)
        if most is not None and len(asked) > most:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
