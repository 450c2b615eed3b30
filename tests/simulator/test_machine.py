"""Processes that share the processors of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.worlds.simulator.networks import parse_network
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario, run_scenario

FREE = "read=0s,write=0s,send=0s,receive=0s,byte=0s,deliver=0s,client=0s,frame=0s"


def throughput(network: str, clients: int = 8, processes: int = 4) -> float:
    scenario = Scenario(
        "best-effort", processes, clients, "random:1", network, 0.2, 1, entry="first"
    )
    return run_scenario(scenario).client_throughput


@pytest.mark.parametrize(("cores", "most"), [(1, 1_000), (2, 2_000), (4, 4_000)])
def test_no_more_is_done_than_the_processors_have_time_for(cores: int, most: int) -> None:
    found = throughput(f"machine:cores={cores},delay=1us,cast=1ms,{FREE}", clients=32)
    assert 0.8 * most < found <= 1.02 * most


def test_a_process_has_one_processor_at_a_time() -> None:
    network = f"machine:cores=4,delay=1us,cast=1ms,{FREE}"
    assert throughput(network, processes=1) <= 1_020


def test_the_background_takes_its_share() -> None:
    network = f"machine:cores=1,delay=1us,cast=1ms,{FREE}"
    assert throughput(f"{network},background=0.5") == pytest.approx(
        throughput(network) / 2, rel=0.05
    )


def test_what_has_arrived_together_shares_a_frame() -> None:
    """A frame is read in a millisecond, however many messages are in it."""
    network = f"machine:cores=1,delay=1us,cast=0s,{FREE},read=1ms".replace("read=0s,", "")
    alone, together = (throughput(network, clients, processes=1) for clients in (1, 20))
    assert together > 5 * alone


@pytest.mark.parametrize("stack", ["skeen", "df", "dcc", "dcc/rv"])
def test_traces_of_a_machine_keep_all_promises(stack: str, tmp_path: Path) -> None:
    record_scenario(Scenario(stack, 4, 6, "random:2", "machine", 0.05, 3, entry="first"), tmp_path)
    (run,) = read_runs(tmp_path)
    assert run.complete
    verdicts = check(load_history(tmp_path, run), run.promised)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.HOLDS}


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("lan:cores=2", "only processes of a machine share processors"),
        ("machine:cores=0", "cores is a number of processors, not '0'"),
        ("machine:background=0.95", "background is a share"),
        ("machine:contention=no", "a machine has processors, and they can be busy"),
    ],
)
def test_machines_that_cannot_be_are_refused(network: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_network(network)


def test_only_the_first_destination_can_multicast_for_a_client() -> None:
    with pytest.raises(UsageError, match="entry is 'last'; write 'first'"):
        run_scenario(Scenario("skeen", 4, 2, "random:2", "machine", 0.05, entry="last"))
