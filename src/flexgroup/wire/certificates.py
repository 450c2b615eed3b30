"""Mutual TLS: who is who between servers and clients.

A folder holds the certificate of an authority, and for each party a certificate and its key. With
TLS, everybody shows a certificate of that authority. A server's has the organizational unit
`flexgroup-server`; a client's common name is the name under which the client appears in groups.
An authority of a company serves as well as that of `flexgroup.wire.authority`, if it issues such
certificates: the contexts need `authority.pem`, `NAME.pem` and `NAME.key`, and never the
authority's own key.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from urllib.parse import quote

from flexgroup.core.errors import PeerError, UsageError

SERVER = "server"
"""The name of the certificate that servers show, to clients and to each other."""

SERVER_UNIT = "flexgroup-server"
AUTHORITY = "authority"


def server_context(directory: str | Path) -> ssl.SSLContext:
    """Return the context of a server that is connected to; it demands a certificate as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    return _filled(context, Path(directory), SERVER)


def client_context(directory: str | Path, name: str) -> ssl.SSLContext:
    """Return the context of a client with that name, or of a server (`SERVER`) that connects.

    The certificate that the other side shows must be for the host that is connected to.
    """
    return _filled(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), Path(directory), name)


def _filled(context: ssl.SSLContext, directory: Path, name: str) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    certificate, key = files_of(directory, name)
    authority, _ = files_of(directory, AUTHORITY)
    for path in (authority, certificate, key):
        if not path.is_file():
            who = "" if name == SERVER else f" --client {name}"
            raise UsageError(f"{path} is missing; make it: flexgroup certificates {directory}{who}")
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"{certificate.name}, {key.name} or {authority.name} in {directory} cannot be used: "
            f"{error}; they must belong together"
        ) from None
    return context


def files_of(directory: Path, name: str) -> tuple[Path, Path]:
    """Return the files of a certificate and its key; a name may hold what a file's may not."""
    stem = quote(name, safe="")
    return directory / f"{stem}.pem", directory / f"{stem}.key"


# Telling who is at the other end.


def check_identity(transport: asyncio.Transport, client: str | None) -> None:
    """Refuse a connection whose certificate is not the named client's or, with None, a server's."""
    certificate = transport.get_extra_info("peercert")
    if certificate is None:
        if transport.get_extra_info("sslcontext") is None and client is not None:
            return  # a local socket, whose permissions say who may connect
        raise PeerError("unauthenticated: no certificate was shown")
    subject = {key: value for part in certificate["subject"] for key, value in part}
    if client is None:
        if subject.get("organizationalUnitName") != SERVER_UNIT:
            raise PeerError("unauthenticated: the certificate is not a server's")
    elif subject.get("commonName") != client:
        raise PeerError(
            f"unauthenticated: '{client}' with the certificate of '{subject.get('commonName')}'"
        )
