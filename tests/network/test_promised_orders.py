"""What each stack promises, kept on a real network: three servers, five processes, thousands of
messages in groups that overlap, and the recorded trace judged by the properties."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flexgroup.properties.catalogue import check
from flexgroup.trace.reader import load_history, read_runs

from .servers import Cluster
from .traffic import GROUPS, SERVER_OF, Received, coming_and_going, exchange

# Each member sends more to each of its groups than the window of a client lets through.
MESSAGES = 8_000

# That messages are delivered in a circle is a matter of chance; so many show it nearly always.
MESSAGES_IN_TOTAL_ORDER = 20_000
TOTAL_ORDER = ("RELIABLE ATOMIC", "RELIABLE ABCAST", "SKEEN", "DF", "DCC")

# Every message has its own multicast, so that the trace tells of each; and however slow the machine
# is, no server takes another for dead.
EACH_ALONE = ("--pack", "1", "--patience", "30")

BAD_NETWORK = ("--loss", "0.05", "--duplication", "0.05", "--reordering", "0.05")

# A stack that mends the network gets a bad one, where now and then everything goes well, too.
STACKS = {
    "RELIABLE": BAD_NETWORK,
    "RELIABLE FIFO": BAD_NETWORK,
    "RELIABLE CAUSAL": BAD_NETWORK,
    "RELIABLE ATOMIC": BAD_NETWORK,
    "RELIABLE ATOMIC SAFE": BAD_NETWORK,
    "RELIABLE ABCAST": BAD_NETWORK,
    "SKEEN": (),
    "DF": (),
    "DCC": (),
}


def judge(traces: Path, stack: str) -> int:
    """Every run holds what its stack promises; how many deliveries were judged."""
    deliveries = 0
    for run in read_runs(traces):
        history = load_history(traces, run)
        promised = [*run.promised, "virtual synchrony"]
        for verdict in check(history, promised):
            assert verdict.outcome.value == "holds", f"{run.run}: {verdict}"
        deliveries += len(history.deliveries.process)
        assert run.stack == stack.lower()
    return deliveries


def complete(received: Received) -> None:
    """Nothing lost, nothing twice, at any process."""
    for process in SERVER_OF:
        messages = received.by[process]
        assert len(messages) == len(set(messages))
        assert set(messages) == received.expected_of(process)


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_the_order_that_a_stack_promises_holds_and_nothing_is_lost_or_doubled(
    stack: str, tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    messages = MESSAGES_IN_TOTAL_ORDER if stack in TOTAL_ORDER else MESSAGES
    with Cluster(tmp_path, 3, "--trace", str(traces), *EACH_ALONE, *STACKS[stack]) as cluster:
        received = asyncio.run(exchange(cluster.addresses, stack, messages))
        assert cluster.stop() == [0, 0, 0]
    complete(received)
    assert judge(traces, stack) > messages


def test_messages_that_share_a_multicast_are_all_delivered_in_one_order(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    with Cluster(tmp_path, 3, "--trace", str(traces), "--patience", "30") as cluster:
        received = asyncio.run(exchange(cluster.addresses, "RELIABLE ATOMIC", 4_000))
        assert cluster.stop() == [0, 0, 0]
    complete(received)
    assert 0 < judge(traces, "RELIABLE ATOMIC") < sum(map(len, received.by.values()))
    for group, members in GROUPS.items():
        orders = [[m for m in received.by[member] if m[0] == group] for member in members]
        assert all(order == orders[0] for order in orders)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "network"),
    [
        ("RELIABLE CAUSAL", BAD_NETWORK),
        ("RELIABLE ATOMIC", ()),
        ("RELIABLE ATOMIC", BAD_NETWORK),
        ("SKEEN", ()),
        ("DCC", ()),
    ],
)
def test_what_is_promised_holds_in_every_configuration_while_members_come_and_go(
    stack: str, network: tuple[str, ...], tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    with Cluster(tmp_path, 3, "--trace", str(traces), "--patience", "30", *network) as cluster:
        sent, received = asyncio.run(coming_and_going(cluster.addresses, stack, 5))
        assert cluster.stop() == [0, 0, 0]
    for bodies in received:
        assert sorted(bodies) == sorted(sent)
    assert judge(traces, stack) > 0
