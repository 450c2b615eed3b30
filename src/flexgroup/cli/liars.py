"""The options that name Byzantine processes, for all commands that have them."""

from __future__ import annotations

from flexgroup.cli.arguments import Option, repeated
from flexgroup.liars.named import ATTACKERS


def liar_options() -> tuple[Option, Option]:
    return (
        repeated("--twin", "P", "this process is two copies, and each packet reaches one of them"),
        repeated("--liar", "P:KIND", f"this process attacks: {', '.join(ATTACKERS)}"),
    )
