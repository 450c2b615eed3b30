"""Watching a trace for the page of a live cluster, in a process of its own.

The process is this module: it watches a folder, prints what it finds as lines of JSON, and ends
when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from flexgroup.core.errors import FlexGroupError
from flexgroup.pipeline.watch.folder import FolderWatch
from flexgroup.pipeline.watch.watched_run import BatchReport

MOMENT = 1.0
"""The seconds between two looks into the folder."""

SHOWN = 50


@dataclass(frozen=True)
class Found:
    """What was found of a run, in words for people."""

    at: float
    """When it was told, in seconds since 1970."""
    run: str
    heading: str
    explanation: str = ""
    is_violation: bool = False


@dataclass
class Watching:
    """The process that watches, and what it has told, the latest first."""

    traces: Path
    told: deque[Found] = field(default_factory=lambda: deque(maxlen=SHOWN))
    broken: set[tuple[str, str]] = field(default_factory=set)
    """The runs of which a promise was broken, each with the property."""
    runs_over: int = 0
    ended: str = ""
    """Why it watches no longer; empty while it does."""

    async def follow(self, changed: Callable[[], None]) -> None:
        """Begin, and read what the process tells until this is cancelled or the process ends."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "flexgroup.lab.watching", str(self.traces),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                self._take(json.loads(line))
                changed()
            self.ended = self.ended or "the process that watches has ended"
            changed()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _take(self, line: dict[str, str]) -> None:
        if "error" in line:
            self.ended = line["error"]
            return
        found = Found(time.time(), line["run"], line["heading"], line["explanation"],
                      line["kind"] == "violation")  # fmt: skip
        if found.is_violation:
            self.broken.add((found.run, line["property"]))
        self.runs_over += line["kind"] == "over"
        self.told.appendleft(found)


def in_words(run: str, notes: BatchReport) -> list[dict[str, str]]:
    """Return what a batch brought to light about a run, each thing with a heading."""
    lines = []
    for row in notes.violations:
        heading = f"{row['property']}: violated, {row['violations']} so far"
        lines.append(("violation", heading, str(row["explanation"]), str(row["property"])))
    if notes.refused:
        lines.append(("refused", "it cannot be watched any further", notes.refused, ""))
    if notes.final:
        by_outcome: dict[str, list[str]] = {}
        for row in notes.final:
            by_outcome.setdefault(str(row["outcome"]), []).append(str(row["property"]))
        verdicts = [f"{outcome}: {', '.join(names)}" for outcome, names in by_outcome.items()]
        lines.append(("over", "the run is over", "\n".join(verdicts), ""))
    names = ("kind", "heading", "explanation", "property")
    return [{"run": run, **dict(zip(names, line, strict=True))} for line in lines]


def main() -> None:
    def say(run: str, notes: BatchReport) -> None:
        for line in in_words(run, notes):
            print(json.dumps(line), flush=True)

    def end_with_the_lab() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_the_lab, daemon=True).start()
    try:
        watch = FolderWatch(Path(sys.argv[1]), say)
        while True:
            watch.look()
            time.sleep(MOMENT)
    except FlexGroupError as error:
        print(json.dumps({"error": str(error)}), flush=True)


if __name__ == "__main__":
    main()
