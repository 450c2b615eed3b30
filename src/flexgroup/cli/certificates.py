"""`flexgroup certificates`: an authority and certificates for mutual TLS, for development."""

from __future__ import annotations

import argparse

from flexgroup.cli.arguments import Command, Option, path_here, print_json, repeated
from flexgroup.core.errors import UsageError

COMMAND = Command(
    "certificates",
    "certificates for servers and clients, for development",
    "flexgroup certificates certificates --client alice --client bob --host 10.0.0.5",
    (
        Option("directory", type=path_here, metavar="DIR", help="the folder; it may be new"),
        repeated(
            "--client", "NAME", "a client's certificate; with TLS, a client may use no other name"
        ),
        repeated("--host", "HOST", "where servers run, besides this machine: a name or an address"),
    ),
    "Make a certificate authority in a folder, unless there is one, a certificate for servers"
    " and certificates for named clients. Then: flexgroup server --tls DIR.",
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.wire.authority import VALID_DAYS, make_certificates

    try:
        made = make_certificates(options.directory, options.client, options.host)
    except OSError as error:
        raise UsageError(
            f"cannot write into '{options.directory}': {error.strerror}; choose another folder"
        ) from None
    if options.json:
        print_json({"made": [str(path) for path in made], "valid_days": VALID_DAYS})
        return 0
    for path in made:
        print(f"made {path}, valid for {VALID_DAYS} days")
    if not made:
        print(f"{options.directory} has an authority and a certificate for servers already")
    return 0
