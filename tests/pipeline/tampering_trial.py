"""A trial of verification: is whatever was tampered with found, everywhere, and nothing else told?

    python -m tests.pipeline.tampering_trial --sizes 1000,100000 [--kinds swapped,lost]

Each kind of tampering is a run of that many deliveries. Each route judges all properties of it:
outcome and number of violations have to be those of the second opinion, every step of the witness
has to be in the run, and together they have to show the violation. Prints a line for each run, and
what is wrong, if anything is; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.core.message import MessageId, name_of
from flexgroup.pipeline.in_memory.verdicts import verify_here
from flexgroup.pipeline.reading.local_files import MOST_EVENTS, look_here
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.verify import SizeLimits, verify
from flexgroup.properties.catalogue import PROPERTIES

from .made_up_runs import write_all
from .second_opinion import HOLDS, VIOLATED, Opinion, SecondOpinion
from .tampered_runs import TAMPERINGS, Tampered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Sequence[Mapping[str, Any]]
Route = Callable[[Path], Rows]
"""What judges all properties of all runs of a trace set."""

EVENTS_A_DELIVERY = 1.25
"""Of the runs without packets, which are most."""

AT_ONCE = 40_000_000
"""So many deliveries are written, and judged, at a time."""


def here(directory: Path) -> Rows:
    """Judge with the plain-Python properties, without Spark."""
    files = look_here(str(directory))
    assert files is not None
    judged: Rows = verify_here(files, list(PROPERTIES)).to_pylist()
    return judged


def with_limits(limits: SizeLimits, spark: SparkSession, directory: Path) -> Rows:
    traces = open_trace_set(spark, str(directory))
    judged: Rows = verify(traces, list(PROPERTIES), limits, refuse_mixed=True).toArrow().to_pylist()
    return judged


def slices_of(deliveries: int) -> SizeLimits:
    """Return limits by which a run of so many deliveries is cut into four slices or so."""
    return SizeLimits(0, deliveries // 2, max(deliveries // 64, 1))


def routes(deliveries: int, session: Callable[[], SparkSession]) -> dict[str, Route]:
    """Return the routes that runs of this size can take."""

    def on_spark(limits: SizeLimits) -> Route:
        return lambda directory: with_limits(limits, session(), directory)

    by_name: dict[str, Route] = {}
    if deliveries * EVENTS_A_DELIVERY <= MOST_EVENTS:
        by_name |= {"here": here, "from files": on_spark(SizeLimits())}
    whole = SizeLimits(events_from_files=0, whole_deliveries=sys.maxsize)
    return by_name | {"whole": on_spark(whole), "in slices": on_spark(slices_of(deliveries))}


@dataclass
class Expected:
    """What has to be told of a run."""

    case: Tampered
    second: SecondOpinion
    opinions: dict[str, Opinion]

    @classmethod
    def of(cls, case: Tampered) -> Expected:
        second = SecondOpinion(case.history)
        return cls(case, second, second.opinions())

    @property
    def violated(self) -> dict[str, int]:
        return {
            name: opinion.violations
            for name, opinion in self.opinions.items()
            if opinion.outcome == VIOLATED
        }

    def misjudged(self) -> Iterator[str]:
        """Yield what is wrong with the opinion itself, given what was done to the run."""
        violated = self.violated
        if bool(violated) != bool(self.case.violated):
            yield f"tampered with {self.case.violated or 'nothing'}, expected {violated}"
        elif self.case.violated and self.case.violated not in violated:
            yield f"{self.case.violated} should be violated, expected {violated}"

    def wrong(self, verdict: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with a verdict."""
        name = verdict["property"]
        expected = self.opinions[name]
        told = verdict["outcome"], verdict["violations"]
        if told != (expected.outcome, expected.violations):
            yield f"{name}: {told}, expected {(expected.outcome, expected.violations)}"
        elif verdict["outcome"] == VIOLATED:
            steps = json.loads(verdict["witness"])
            if not all(map(self.second.took, steps)):
                yield f"{name}: the witness has steps that the run does not have: {steps}"
            elif not expected.shows(steps):
                yield f"{name}: the witness shows no violation: {steps}"
            elif name == self.case.violated and not self._is_about(steps):
                yield f"{name}: the witness is about other messages: {steps}"
        elif verdict["witness"] is not None:
            yield f"{name} is {verdict['outcome']}, and has a witness"
        elif verdict["outcome"] == HOLDS and not verdict["explanation"].startswith("checked "):
            yield f"{name} holds, and does not say what was checked: {verdict['explanation']}"

    def _is_about(self, steps: Rows) -> bool:
        messages: frozenset[MessageId] = self.case.messages
        return not messages or {step["message"] for step in steps} == set(map(name_of, messages))


def mistakes(expected: Mapping[str, Expected], judged: Rows) -> Iterator[tuple[str, str]]:
    """Yield each run of which something wrong was told, or something not at all, and what."""
    wanted = {(run, name) for run in expected for name in PROPERTIES}
    told = [(row["run"], row["property"]) for row in judged]
    for run, name in sorted(wanted ^ set(told)):
        yield run, f"{name}: a verdict is missing, or nobody asked for it"
    if len(told) != len(set(told)):
        yield "", "some verdict was told twice"
    for row in judged:
        for mistake in expected[row["run"]].wrong(row):
            yield row["run"], mistake


Tampering = Callable[[int], Tampered]


def together(tamperings: Sequence[Tampering], deliveries: int) -> Iterator[Sequence[Tampering]]:
    """Yield as many kinds at a time as fit on disk and in memory."""
    number = max(1, AT_ONCE // deliveries // 4)
    for first in range(0, len(tamperings), number):
        yield tamperings[first : first + number]


def trial(
    tamperings: Sequence[Tampering], deliveries: int, ways: Mapping[str, Route]
) -> Iterator[tuple[str, Expected, list[str]]]:
    """Yield each run, what had to be told of it, and what is wrong with what was told."""
    for some in together(tamperings, deliveries):
        expected = {}
        for tampering in some:
            case = tampering(deliveries)
            expected[case.history.run] = Expected.of(case)
        with tempfile.TemporaryDirectory(prefix="tampering-") as folder:
            write_all(Path(folder), [each.case.history for each in expected.values()])
            wrong = {run: list(each.misjudged()) for run, each in expected.items()}
            for name, route in ways.items():
                begun = time.perf_counter()
                for run, mistake in mistakes(expected, route(Path(folder))):
                    wrong.setdefault(run, []).append(f"{name}: {mistake}")
                seconds = time.perf_counter() - begun
                print(f"  {name}: {len(some)} runs in {seconds:.1f} s", file=sys.stderr)
        for run, each in expected.items():
            yield run, each, wrong.pop(run)
        for run, rest in wrong.items():
            raise AssertionError(f"of {run or 'the runs'}: {rest}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="1000,100000", help="deliveries of each run")
    parser.add_argument("--kinds", help="the kinds of tampering (all)")
    parser.add_argument("--routes", help="here, from files, whole, in slices (all that can be)")
    options = parser.parse_args(arguments)
    kinds = {tampering.__name__: tampering for tampering in TAMPERINGS}
    chosen = [kinds[name] for name in options.kinds.split(",")] if options.kinds else TAMPERINGS
    failed = 0
    for deliveries in map(int, options.sizes.split(",")):
        ways = routes(deliveries, _session)
        if options.routes:
            ways = {name: ways[name] for name in options.routes.split(",") if name in ways}
        print(f"{deliveries} deliveries, judged {', '.join(ways)}")
        for run, expected, wrong in trial(chosen, deliveries, ways):
            failed += len(wrong)
            found = ", ".join(f"{count} {name}" for name, count in expected.violated.items())
            print(f"  {'WRONG' if wrong else 'right'}  {run}: {found or 'nothing'}", flush=True)
            for mistake in wrong:
                print(f"         {mistake}")
    print(f"{failed} mistakes")
    return 1 if failed else 0


def _session() -> SparkSession:
    from flexgroup.pipeline.spark.session import start

    return start(name="tampering trial").spark


if __name__ == "__main__":
    sys.exit(main())
