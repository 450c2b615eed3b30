"""How the claims of chapter 7 of the DCC dissertation depend on the constants of the network.

Each constant of `lan` is halved and doubled; the cost of a byte is also set to nothing and to four
times its value, about what Java's own serialization of a boxed map costs.
"""

from __future__ import annotations

from flexgroup.experiments.dcc import COMPARED, SOURCE
from flexgroup.experiments.dcc_claims import (
    CLAIMS,
    GROUPS,
    MOST,
    ONE,
    RANDOM,
    SHARES,
    SIZES,
    with_random,
)
from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid

NETWORKS = {
    "as given": "lan",
    "delay x 0.5": "lan:delay=20us",
    "delay x 2": "lan:delay=80us",
    "jitter x 0.5": "lan:jitter=5us",
    "jitter x 2": "lan:jitter=20us",
    "send x 0.5": "lan:send=7500ns",
    "send x 2": "lan:send=30us",
    "receive x 0.5": "lan:receive=7500ns",
    "receive x 2": "lan:receive=30us",
    "byte x 0": "lan:byte=0ns",
    "byte x 0.5": "lan:byte=50ns",
    "byte x 2": "lan:byte=200ns",
    "byte x 4": "lan:byte=400ns",
}


def _grids(names: tuple[str, ...], seeds: tuple[int, ...], duration: float) -> list[Grid]:
    """Return what the claims ask for, on each of these networks."""
    networks = tuple(NETWORKS[name] for name in names)
    clients = (ONE, MOST)
    mixed = tuple(with_random(groups, share) for groups in GROUPS for share in SHARES)
    return [
        Grid(COMPARED, (*RANDOM, "tpcc", *GROUPS), clients, seeds, duration, networks=networks),
        Grid(("dcc",), mixed, clients, seeds, duration, networks=networks),
        Grid(("dcc",), ("random:2", "tpcc"), (ONE,), seeds, duration, SIZES, networks),
    ]


SMALL_NAMES = ("as given", "byte x 0", "byte x 2", "byte x 4")

SENSITIVITY = Experiment(
    "dcc-sensitivity",
    "Claims of chapter 7 when a constant of the network is another",
    SOURCE,
    {
        SMALL: _grids(SMALL_NAMES, (1,), 0.05),
        PAPER: _grids(tuple(NETWORKS), (1, 2, 3), 0.1),
    },
    claims=tuple(claim.on(network, name) for claim in CLAIMS for name, network in NETWORKS.items()),
)
