"""PBFT on real servers, one of which is killed or lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.client import blocking
from flexgroup.load.local_cluster import LocalCluster
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import planned_liars
from flexgroup.wire.seals import make_seal_keys

from .servers import LAST_RESORT

NAMES = [f"server-{number}" for number in range(4)]


def servers(folder: Path, attack: str = "") -> LocalCluster:
    """Four servers with keys for seals, the last of which may be a liar."""
    make_seal_keys(folder / "keys", NAMES)
    attacks = {3: attack} if attack else {}
    options = ["--seals", str(folder / "keys"), "--trace", str(folder / "traces")]
    return LocalCluster(4, folder, options, attacks=attacks)


def exchanged(addresses: list[str], create: bool = True, first: int = 0) -> list[list[bytes]]:
    """What members at these servers receive when each of them has sent ten messages."""
    links = [blocking.connect(address, name=f"at {address}") for address in addresses]
    try:
        if create:
            links[0].create_replicated("PBFT", {"a": NAMES})
        groups = [link.join("a") for link in links]
        for number in range(first, first + 10):
            for place, group in enumerate(groups):
                group.send(b"%d.%d" % (place, number))
        count = 10 * len(groups)
        received = [[g.receive(timeout=LAST_RESORT).body for _ in range(count)] for g in groups]
        for group in groups:
            group.leave()  # closing does not wait until its name is free again
        return received
    finally:
        for link in links:
            link.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["equivocate", "forge", "silent"])
def test_all_others_agree_although_a_server_lies(tmp_path: Path, attack: str) -> None:
    with servers(tmp_path, attack) as cluster:
        received = exchanged(cluster.addresses[:3])
    assert received[0] == received[1] == received[2]
    assert len(set(received[0])) == 30
    (run,) = read_runs(tmp_path / "traces")
    assert (run.faulty, planned_liars(run.faults)) == ((3,), (f"3:{attack}",))
    history = load_history(tmp_path / "traces", run)
    verdicts = check(history, run.promised)
    assert Outcome.VIOLATED not in [verdict.outcome for verdict in verdicts], verdicts


@pytest.mark.slow
def test_the_group_goes_on_without_the_primary(tmp_path: Path) -> None:
    with servers(tmp_path) as cluster:
        exchanged(cluster.addresses)
        cluster.servers[0].process.kill()
        received = exchanged(cluster.addresses[1:], create=False, first=10)
    assert received[0] == received[1] == received[2]
    assert len(set(received[0])) == 30
