"""Mutual TLS: who is who between servers and clients, and certificates for development.

A folder holds the certificate of an authority, and for each party a certificate and its key. With
TLS, everybody shows a certificate of that authority. A server's has the organizational unit
`flexgroup-server`; a client's common name is the name under which the client appears in groups.
An authority of a company serves as well, if it issues such certificates: the contexts need
`authority.pem`, `NAME.pem` and `NAME.key`, and never the authority's own key.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from flexgroup.core.errors import PeerError, UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SERVER = "server"
"""The name of the certificate that servers show, to clients and to each other."""

SERVER_UNIT = "flexgroup-server"
AUTHORITY = "authority"
RESERVED = (SERVER, AUTHORITY)
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
LONGEST_COMMON_NAME = 64
VALID_DAYS = 365
CLOCKS_APART = timedelta(hours=1)
"""How much the clocks of two machines may differ."""


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
    certificate, key = _files(directory, name)
    authority, _ = _files(directory, AUTHORITY)
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


def _files(directory: Path, name: str) -> tuple[Path, Path]:
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


# Making them.


def make_certificates(
    directory: Path, clients: Iterable[str] = (), hosts: Iterable[str] = ()
) -> list[Path]:
    """Bring the folder up to date, and return the certificates that were made.

    The authority stays once it is there. The servers' certificate is made if it is missing or if
    hosts are named, for which it then holds besides this machine. Those of the named clients are
    always made anew.
    """
    names, hosts = list(clients), list(hosts)
    for name in names:
        _check(name)
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    if not _files(directory, AUTHORITY)[0].is_file():
        made.append(_make_authority(directory))
    if hosts or not _files(directory, SERVER)[0].is_file():
        made.append(_make_party(directory, SERVER, [*LOCAL_HOSTS, *hosts]))
    return made + [_make_party(directory, name, []) for name in names]


def _check(name: str) -> None:
    if name in RESERVED:
        raise UsageError(f"'{name}' is not for a client; choose another name")
    if not 0 < len(name.encode()) <= LONGEST_COMMON_NAME:
        raise UsageError(
            f"a certificate has a name of 1 to {LONGEST_COMMON_NAME} bytes, "
            f"'{name[:80]}' has {len(name.encode())}"
        )


def _make_authority(directory: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.x509.oid import NameOID

    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "FlexGroup development authority")])
    public = key.public_key()
    builder = (
        _begun(name, key)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return _keep(directory, AUTHORITY, builder, key, key)


def _make_party(directory: Path, name: str, hosts: list[str]) -> Path:
    """A certificate for a server, if hosts are given, or else for a client."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    issuer, issuer_key = _authority(directory)
    key = generate_private_key(SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, SERVER_UNIT))
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    issuer_id = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _begun(x509.Name(subject), key)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id),
            critical=False,
        )
    )
    if hosts:
        names = [_host_name(host) for host in dict.fromkeys(hosts)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _keep(directory, name, builder, key, issuer_key)


def _authority(directory: Path) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    certificate, key_file = _files(directory, AUTHORITY)
    try:
        key = load_pem_private_key(key_file.read_bytes(), None)
        issuer = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"the authority in {directory} cannot issue certificates: {error}; "
            "use another folder, or issue them where its key is"
        ) from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise UsageError(f"{key_file} was not made by flexgroup; use another folder")
    return issuer, key


def _begun(subject: x509.Name, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    if re.fullmatch(r"(\*\.)?[\w-]+(\.[\w-]+)*", host, re.ASCII) is None:
        raise UsageError(f"'{host}' is not the name or the address of a host")
    return x509.DNSName(host)


def _keep(
    directory: Path,
    name: str,
    builder: x509.CertificateBuilder,
    key: EllipticCurvePrivateKey,
    issuer_key: EllipticCurvePrivateKey,
) -> Path:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    certificate, key_file = _files(directory, name)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write(key_file, secret, 0o600)
    _write(certificate, builder.sign(issuer_key, SHA256()).public_bytes(Encoding.PEM), 0o644)
    return certificate


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write the file as a whole, and never let others read it for a moment who should not."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
    partial.replace(path)
