"""Clients that nobody answers any more, or whom a process that crashed let in, are told of."""

from __future__ import annotations

import pytest

from flexgroup.runs.remarks import lost_on_the_way_in, without
from flexgroup.runs.simulated import SimulatedRun, simulate

CRASH = {"crash": "3@50ms", "detection": "10ms", "duration": 0.2}


def struck(protocol: str, **more: object) -> SimulatedRun:
    chosen = {"processes": 8, "clients": 8, "workload": "random:3", **CRASH, **more}
    return simulate(protocol, **chosen)  # type: ignore[arg-type]


def test_a_closed_loop_falls_silent_and_says_so() -> None:
    run = struck("reliable")
    assert len(run.outcome.silent) == 8
    assert {silent.crashed for silent in run.outcome.silent} == {(3,)}
    (note,) = run.notes
    assert note.startswith("8 of 8 clients fell silent: their last message went to or through proc")
    assert note in str(run)
    assert run.to_json()["notes"] == [note]


def test_an_open_loop_goes_on_and_tells_of_what_nobody_multicast() -> None:
    """Only members multicast with this protocol, so a client hands its messages to one of them."""
    run = struck("reliable", rate=100.0)
    assert not run.outcome.silent
    assert run.outcome.turned_away > 0
    count = run.outcome.turned_away
    assert run.notes == (
        f"{count} messages were never multicast: clients handed them to a process that had crashed",
    )
    assert run.metrics["messages"] == run.outcome.multicasts - count
    assert run.latencies["multicast"].max() > 0.15


def test_without_a_crash_nobody_falls_silent() -> None:
    run = struck("reliable", crash=())
    assert not run.outcome.silent
    assert run.notes == ()


@pytest.mark.parametrize("seed", [1, 3])
def test_what_entered_through_a_process_that_crashed_is_why_validity_looks_violated(
    seed: int,
) -> None:
    run = struck("vcube-atomic", seed=seed)
    assert run.history is not None
    lost = lost_on_the_way_in(run.history)
    violated = run.verdicts.query("outcome == 'violated'").index.tolist()
    assert bool(violated) == bool(len(lost))
    if violated:
        assert violated == ["validity"]
        assert run.notes[0].startswith(f"a message ({run.checked[1].explanation.split()[4]}) ent")
        assert run.notes[0].endswith("Without it, validity holds")


def test_both_kinds_of_runs_are_there() -> None:
    """So that the test above says something."""
    lost = [len(lost_on_the_way_in(struck("vcube-atomic", seed=s).history)) for s in (1, 3)]  # type: ignore[arg-type]
    assert sorted(map(bool, lost)) == [False, True], lost


def test_a_violation_for_another_reason_is_not_explained_away() -> None:
    """Nobody is told of the crash, so others wait in vain as well."""
    run = struck("vcube-atomic", seed=3, detection=None)
    assert any("add --detection 10ms" in note for note in run.notes)
    assert not any("entered through" in note for note in run.notes)


def test_a_history_without_some_messages_keeps_all_others() -> None:
    history = struck("reliable").history
    assert history is not None
    gone = history.multicasts.message[::2]
    kept = without(history, gone).multicasts
    assert set(kept.message) == set(history.multicasts.message) - set(gone)
    for place, message in enumerate(kept.message.tolist()):
        before = history.multicasts.message.tolist().index(message)
        assert kept.targets[kept.offsets[place] : kept.offsets[place + 1]].tolist() == (
            history.multicasts.targets[
                history.multicasts.offsets[before] : history.multicasts.offsets[before + 1]
            ].tolist()
        )
