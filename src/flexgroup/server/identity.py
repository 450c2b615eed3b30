"""Who is at the other end of a connection, by the certificate that it shows."""

from __future__ import annotations

import asyncio

from flexgroup.core.errors import PeerError
from flexgroup.server.certificates import SERVER_UNIT


def check_identity(transport: asyncio.Transport, client: str | None) -> None:
    """That it is the client of this name, or, with None, a server."""
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
