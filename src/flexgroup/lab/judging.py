"""Whether a recorded run kept its promises, found out in a process of its own: a large run takes
much of a core for a while, and pages go on meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.lab.own_process import say, started, told
from flexgroup.lab.window import MOST_CHOSEN, Place
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.reader import load_history, read_runs


@dataclass(frozen=True)
class JudgedProperty:
    """What the checks of traces say about one property of a run."""

    name: str
    outcome: Outcome
    explanation: str
    named: tuple[Place, ...]
    messages: tuple[str, ...]
    """The events that show a violation, and the messages that these are about."""


Judging = list[JudgedProperty]


def judge(directory: Path, run: str) -> Judging:
    """Check a run, and wait for the result."""
    with started(__name__) as process:
        wanted = json.dumps({"directory": str(directory), "run": run})
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{wanted}\n")
        process.stdin.flush()
        line = process.stdout.readline()
    found: dict[str, Any] = json.loads(line) if line else {"error": "the check ended early"}
    if "error" in found:
        raise UsageError(found["error"])
    return [_read(verdict) for verdict in found["verdicts"]]


def _read(verdict: dict[str, Any]) -> JudgedProperty:
    return JudgedProperty(
        verdict["property"],
        Outcome(verdict["outcome"]),
        verdict["explanation"],
        tuple((process, step) for process, step in verdict["named"]),
        tuple(verdict["messages"]),
    )


def _written(verdict: Verdict) -> dict[str, object]:
    witness = (verdict.witness or ())[:MOST_CHOSEN]
    told_of: list[Step] = [step for step in witness if step.message >= 0]
    return {
        "property": verdict.property,
        "outcome": verdict.outcome.value,
        "explanation": verdict.explanation,
        "named": [(step.process, step.step) for step in witness],
        "messages": list(dict.fromkeys(str(step.to_json()["message"]) for step in told_of)),
    }


def main() -> None:
    wanted = told()
    try:
        directory = Path(wanted["directory"])
        run = {run.run: run for run in read_runs(directory)}[wanted["run"]]
        verdicts = check(load_history(directory, run), run.promised)
        say(verdicts=[_written(verdict) for verdict in verdicts])
    except FlexGroupError as error:
        say(error=str(error))
    except MemoryError:
        say(error="there is not enough memory here to check this run; flexgroup verify can")


if __name__ == "__main__":
    main()
