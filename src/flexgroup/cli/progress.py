"""Progress on standard error, where a person is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(description: str, wanted: bool) -> Iterator[Callable[[float], None]]:
    """Give a function that shows which share of the work is done, from 0 to 1."""
    if not wanted or not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def waiting(doing: str, wanted: bool) -> Iterator[None]:
    """Show what is being done, and for how long already, if nobody knows how much is left."""
    if not wanted or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(doing, total=None)
        yield


@contextmanager
def status_line(wanted: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows a line of text in place of the one before."""
    if not wanted or not sys.stderr.isatty():
        yield lambda text: None
        return
    yield lambda text: print(f"\r{text}   ", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)
