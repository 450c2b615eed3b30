"""Every schedule of small systems in which somebody lies."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.liars.named import KINDS
from flexgroup.properties.catalogue import check as judge
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.script import check, rewrite
from flexgroup.trace.reader import load_history, read_run
from flexgroup.worlds.explorer.explorer import Exploration, SearchLimits, explore
from flexgroup.worlds.explorer.minimise import smaller_scopes
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.schedule import script, write_trace
from flexgroup.worlds.explorer.scope import Bounds, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.explorer.snapshot import read_snapshot, write_snapshot

SKEEN = parse_stack("skeen")

ONE_MESSAGE = {
    "twin": (871, 1805, set()),
    "silent": (38, 162, {"validity"}),
    "slow": (426, 486, set()),
    "skip": (526, 891, {"validity", "agreement"}),
    "reorder": (317, 567, {"validity"}),
    "forge": (564, 1134, {"validity"}),
    "equivocate": (564, 1134, {"validity", "agreement"}),
    "replay": (738, 1647, {"validity", "agreement"}),
    "impersonate": (
        8112,
        26698,
        {"conduct", "integrity", "acyclic order", "agreement", "validity"},
    ),
}
"""For one message to three processes the last of which lies: how many states the reduced and the
full search have, and what can be broken of what Skeen's algorithm promises."""


def lying(kind: str, *messages: tuple[int, ...]) -> Scope:
    timers = 1 if kind == "slow" else 0
    scope = from_clients(3, *messages)
    return replace(scope, liars=((2, kind),), bounds=Bounds(timers=timers))


def whole(scope: Scope, reduce: bool) -> ExplorationResult:
    options = SearchOptions(reduce=reduce)
    result = Exploration(SKEEN, scope, options, keep_going=True).run()
    assert result.exhausted
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_liar_breaks_of_an_algorithm_that_trusts_everybody(kind: str) -> None:
    """The reduced search loses no end, since what a liar does is an event of one process, as what
    any other does: the proof of docs/explorer.md speaks of it, too."""
    scope = lying(kind, (0, 1, 2))
    reduced, full = whole(scope, reduce=True), whole(scope, reduce=False)
    names = [{violation.name for violation in result.violations} for result in (reduced, full)]
    states = reduced.states, full.states
    assert (*states, names[0]) == ONE_MESSAGE[kind]
    assert names[0] == names[1]
    assert (reduced.terminals, reduced.terminal_orders) == (full.terminals, full.terminal_orders)


@pytest.mark.parametrize("kind", ["twin", "forge", "replay"])
def test_the_reduced_search_has_all_ends_of_two_messages(kind: str) -> None:
    scope = lying(kind, (0, 2), (0, 2))
    reduced, full = whole(scope, reduce=True), whole(scope, reduce=False)
    assert (reduced.terminals, reduced.terminal_orders) == (full.terminals, full.terminal_orders)
    assert reduced.states < full.states


@pytest.mark.parametrize("kind", ["twin", "impersonate"])
def test_clients_that_multicast_alike_are_one_among_liars_as_well(kind: str) -> None:
    """All states but the first have a mirror, in which the two clients have changed places."""
    scope = lying(kind, (0, 2), (0, 2))
    one, all_states = (
        Exploration(SKEEN, scope, SearchOptions(reduce=False, symmetry=symmetry), keep_going=True)
        for symmetry in (True, False)
    )
    found, others = one.run(), all_states.run()
    assert others.states == 2 * found.states - 1
    assert others.terminals == 2 * found.terminals
    assert {v.name for v in found.violations} == {v.name for v in others.violations}


def test_an_equivocating_destination_breaks_the_order_of_the_others() -> None:
    result = explore(SKEEN, lying("equivocate", (0, 1, 2), (0, 1, 2)))
    assert [violation.name for violation in result.violations] == ["prefix order"]


@pytest.mark.parametrize("twin", [0, 2])
def test_twins_break_a_log_that_tolerates_crashes(twin: int) -> None:
    """One wrong suspicion leads to a second leader, whose majority meets that of the first in the
    twin alone. Without twins it may be suspected as it likes."""
    scope = replace(
        from_clients(3, (0, 1, 2), (0, 1, 2)),
        replicas=replicas_of_sizes([3]),
        suspecting=((1, 0),),
        bounds=Bounds(suspicions=1),
    )
    options = SearchOptions(properties=("prefix order",))
    paxos = parse_stack("leader paxos")
    broken = RandomWalks(paxos, replace(scope, liars=((twin, "twin"),)), 4000, options=options)
    assert [violation.name for violation in broken.take().violations] == ["prefix order"]
    assert RandomWalks(paxos, scope, 500, options=options).take().violations == ()


@pytest.mark.parametrize("stack", ["log dcc-bft/sealed", "best-effort log dcc-bft/sealed"])
def test_a_liar_seals_again_what_passes_by_the_layers_below_its_own(stack: str) -> None:
    """Votes go round the log, and are of the layer above it all the same."""
    scope = replace(
        from_clients(2, (0, 1)), replicas=replicas_of_sizes([1, 1]), liars=((0, "forge"),)
    )
    (found,) = explore(parse_stack(stack), scope).violations
    assert found.name == "integrity"


def test_without_liars_nothing_is_broken() -> None:
    result = explore(SKEEN, from_clients(3, (0, 1, 2)))
    assert (result.states, result.violations) == (299, ())


def test_a_counterexample_is_a_script_that_names_the_liar() -> None:
    scope = lying("equivocate", (0, 1, 2))
    (violation,) = explore(SKEEN, scope, SearchOptions(properties=("agreement",))).violations
    text = script("skeen", scope, violation.run)
    assert "processes 3, liars 2:equivocate" in text
    assert "choose 2 " in text
    answered = rewrite(text)
    assert check(answered) == []
    assert "validity: violated, a never reaches process 0" in answered or (
        "validity: violated, a never reaches process 1" in answered
    )


def test_the_trace_of_a_counterexample_says_who_lied_and_is_condemned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope = lying("equivocate", (0, 1, 2), (0, 1, 2))
    (violation,) = explore(SKEEN, scope, SearchOptions(properties=("prefix order",))).violations
    write_trace(SKEEN, scope, violation.run, tmp_path, "found")
    row = read_run(tmp_path, "found")
    assert (row.faulty, row.faults) == ((2,), '{"liars":["2:equivocate"]}')
    (verdict,) = judge(load_history(tmp_path, row), ["prefix order"])
    assert verdict.outcome.value == "violated"
    assert main(["replay", str(tmp_path)]) == 0
    assert "agrees" in capsys.readouterr().out


def test_nothing_is_expected_of_liars() -> None:
    """That the silent one delivers or not, and in which order, makes no difference."""
    plan = parse_stack("best-effort")
    for kind in ("silent", "skip", "reorder"):
        result = explore(plan, lying(kind, (0, 1, 2), (0, 1, 2)))
        assert (result.exhausted, result.violations) == (True, ())


def test_a_liar_may_be_left_out_of_a_counterexample_and_nobody_else_takes_its_number() -> None:
    scope = lying("skip", (0, 1, 2), (1, 2))
    smaller = list(smaller_scopes(scope))
    assert replace(scope, liars=()) in smaller
    assert {dict(other.liars).get(other.processes - 1) for other in smaller} == {"skip", None}


def test_a_search_with_liars_is_stopped_and_resumed(tmp_path: Path) -> None:
    scope = lying("twin", (0, 1, 2))
    limits = SearchLimits(states=300)
    keep = partial(write_snapshot, tmp_path / "saved")
    Exploration(SKEEN, scope, limits=limits, keep=keep).run()
    snapshot = read_snapshot(tmp_path / "saved")
    assert snapshot.scope == scope
    resumed = Exploration(SKEEN, scope).run(snapshot)
    assert (resumed.states, resumed.exhausted) == (871, True)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--all-destinations", "3x1", "--twin", "0"], "leave out --all-destinations"),
        (["--servers", "2", "--liar", "0:skip"], "--liar is not for --servers"),
    ],
)
def test_liars_are_not_silently_left_out(
    options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--protocol", "skeen", *options]) == 2
    assert complaint in capsys.readouterr().err


def test_a_scope_with_a_liar_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="process 7, which is to be a liar"):
        replace(lying("skip", (0, 1)), liars=((7, "skip"),))
