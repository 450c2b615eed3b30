"""Virtual synchrony in small systems, every schedule: views at any moment, and a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.core.codec import Codec
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.reader import load_history, read_run
from flexgroup.trace.replay import replay
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.minimise import minimise
from flexgroup.worlds.explorer.schedule import write_trace
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

SYNCHRONY = SearchOptions(properties=("virtual synchrony",))
TWO_VIEWS = Scope(2, (PlannedCast(0, (0, 1)),), views=((0, 1), (0, 1)))
RACE = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))), views=((0, 1),))
SENDER_CRASHES = Scope(
    3, (PlannedCast(2, (0, 1)),), fifo=False, views=((0, 1),), bounds=Bounds(crashes=1)
)


def test_without_it_a_message_falls_into_different_views(tmp_path: Path) -> None:
    """The checks of traces say the same of it, and the code does it again."""
    plan = parse_stack("best-effort")
    (violation,) = explore(plan, TWO_VIEWS, SYNCHRONY).violations
    smallest = minimise(plan, TWO_VIEWS, violation, SYNCHRONY)
    write_trace(plan, smallest.scope, smallest.violation.run, tmp_path, "found")
    run = read_run(tmp_path, "found")
    (verdict,) = check(load_history(tmp_path, run), ["virtual synchrony"])
    assert verdict.outcome == Outcome.VIOLATED
    again = replay(tmp_path, run, lambda process: plan.build(process, 2), Codec(plan.layers))
    assert again.divergence is None


def test_with_it_none_does() -> None:
    outcome = explore(parse_stack("best-effort virtual-synchrony"), TWO_VIEWS)
    assert outcome.exhausted
    assert not outcome.violations


def test_the_sender_may_crash_at_any_moment() -> None:
    outcome = explore(parse_stack("virtual-synchrony"), SENDER_CRASHES)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0


@pytest.mark.parametrize("below", ["fifo", "causal", "causal-rst", "abcast", "skeen"])
def test_it_keeps_every_order(below: str) -> None:
    outcome = explore(parse_stack(f"{below} virtual-synchrony"), RACE)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0


def test_the_command_knows_views(capsys: pytest.CaptureFixture[str]) -> None:
    system = ["--processes", "2", "--message", "0:0,1", "--view", "0,1", "--view", "0,1"]
    assert main(["explore", "--protocol", "virtual-synchrony", *system]) == 0
    assert "1 messages to {0,1}, views {0,1} {0,1}" in capsys.readouterr().out
    assert main(["explore", "--protocol", "virtual-synchrony", *system, "--view", "0;1"]) == 2
    assert "--view 0;1: write its members as 0,1,2" in capsys.readouterr().err
