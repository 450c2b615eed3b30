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
        repeated(
            "--server",
            "NAME",
            "the key with which the server of this name seals, always anew, and its public key "
            "among those of all servers",
        ),
        repeated("--host", "HOST", "where servers run, besides this machine: a name or an address"),
    ),
    "Make a certificate authority in a folder, unless there is one, a certificate for servers"
    " and certificates for named clients; and keys for the seals of named servers. Then:"
    " flexgroup server --tls DIR --seals DIR.",
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.wire.authority import VALID_DAYS, make_certificates
    from flexgroup.wire.seals import PUBLIC, make_seal_keys

    try:
        made = make_certificates(options.directory, options.client, options.host)
        keys = make_seal_keys(options.directory, options.server)
    except OSError as error:
        raise UsageError(
            f"cannot write into '{options.directory}': {error.strerror}; choose another folder"
        ) from None
    if options.json:
        made_keys = {"keys": [str(path) for path in keys]} if keys else {}
        told = {"made": [str(path) for path in made], "valid_days": VALID_DAYS}
        print_json(told | made_keys)
        return 0
    for path in made:
        print(f"made {path}, valid for {VALID_DAYS} days")
    for path in keys:
        print(f"made {path}, with its public key in {options.directory / PUBLIC}")
    if not made and not keys:
        print(f"{options.directory} has an authority and a certificate for servers already")
    return 0
