"""Addresses, the runs that they stand for, and scripts and traces that become addresses."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.lab.address import Address, read_address
from flexgroup.lab.gallery import FIGURES, TRIALS, GuidedRun
from flexgroup.lab.opened import open_script
from flexgroup.lab.page import run_page
from flexgroup.lab.recorded import script_of_trace
from flexgroup.lab.saved import picture_of, script_of
from flexgroup.lab.states import attributes
from flexgroup.lab.stepping import Standing, delivered_by, stand_at
from flexgroup.properties.verdict import Outcome
from flexgroup.testing.script import check as check_script
from flexgroup.worlds.explorer.schedule import stage

SCRIPTS = Path(__file__).parents[1] / "scripts"

SYSTEMS = [
    "stack=dcc-published/any&processes=4&message=0,2 0,2 1,3 0,1,2,3",
    "stack=skeen&processes=3&message=0,1 1,2 0:0,2&channels=reordering",
    "stack=reliable&processes=3&message=0:0,1,2 1:0,2&losses=2&duplicates=1&timers=3&crashes=1",
    "stack=leader paxos&processes=3&replicas=3&message=0:0,1,2&crash=0&suspect=1:0",
    "stack=leader paxos&processes=3&replicas=3&message=0:0,1,2&crashes=1&restarts=1",
    "stack=virtual-synchrony&processes=3&message=2:0,1,2&view=0,1,2 0,1",
    "stack=skeen&processes=3&message=0,1 0,1,2&liar=2:equivocate",
    "stack=skeen&processes=3&message=0,1 0,1,2&twin=1",
    "stack=causal&processes=2&message=0:0,1 0:1&group=0,1&any-order=yes",
]


def walk(query: str, seed: int, steps: int = 25) -> Standing:
    """Take random moves, each from the address of the run before."""
    random = Random(seed)
    standing = stand_at(read_address(query))
    for _ in range(steps):
        if not standing.moves:
            break
        following = standing.address.after(random.choice(standing.moves).step)
        standing = stand_at(read_address(following.query))
    return standing


@pytest.mark.parametrize("query", SYSTEMS)
@pytest.mark.parametrize("seed", range(3))
def test_an_address_leads_where_its_moves_lead_on_a_bench(query: str, seed: int) -> None:
    """The search that lists the moves and the bench that draws them agree on what was delivered."""
    standing = walk(query, seed)
    address = read_address(standing.address.query)
    assert address == standing.address
    bench = stage(address.plan, address.scope, address.moves)
    for state in standing.processes[: address.scope.processes]:
        if state.process not in dict(address.scope.liars):
            assert [m.id for m in bench.delivered[state.process]] == delivered_by(state.now)
        assert (state.process in bench.crashed) == state.now.crashed


@given(st.integers(0, 10), st.integers(0, 10))
def test_going_back_and_on_again_is_the_same_run(place: int, other: int) -> None:
    whole = TRIALS[0].address.whole
    there = whole.at(place).at(other)
    assert there.whole == whole
    assert len(there.moves) == other
    assert there.after(there.ahead[0]) == whole.at(other + 1)


def test_another_move_is_a_branch_that_leaves_the_rest() -> None:
    address = TRIALS[0].address.at(4)
    others = [move.step for move in stand_at(address).moves if move.step != address.ahead[0]]
    branch = address.after(others[0])
    assert branch.moves == (*address.moves, others[0])
    assert branch.ahead == ()


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_every_trial_breaks_its_property_at_its_last_step_and_not_before(trial: GuidedRun) -> None:
    whole = trial.address.whole
    for place, violated in ((len(whole.moves) - 1, False), (len(whole.moves), True)):
        judged = {each.name: each for each in stand_at(whole.at(place)).judged}
        assert (judged[trial.breaks].outcome is Outcome.VIOLATED) is violated
    assert judged[trial.breaks].since == len(whole.moves)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_figure_goes_to_its_end_and_breaks_nothing(figure: GuidedRun) -> None:
    standing = stand_at(figure.address.whole)
    assert all(judged.outcome is Outcome.HOLDS for judged in standing.judged)
    assert standing.ended


def test_explanations_name_messages_as_the_picture_does() -> None:
    standing = stand_at(TRIALS[0].address.whole)
    told = standing.judged[0].explanation
    assert "let b = message 5.0 to {0,2}, c = message 6.0 to {0,3}, d = message 7.0" in told
    assert "d < b, because process 2 delivered d" in told


def test_what_a_layer_holds_is_told_by_the_names_of_messages() -> None:
    query = "stack=skeen&processes=2&message=0,1 0,1&moves=m2.a,m3.b,d3.0,d2.0,d0.0"
    standing = stand_at(read_address(query))
    (layer,) = standing.processes[0].now.host.stack.layers
    told = dict(attributes(layer, standing.letters))
    assert list(told) == ["clock", "undecided", "final", "pending"]
    assert told["clock"] == "2"
    assert told["undecided"].startswith("b: Undecided(m b, local (1,0), received 1, highest (1,0))")
    assert told["final"] == "-"
    assert told["pending"] == "(1,0), (2,0)"


@pytest.mark.parametrize(
    "name",
    [
        "dcc_published_cycle",
        "df_convoy",
        "heartbeat_crash",
        "paxos_follower_restarts",
        "paxos_what_was_delivered",
        "reliable_duplicates",
        "skeen_equivocation",
        "virtual_synchrony_next_view",
        "white_box_piled_up",
        "white_box_quorum",
    ],
)
def test_a_golden_script_opens_and_what_is_saved_of_it_is_one(name: str) -> None:
    address = open_script((SCRIPTS / f"{name}.txt").read_text()).whole
    saved = script_of(stand_at(address))
    assert check_script(saved) == []
    assert open_script(saved).whole == address


def test_what_a_process_that_is_down_loses_is_all_or_nothing() -> None:
    text = (
        "stack leader paxos over fifo channels, processes 3, replicas 3\ncrash 1\n"
        "cast 0 a to=0,1,2\ndrop ->1\ncast 0 b to=0,1,2\nrecover 1\n"
    )
    with pytest.raises(UsageError, match="a part of what is in flight to 1 is lost"):
        open_script(text)


def test_every_golden_script_opens() -> None:
    """What no scope lets happen is told of: losses below stacks that rely on channels, and trust in
    processes that were suspected wrongly."""
    beyond = {}
    for script in sorted(SCRIPTS.glob("*.txt")):
        standing = stand_at(open_script(script.read_text()).whole)
        if standing.run.beyond:
            moves = standing.address.moves
            beyond[script.stem] = {moves[place - 1].kind for place in standing.run.beyond}
    assert set().union(*beyond.values()) == {"lost", "suspect", "trust"}
    assert beyond["paxos_leader_restarts"] == {"lost"}
    assert beyond["leader_errs"] == {"trust"}


BEYOND = [
    "pbft_null_request",
    "paxos_leader_restarts",
    "leader_names_the_lowest",
    "white_box_ballots",
]


@pytest.mark.parametrize("name", BEYOND)
def test_what_goes_beyond_the_scope_is_told_saved_and_gone_on_from(name: str) -> None:
    standing = stand_at(open_script((SCRIPTS / f"{name}.txt").read_text()).whole)
    page = run_page(standing, "token")
    assert "This run goes beyond its scope" in page
    assert check_script(script_of(standing)) == []
    bench = stage(standing.plan, standing.address.scope, standing.address.moves)
    for state in standing.processes:
        if state.process < standing.address.scope.processes:
            assert [m.id for m in bench.delivered[state.process]] == delivered_by(state.now)
    for step in standing.run.beyond:
        offered = stand_at(standing.address.at(step - 1)).moves
        assert standing.address.moves[step - 1] not in [move.step for move in offered]


def test_a_packet_that_is_not_there_cannot_be_lost() -> None:
    with pytest.raises(UsageError, match="step 2, 'drop 1->0', cannot happen there"):
        stand_at(read_address("stack=skeen&processes=2&message=0:0,1&moves=m0.a,l1.0"))


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_the_trace_of_a_counterexample_opens_as_the_same_run(
    trial: GuidedRun, tmp_path: Path
) -> None:
    from flexgroup.worlds.explorer.schedule import write_trace

    whole = trial.address.whole
    write_trace(whole.plan, whole.scope, whole.moves, tmp_path, "found")
    opened = open_script(script_of_trace(tmp_path)).whole
    assert opened.moves == whole.moves
    assert opened.scope.casts == whole.scope.casts


def test_a_small_simulation_opens(tmp_path: Path) -> None:
    scenario = "simulate --protocol skeen --processes 3 --clients 2 --workload random:2".split()
    assert main([*scenario, *"--duration 0.0002 --network lan --out".split(), str(tmp_path)]) == 0
    standing = stand_at(open_script(script_of_trace(tmp_path)).whole)
    assert standing.ended
    assert sum(len(delivered_by(state.now)) for state in standing.processes) > 0


def test_a_trace_set_with_several_runs_wants_to_know_which(tmp_path: Path) -> None:
    from flexgroup.worlds.explorer.schedule import write_trace

    whole = TRIALS[0].address.whole
    for name in ("one", "two"):
        write_trace(whole.plan, whole.scope, whole.moves, tmp_path, name)
    with pytest.raises(UsageError, match="Give --run and one of these: one, two"):
        script_of_trace(tmp_path)
    assert open_script(script_of_trace(tmp_path, "two")).whole.moves == whole.moves


def test_a_run_of_no_steps_has_a_picture_too() -> None:
    beginning = Address(TRIALS[0].address.stack, TRIALS[0].address.scope)
    assert picture_of(stand_at(beginning)).startswith("<svg")


def test_a_message_name_and_a_timer_name_survive_an_address() -> None:
    """Names of timers are a layer's own business, and may hold what separates moves."""
    from flexgroup.worlds.explorer.schedule import ScheduleStep

    address = TRIALS[0].address.at(0)
    odd = Address(address.stack, address.scope, (ScheduleStep("timer", 1, name="a,b.c &=é%2C"),))
    assert read_address(odd.query) == odd
