"""`flexgroup conform`: the rules of layers, tried on protocols of one's own."""

from __future__ import annotations

import argparse

from flexgroup.cli.arguments import Command, Option, print_json
from flexgroup.core.errors import UsageError
from flexgroup.runs.own_protocols import import_protocols

COMMAND = Command(
    "conform",
    "try the protocols of a module against the rules that worlds rely on",
    "flexgroup conform sequencer",
    (Option("module", metavar="MODULE", help="a module that registers protocols"),),
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.protocols.catalogue import PROTOCOLS, parse_stack
    from flexgroup.testing.conformance import RULES, name_of_rule, whole_stack

    before = set(PROTOCOLS)
    import_protocols([options.module])
    registered = [
        name
        for name, protocol in PROTOCOLS.items()
        if name not in before or protocol.layer.__module__ == options.module
    ]
    if not registered:
        raise UsageError(
            f"module '{options.module}' registers no protocol; have it call "
            "flexgroup.protocols.catalogue.register"
        )
    rows: list[dict[str, object]] = []
    for stack in map(whole_stack, registered):
        plan = parse_stack(stack)
        for rule in RULES:
            broken: str | None = None
            try:
                rule(plan)
            except AssertionError as error:
                broken = str(error) or "this does not hold"
            except UsageError as error:
                raise UsageError(f"'{stack}' cannot be tried: {error}") from None
            except Exception as error:
                # A handler that fails where it is tried is what one wants to be told of.
                broken = f"{type(error).__name__}: {error}"
            rows.append({"stack": stack, "rule": name_of_rule(rule), "broken": broken})
            if not options.json:
                verdict = "holds" if broken is None else f"BROKEN: {broken}"
                print(f"{stack}: {name_of_rule(rule)}: {verdict}", flush=True)
    if options.json:
        print_json(rows)
    return 1 if any(row["broken"] is not None for row in rows) else 0
