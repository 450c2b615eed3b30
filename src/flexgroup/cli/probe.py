"""`flexgroup probe`: what a running server is doing."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import Command, Option, print_json, tls_option

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 160
"""How many characters a line may have elsewhere than on a terminal."""


COMMAND = Command(
    "probe",
    "look into a running server: groups, stacks, queues, counters of layers",
    "flexgroup probe localhost:7400",
    (
        Option("address", metavar="ADDRESS", help="host:port or unix:PATH of a server"),
        tls_option(", one of which is NAME's"),
        Option(
            "--name",
            default="probe",
            help="the name of this client; with TLS, of its certificate",
        ),
    ),
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.client import blocking

    with blocking.connect(options.address, name=options.name, tls=options.tls) as link:
        report = link.inspect()
    if options.json:
        print_json(report)
        return 0
    from rich.console import Console

    show(report, Console(width=None if sys.stdout.isatty() else WIDE))
    return 0


def show(report: dict[str, Any], console: Console) -> None:
    names = {server["number"]: server["name"] for server in report["servers"]}
    changing = ", changing" if report["changing"] else ""
    totals = report["totals"]
    console.print(
        f"{report['server']} at {report['address']}, cluster {report['cluster']},"
        f" configuration {report['configuration']}{changing}",
        f"since it began: {totals['multicasts']:,.0f} messages multicast,"
        f" {totals['deliveries']:,.0f} delivered, {totals['bytes_sent']:,.0f} bytes sent,"
        f" {totals['cpu_seconds']:,.1f} s of processor time",
        sep="\n",
        markup=False,
        highlight=False,
    )
    print_table(
        console,
        "servers",
        ("number", "name", "address", "link", "missed after"),
        [
            (
                server["number"],
                server["name"],
                server["address"],
                link_to(server, report),
                f"{server['patience']:.2f} s",
            )
            for server in report["servers"]
        ],
    )
    print_table(
        console,
        "groups",
        ("name", "stack", "view", "owner", "senders", "members"),
        [
            (
                group["name"],
                group["stack"],
                group["view"],
                group["owner"] or "-",
                "anyone" if group["open"] else "members",
                ", ".join(
                    f"{member['process']}@{names.get(member['server'], member['server'])}"
                    for member in group["members"]
                ),
            )
            for group in report["groups"]
        ],
    )
    print_table(
        console,
        "what stacks promise",
        ("stack", "properties"),
        [(stack["stack"], ", ".join(stack["promises"])) for stack in report["stacks"]],
    )
    print_table(
        console,
        "stacks, in this configuration",
        (
            "stack",
            "multicast",
            "delivered",
            "packets out",
            "packets in",
            "under way",
            "by layer",
        ),
        [
            (
                stack["stack"],
                stack["multicast"],
                stack["delivered"],
                stack["packets_sent"],
                stack["packets_received"],
                stack["under_way"],
                ", ".join(f"{layer['layer']} {layer['sent']}" for layer in stack["layers"]),
            )
            for stack in report["stacks"]
        ],
    )
    print_table(
        console,
        "replicated domains",
        ("stack", "group", "servers", "replica here", "delivered", "under way", "suspected"),
        [
            (
                domain["stack"],
                group["name"],
                ", ".join(group["servers"]),
                *replica_of(domain, group),
            )
            for domain in report["replicas"]
            for group in domain["groups"]
        ],
    )
    print_table(
        console,
        "clients",
        ("client", "from", "sent", "group", "as", "delivered", "queued", "credit"),
        [
            (client["name"], client["from"], client["sent"], *group)
            for client in report["clients"]
            for group in groups_of(client) or [("-",) * 5]
        ],
    )
    print_table(console, "refused", ("what", "times"), list(report["refused"].items()))


def link_to(server: dict[str, Any], report: dict[str, Any]) -> str:
    if server["address"] == report["address"]:
        return "this one"
    return "linked" if server["linked"] else "no link"


def replica_of(domain: dict[str, Any], group: dict[str, Any]) -> tuple[object, ...]:
    here = domain["here"]
    if here is None or here["group"] != group["name"]:
        return ("-",) * 4
    return (
        f"process {here['process']}, start {here['incarnation']}",
        here["delivered"],
        here["under_way"],
        ", ".join(here["suspected"]) or "-",
    )


def groups_of(client: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            group["group"],
            group["process"] if group["member"] else "sender",
            group["delivered"],
            group["queued"],
            group["credit"],
        )
        for group in client["groups"]
    ]


def print_table(
    console: Console, title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]
) -> None:
    from flexgroup.cli.tables import table

    numeric = [
        column
        for place, column in enumerate(columns)
        if all(isinstance(row[place], int | float) for row in rows)
    ]
    if rows:
        console.print(table(columns, rows, numeric, title=title, title_justify="left"))
