"""What an experiment is: the runs of each scale, the figures drawn from them, the claims tested.

Experiments are data. A protocol or a workload is added to one by naming it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import product

from flexgroup.experiments.figure import Figure
from flexgroup.experiments.findings import NETWORK, Findings
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

NO_FAULTS = Faults()

SMALL = "small"
PAPER = "paper"
SCALES = (SMALL, PAPER)

HERE = "here"
"""What stands for the network of runs on real servers."""

Judgement = tuple[bool, str]
"""Whether a claim appears in the measurements, and the figures that say so."""


Conclusion = Callable[[Findings], str]
"""Says, in a paragraph, what comes out of the measurements."""


@dataclass(frozen=True)
class Grid:
    """Every combination of these is a run."""

    stacks: tuple[str, ...]
    workloads: tuple[str, ...]
    clients: tuple[int, ...]
    seeds: tuple[int, ...]
    duration: float
    """Seconds of virtual time."""
    processes: tuple[int, ...] = (16,)
    networks: tuple[str, ...] = ("lan",)
    faults: Faults = NO_FAULTS
    casts: str = ""
    """Planned multicasts by members, as in a Scenario."""
    drain: float = 10.0
    groups: str = ""
    """The groups of replicas, as in a Scenario; the processes are then theirs."""
    links: str = ""
    rate: float = 0.0
    """Messages per second and client; 0 for clients that wait for answers."""
    entry: str = ""
    """Who multicasts for clients, as in a Scenario."""

    def real_runs(self) -> Iterator[RealRun]:
        """Return the same runs on real servers, which have one network."""
        for stack, workload, processes, clients, seed in product(
            self.stacks, self.workloads, self.processes, self.clients, self.seeds
        ):
            yield RealRun(stack, processes, clients, workload, self.duration, seed)

    def scenarios(self) -> Iterator[Scenario]:
        for stack, workload, processes, network, clients, seed in product(
            self.stacks, self.workloads, self.processes, self.networks, self.clients, self.seeds
        ):
            yield Scenario(
                stack,
                processes,
                clients,
                workload,
                network,
                self.duration,
                seed,
                drain=self.drain,
                faults=self.faults,
                casts=self.casts,
                groups=self.groups,
                links=self.links,
                rate=self.rate,
                entry=self.entry,
            )


@dataclass(frozen=True)
class RealRun:
    """What clients do to servers. Runs of the same name may differ: machines are not exact."""

    stack: str
    processes: int
    clients: int
    workload: str
    duration: float
    """Seconds that count; a quarter of that comes before."""
    seed: int

    @property
    def answers(self) -> str:
        """Who answers a client, as the protocol has it: all destinations or the last."""
        return parse_stack(self.stack).top.answers.value

    @property
    def run(self) -> str:
        digest = blake2b(repr(self).encode(), digest_size=4).hexdigest()
        words = f"real {self.stack} {self.workload} {self.processes}p {self.clients}c s{self.seed}"
        return f"{''.join(c if c.isalnum() or c in '-.' else '-' for c in words)}-{digest}"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, in our words, and how measurements are asked whether it appears."""

    name: str
    section: str
    words: str
    verdict: Callable[[Findings], Judgement]
    network: str = NETWORK
    processes: int = 0
    """The claim is about systems of at least this size."""

    def on(self, network: str, name: str) -> Claim:
        """Return the same claim where the network is another."""
        return replace(self, name=f"{self.name}, {name}", network=network)

    def judge(self, findings: Findings) -> Judgement:
        return self.verdict(findings.on(self.network))


@dataclass(frozen=True)
class Experiment:
    """What to run at each scale, and what to look for in it."""

    name: str
    title: str
    source: str
    grids: Mapping[str, Sequence[Grid]]
    """The runs of each scale."""
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    introduction: str = ""
    """What its page begins with."""
    conclusions: Mapping[str, Conclusion] = field(default_factory=dict)
    """What its page says after some figures, by their identity, given what was measured."""
    elsewhere: str = ""
    """What a table shows that something else than a simulation wrote into the directory, as
    `elsewhere.csv`; empty if none belongs to it."""
    real: Mapping[str, Sequence[RealRun]] = field(default_factory=dict)
    """The runs of each scale that are made on real servers before the simulations."""

    def scenarios(self, scale: str) -> list[Scenario]:
        """Return each run once, in the order of the grids."""
        return list(dict.fromkeys(run for grid in self.grids[scale] for run in grid.scenarios()))

    def claims_at(self, scale: str) -> list[Claim]:
        """Return those about networks and sizes that this scale runs."""
        grids = self.grids[scale]
        networks = {network for grid in grids for network in grid.networks}
        if self.real:
            networks.add(HERE)
        largest = max(size for grid in grids for size in grid.processes)
        return [
            claim
            for claim in self.claims
            if claim.network in networks and claim.processes <= largest
        ]


def joined(*parts: Mapping[str, Sequence[Grid]]) -> dict[str, list[Grid]]:
    """Return the runs of several parts at each scale."""
    return {scale: [grid for part in parts for grid in part[scale]] for scale in SCALES}


def together(
    name: str, title: str, source: str, parts: Sequence[Experiment], introduction: str = ""
) -> Experiment:
    """Return one experiment of several, with each run, figure and claim once."""
    return Experiment(
        name,
        title,
        source,
        joined(*(part.grids for part in parts)),
        tuple(dict.fromkeys(figure for part in parts for figure in part.figures)),
        tuple(dict.fromkeys(claim for part in parts for claim in part.claims)),
        introduction,
        {id_: words for part in parts for id_, words in part.conclusions.items()},
        " ".join(part.elsewhere for part in parts if part.elsewhere),
    )
