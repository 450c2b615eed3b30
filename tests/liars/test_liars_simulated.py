"""Liars in simulated runs: the same seed tells the same lies, and the trace says who they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from flexgroup.cli.main import main
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, Packet
from flexgroup.liars.named import KINDS
from flexgroup.properties.catalogue import check
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, register
from flexgroup.trace.reader import load_history, read_run
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario, run_scenario

SCENARIO = Scenario("skeen", 4, 2, "random:3", "lan", duration=0.01, rate=1000.0)


def lying(kind: str) -> Scenario:
    return replace(SCENARIO, faults=Faults(liars=(f"2:{kind}",)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_with_a_liar_is_recorded_and_replayed(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record_scenario(lying(kind), tmp_path).run
    row = read_run(tmp_path, name)
    assert row.faulty == (2,)
    assert json.loads(row.faults or "")["liars"] == [f"2:{kind}"]
    assert main(["replay", str(tmp_path)]) == 0
    assert "events replayed, agrees" in capsys.readouterr().out


def test_the_same_seed_tells_the_same_lies(tmp_path: Path) -> None:
    one, again, other = (
        record_scenario(replace(lying("forge"), seed=seed), tmp_path / name)
        for seed, name in ((1, "one"), (1, "again"), (2, "other"))
    )
    assert one == again
    assert (one.run, one.events) != (other.run, other.events)
    files = [sorted((tmp_path / name).rglob("*.parquet")) for name in ("one", "again")]
    assert all(
        first.read_bytes() == second.read_bytes() for first, second in zip(*files, strict=True)
    )


def outcomes(kind: str, directory: Path) -> dict[str, str]:
    name = record_scenario(lying(kind), directory).run
    verdicts = check(load_history(directory, read_run(directory, name)))
    return {verdict.property: verdict.outcome.value for verdict in verdicts}


def test_an_unprotected_protocol_breaks(tmp_path: Path) -> None:
    assert outcomes("skip", tmp_path)["validity"] == "violated"
    assert outcomes("forge", tmp_path)["agreement"] == "violated"
    assert outcomes("replay", tmp_path)["integrity"] == "holds"


def test_what_only_the_liar_misses_is_no_violation(tmp_path: Path) -> None:
    """Each of the twins hears of half of the proposals, and delivers next to nothing; the others
    have one from each process, and deliver all."""
    name = record_scenario(lying("twin"), tmp_path).run
    row = read_run(tmp_path, name)
    history = load_history(tmp_path, row)
    promised = row.promised
    assert all(verdict.outcome.value == "holds" for verdict in check(history, promised))
    told = replace(history, faulty=())
    assert any(verdict.outcome.value == "violated" for verdict in check(told, promised))


def test_clients_do_not_wait_for_liars() -> None:
    silent = run_scenario(replace(lying("silent"), stack="best-effort", rate=0.0))
    assert silent.answered == silent.multicasts > 100


def test_a_run_without_liars_has_the_name_that_it_always_had() -> None:
    assert SCENARIO.run != lying("skip").run
    assert replace(lying("skip"), faults=Faults()).run == SCENARIO.run


def test_the_command_names_liars(capsys: pytest.CaptureFixture[str]) -> None:
    common = ["simulate", "--protocol", "skeen", "--processes", "3", "--clients", "1"]
    common += [
        "--workload",
        "broadcast",
        "--duration",
        "0.002",
        "--drain",
        "0.01",
        "--rate",
        "2000",
    ]
    assert main([*common, "--liar", "2:silent"]) == 1
    assert "tolerates no Byzantine process" in capsys.readouterr().out
    assert main([*common, "--liar", "2:lazy"]) == 2
    assert "the kinds are twin, silent" in capsys.readouterr().err
    assert main([*common, "--twin", "3"]) == 2
    assert "process 3, which is to be a liar (twin), does not exist" in capsys.readouterr().err


@pytest.fixture
def vouching() -> Iterator[None]:
    register(Protocol("vouching", Vouching, "", ""))
    yield
    del PROTOCOLS["vouching"]


@pytest.mark.usefixtures("vouching")
def test_what_seals_cost_keeps_a_process_busy() -> None:
    """One that makes a seal for each message and has it checked at the other end."""
    free, sealed, checked = (
        one_way(f"unit:delay=1ms{prices}") for prices in ("", ",seal=2ms", ",seal=2ms,check=5ms")
    )
    assert (free, sealed, checked) == pytest.approx((0.001, 0.003, 0.008))


class Vouched(Packet):
    """A message with the seal of the member that sends it."""

    m: Message
    seal: bytes


class Vouching(Layer):
    """The least that a layer can do with seals."""

    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Vouched,)
    NEEDS_SEALS: ClassVar[bool] = True

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Vouched(m, self.seal(Vouched(m, b""))))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Vouched)
        assert self.is_sealed(sender, Vouched(packet.m, b""), packet.seal)
        self.deliver(packet.m)


def one_way(network: str) -> float:
    """How long it takes until process 1 delivers the message that process 0 multicasts."""
    scenario = Scenario("vouching", 2, 0, "broadcast", network, duration=0.1, casts="0@0s")
    return run_scenario(scenario).client_latency
