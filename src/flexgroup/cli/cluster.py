"""`flexgroup cluster`: a cluster of real servers on this machine, to try things with."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Option,
    make_folder,
    path_here,
    protocols_for_servers,
    tls_option,
)
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from flexgroup.load.local_cluster import LocalCluster, LocalServer
    from flexgroup.load.observed import ObservedServer

INTERVAL = 1.0
GROUP = "demo"
LAST_PORT = 65535
ROOMY = 100
"""Characters in a line that leave space between columns."""


COMMAND = Command(
    "cluster",
    "a cluster of servers on this machine, to try things with",
    "flexgroup cluster --size 3",
    (
        Option("--size", type=int, default=3, metavar="N", help="how many servers (3)"),
        Option(
            "--stack",
            metavar="S",
            help=f"create a group '{GROUP}' with this stack, open to senders",
        ),
        Option("--dir", type=path_here, metavar="DIR", help="where the servers' logs go"),
        Option(
            "--port",
            type=int,
            metavar="P",
            help="the first server's, and upwards (any that are free)",
        ),
        tls_option("; see flexgroup certificates"),
        Option("--trace", type=path_here, metavar="DIR", help="record a trace there"),
    ),
    "Start servers on free ports of this machine, and show how they are until stopped (Ctrl-C"
    " or SIGTERM). Others connect to the addresses that are shown. With --json, one JSON"
    " object a line: first the addresses, then how each server is, once a second.",
    "print one JSON object a line",
)


@dataclass(frozen=True)
class Row:
    """The state of one server, as a row of the table that is shown."""

    server: str
    address: str
    state: str
    _: KW_ONLY
    configuration: int = 0
    groups: int = 0
    members: int = 0
    """How many members all groups have, at all servers."""
    clients: int = 0
    queued: int = 0
    deliveries: float = 0.0
    """How many there are in a second, at this server."""

    def __str__(self) -> str:
        """Return what is worth a line when it changes."""
        return (
            f"{self.server} {self.address} {self.state}: configuration {self.configuration},"
            f" groups {self.groups}, members {self.members}, clients {self.clients}"
        )


async def row_of(server: LocalServer, observed: ObservedServer) -> Row:
    name, address = server.name, server.address
    if not server.is_running:
        return Row(name, address, f"ended with code {server.process.returncode}")
    look = await observed.look()
    if look is None:
        return Row(name, address, "does not answer")
    return Row(
        name,
        address,
        "changing" if look.told["changing"] else "running",
        configuration=look.told["configuration"] or 0,
        groups=len(look.told["groups"]),
        members=look.members,
        clients=look.clients,
        queued=look.queued,
        deliveries=look.deliveries,
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    from flexgroup.load.local_cluster import LocalCluster
    from flexgroup.protocols.catalogue import parse_stack

    if options.stack is not None:
        parse_stack(options.stack)
    arguments = ["--log", "json", *protocols_for_servers(options)]
    for option, value in (("--tls", options.tls), ("--trace", options.trace)):
        arguments += [] if value is None else [option, str(value)]
    with ExitStack() as stack:
        folder = options.dir or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_folder(folder, "--dir")
        cluster = LocalCluster(options.size, folder, arguments, options.port)
        last = LAST_PORT + 1 - options.size
        if options.port is not None and not 0 < options.port <= last:
            raise UsageError(f"--port {options.port} is not possible; give 1 to {last}")
        stack.enter_context(cluster)
        asyncio.run(show_until_stopped(cluster, options))
    return 0


async def show_until_stopped(cluster: LocalCluster, options: argparse.Namespace) -> None:
    import asyncio

    from flexgroup.client.group import Group
    from flexgroup.load.observed import ObservedServer

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    name = "" if options.tls is not None else "cluster"
    observed = [ObservedServer(address, options.tls, name) for address in cluster.addresses]
    if options.stack is not None:
        await Group(await observed[0].link(), GROUP).create(options.stack, open=True)
    with ExitStack() as stack:
        show = display(options.json, cluster, stack)
        while not stopping.is_set():
            show([await row_of(*both) for both in zip(cluster.servers, observed, strict=True)])
            if not any(server.is_running for server in cluster.servers):
                raise UsageError(f"all servers have ended: {cluster.servers[0].last_log_line()}")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), INTERVAL)
    for server in observed:
        await server.close()


def display(as_json: bool, cluster: LocalCluster, stack: ExitStack) -> Callable[[list[Row]], None]:
    """Return a function that shows how the servers are, in the way that suits the output."""
    if as_json:
        ready = [{"server": server.name, "address": server.address} for server in cluster.servers]
        print(json.dumps({"ready": ready}), flush=True)
        return lambda rows: print(json.dumps({"servers": list(map(asdict, rows))}), flush=True)
    if sys.stdout.isatty():
        from rich.live import Live

        live = stack.enter_context(Live(auto_refresh=False))
        return lambda rows: live.update(table(rows, live.console.width), refresh=True)
    shown: dict[str, str] = {}

    def lines(rows: list[Row]) -> None:
        for row in rows:
            if shown.get(row.server) != str(row):
                shown[row.server] = str(row)
                print(row, flush=True)

    return lines


def table(rows: list[Row], width: int) -> Table:
    from flexgroup.cli import tables

    numbers = ("config", "groups", "members", "clients", "queued", "deliv./s")
    shown = tables.table(
        ("server", "address", "state", *numbers),
        [(*astuple(row)[:-1], f"{row.deliveries:,.0f}") for row in rows],
        numbers,
        padding=0 if width < ROOMY else (0, 1),
        show_edge=False,
        caption="flexgroup.connect(ADDRESS); Ctrl-C stops all",
        caption_justify="left",
    )
    # Addresses are what one looks for, and have to be whole where a terminal is narrow, too.
    for column in shown.columns[:2]:
        column.no_wrap = True
    return shown
