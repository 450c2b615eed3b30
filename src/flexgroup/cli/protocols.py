"""`flexgroup protocols`: the table of protocols."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from flexgroup.cli.arguments import Command, print_json

COMMAND = Command("protocols", "list the protocols", "flexgroup protocols")


def run(options: argparse.Namespace) -> int:
    from flexgroup.core.guarantees import names
    from flexgroup.protocols.catalogue import PROTOCOLS

    rows: list[dict[str, Any]] = [
        {
            "name": protocol.name,
            "options": list(protocol.layer.OPTIONS),
            "summary": protocol.summary,
            "needs": names(protocol.layer.NEEDS),
            "gives": names(protocol.layer.GIVES),
            "keeps": names(protocol.layer.KEEPS),
            "faults": protocol.faults_in_words,
            "genuine": protocol.genuine,
            "replicas": protocol.layer.NEEDS_REPLICAS,
            "source": protocol.source,
        }
        for protocol in PROTOCOLS.values()
    ]
    if options.json:
        print_json(rows)
        return 0
    with suppress(BrokenPipeError):  # whoever has seen enough has missed no result
        for row in rows:
            print(f"{row['name']:14} {row['summary']}")
            print(f"{'':14} needs {row['needs']}; gives {row['gives']}; keeps {row['keeps']}")
            print(f"{'':14} faults tolerated: {row['faults']}; genuine: {row['genuine']}")
            if row["replicas"]:
                print(f"{'':14} in groups of replicas only")
            if row["options"]:
                forms = ", ".join(f"{row['name']}/{option}" for option in row["options"])
                print(f"{'':14} options: {forms}")
            print(f"{'':14} source: {row['source']}\n")
    return 0
