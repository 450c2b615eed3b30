"""What servers in virtual time record is judged, and can be written, as any trace."""

from __future__ import annotations

from pathlib import Path

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.validate.report import validate
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

KILLED = """
seed 1
stack RELIABLE ATOMIC
servers 3
client ann 0 A B
client bob 1 A
client eve 2 B
0.100 send ann A B
0.200 send bob A
0.300 send eve B
{fault}
0.700 send ann A B
3.000 send eve B
"""


def executed(text: str) -> Execution:
    execution = Execution(parse_schedule(text))
    execution.run()
    return execution


def test_runs_are_those_of_a_cluster_and_nothing_of_an_undisturbed_one_is_lost() -> None:
    rows = [run.row() for run in executed(KILLED.format(fault="")).recordings.runs]
    assert {(row.world, row.stack, row.processes) for row in rows} == {
        ("network", "reliable atomic", 3)
    }
    assert all(row.complete and row.lost is None for row in rows)


def test_the_last_events_of_a_server_that_is_killed_are_lost() -> None:
    rows = [run.row() for run in executed(KILLED.format(fault="0.5 kill 1")).recordings.runs]
    assert [row.lost for row in rows if not row.complete] == ["[1]"]


def test_a_disk_that_fails_takes_the_trace_with_it_and_nothing_else() -> None:
    execution = executed(KILLED.format(fault="0.5 disk 1 fails"))
    assert problems(execution) == []
    last = execution.recordings.runs[-1].row()
    assert (last.complete, last.lost) == (False, "[1]")


def test_a_disk_that_is_stuck_for_a_while_loses_nothing() -> None:
    execution = executed(KILLED.format(fault="0.5 disk 1 sticks\n2.0 heal"))
    assert problems(execution) == []
    assert all(run.row().complete for run in execution.recordings.runs)


def test_a_trace_set_of_an_execution_is_valid_and_has_the_same_verdicts(tmp_path: Path) -> None:
    execution = executed(KILLED.format(fault="0.5 kill 1\n2.0 restart 1"))
    execution.recordings.write(tmp_path)
    assert validate(tmp_path).problems == []
    rows = read_runs(tmp_path)
    assert [row.run for row in rows] == sorted(r.row().run for r in execution.recordings.runs)
    for row in rows:
        verdicts = check(load_history(tmp_path, row), row.promises)
        assert not [v for v in verdicts if v.outcome is Outcome.VIOLATED]
