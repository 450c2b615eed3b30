"""Metrics of a server for Prometheus: most are read from the server's state when asked for.

What would be forgotten with a connection or a configuration that ends is added up here, so that
counters only grow. Nothing is done for a single message or frame.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flexgroup import __version__
from flexgroup.membership.configuration import Server
from flexgroup.server.clients.session import Session
from flexgroup.server.connection import Acceptor, Connection
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.server.hosting.replica import Replica
from flexgroup.server.peers.links import PeerLink, PeerLinks
from flexgroup.server.settings import ServerIdentity

CHANGE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Observed:
    """The parts of a server that metrics and inspections are read from."""

    identity: ServerIdentity
    deployment: Deployment
    sessions: dict[int, Session]
    links: PeerLinks
    acceptor: Acceptor
    patience_with: Callable[[int], float]
    """How long another server may say nothing before it is suspected."""
    replicas: dict[int, Replica]
    """The replicas at this server by the number of their domain."""

    @property
    def others(self) -> list[Server]:
        """The other servers of the configuration."""
        servers = self.deployment.configuration.servers
        return [server for server in servers if server.address != self.identity.address]


Totals = Counter[tuple[str, Labels]]
"""Counters by name and labels: what has ended, or what is there now."""

PEERS: dict[type, str] = {Session: "client", PeerLink: "server"}
"""What is at the other end of a connection, by who takes its frames."""


def add_connection(totals: Totals, connection: Connection) -> None:
    peer = (PEERS.get(type(connection.handler), "other"),)
    totals["frames_received", peer] += connection.frames_in
    totals["frames_sent", peer] += connection.frames_out
    totals["bytes_received", peer] += connection.bytes_in
    totals["bytes_sent", peer] += connection.bytes_out


def add_domain(totals: Totals, hosted: HostedDomain) -> None:
    stack = hosted.stack
    totals["multicasts", (stack,)] += hosted.messages_cast
    totals["deliveries", (stack,)] += hosted.messages_delivered
    totals["packets_sent", (stack,)] += hosted.domain.packets_sent
    totals["packets_received", (stack,)] += hosted.domain.packets_received
    for layer, sent in hosted.sent_by_layer():
        totals["layer_packets_sent", (stack, layer)] += sent


# By name: what it says to people, and its labels.
COUNTERS: dict[str, tuple[str, Labels]] = {
    "frames_received": ("Frames that came", ("peer",)),
    "frames_sent": ("Frames sent", ("peer",)),
    "bytes_received": ("Bytes that came", ("peer",)),
    "bytes_sent": ("Bytes sent, in frames", ("peer",)),
    "multicasts": ("Messages multicast by processes connected here", ("stack",)),
    "deliveries": ("Messages delivered at this server", ("stack",)),
    "packets_sent": ("Packets of stacks to other servers", ("stack",)),
    "packets_received": ("Packets of stacks from other servers", ("stack",)),
    "layer_packets_sent": ("Packets that a layer sent", ("stack", "layer")),
}


class Metrics(Collector):
    """The metrics of one server; each has a registry of its own."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._ended: Totals = Counter()
        self._froze_at: float | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        self._changes = Histogram(
            "flexgroup_change_seconds",
            "From freezing the stacks to the next configuration",
            buckets=CHANGE_SECONDS,
            registry=self._registry,
        )

    def text(self) -> bytes:
        """The page that a collector of metrics reads."""
        return generate_latest(self._registry)

    # What the server tells.

    def connection_ended(self, connection: Connection) -> None:
        add_connection(self._ended, connection)

    def froze(self) -> None:
        if self._froze_at is None:
            self._froze_at = time.monotonic()

    def installed(self, ended: Iterable[HostedDomain]) -> None:
        """A configuration, in place of one that had these domains."""
        for hosted in ended:
            add_domain(self._ended, hosted)
        if self._froze_at is not None:
            self._changes.observe(time.monotonic() - self._froze_at)
            self._froze_at = None

    # What is read when metrics, or a report, are asked for.

    def totals(self) -> dict[str, float]:
        """The sums since the server began, over all stacks and connections."""
        sums: Counter[str] = Counter()
        for (name, _), count in self._totals().items():
            sums[name] += count
        return {**{name: sums[name] for name in COUNTERS}, "cpu_seconds": time.process_time()}

    def _totals(self) -> Totals:
        totals = self._ended.copy()
        for connection in self._observed.acceptor.connections:
            add_connection(totals, connection)
        for hosted in self._observed.deployment.domains:
            add_domain(totals, hosted)
        return totals

    def collect(self) -> Iterator[Metric]:
        totals = self._totals()
        for name, (text, labels) in COUNTERS.items():
            counter = CounterMetricFamily(f"flexgroup_{name}", text, labels=labels)
            for (counted, values), count in sorted(totals.items()):
                if counted == name:
                    counter.add_metric(values, count)
            yield counter
        refused = CounterMetricFamily("flexgroup_refused", "Refused, by reason", labels=["reason"])
        for reason, count in self._observed.acceptor.refusals.items():
            refused.add_metric([reason], count)
        yield refused
        yield from self._state()

    def _state(self) -> Iterator[Metric]:
        observed = self._observed
        deployment = observed.deployment
        configuration = deployment.configuration
        info = GaugeMetricFamily(
            "flexgroup_info", "Always 1", labels=["server", "cluster", "version"]
        )
        info.add_metric([observed.identity.name, observed.identity.cluster, __version__], 1)
        yield info
        queues = [len(seat.queue) for client in observed.sessions.values()
                  for seat in client.seats.values()]  # fmt: skip
        for name, text, value in (
            ("configuration", "The number of the configuration", deployment.number),
            ("changing", "1 while the configuration changes", int(deployment.is_changing)),
            ("servers", "Servers in the configuration", len(configuration.servers)),
            ("links", "Other servers that this one is linked to", len(observed.links.by_server)),
            ("groups", "Groups in the configuration", len(configuration.groups)),
            ("clients", "Clients connected here", len(observed.sessions)),
            ("queued_messages", "Deliveries that wait for clients here", sum(queues)),
            ("longest_queue", "Most deliveries that wait for one client", max(queues, default=0)),
        ):  # fmt: skip
            yield GaugeMetricFamily(f"flexgroup_{name}", text, value=value)
        patience = GaugeMetricFamily(
            "flexgroup_patience_seconds",
            "How long another server may say nothing before it is suspected",
            labels=["server"],
        )
        for server in observed.others:
            patience.add_metric([server.name], observed.patience_with(server.number))
        yield patience
        for name, text, sizes in (
            ("under_way", "Messages from here not yet delivered everywhere",
             [(hosted.stack, len(hosted.stability.own)) for hosted in deployment.domains]),
            ("kept", "Delivered messages kept until all have delivered them",
             [(hosted.stack, len(hosted.stability.kept)) for hosted in deployment.domains]),
        ):  # fmt: skip
            gauge = GaugeMetricFamily(f"flexgroup_messages_{name}", text, labels=["stack"])
            for stack, size in sizes:
                gauge.add_metric([stack], size)
            yield gauge
