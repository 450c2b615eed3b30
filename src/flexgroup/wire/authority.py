"""An authority for development, which issues the certificates that `certificates` describes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from flexgroup.core.errors import UsageError
from flexgroup.wire.certificates import AUTHORITY, SERVER, SERVER_UNIT, files_of
from flexgroup.wire.private_files import write_whole

RESERVED = (SERVER, AUTHORITY)
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
LONGEST_COMMON_NAME = 64
VALID_DAYS = 365
CLOCKS_APART = timedelta(hours=1)
"""How much the clocks of two machines may differ."""


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
    if not files_of(directory, AUTHORITY)[0].is_file():
        made.append(_make_authority(directory))
    if hosts or not files_of(directory, SERVER)[0].is_file():
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
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "FlexGroup development authority")])
    return _keep(directory, AUTHORITY, _begun(name, name, key, is_authority=True), key, key)


def _make_party(directory: Path, name: str, hosts: list[str]) -> Path:
    """A certificate for a server, if hosts are given, or else for a client."""
    issuer, issuer_key = _authority(directory)
    key = generate_private_key(SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, SERVER_UNIT))
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    issuer_id = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _begun(x509.Name(subject), issuer.subject, key, is_authority=False)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
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
    certificate, key_file = files_of(directory, AUTHORITY)
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


def _begun(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, is_authority: bool
) -> x509.CertificateBuilder:
    """Begin a certificate, with what that of the authority and those of parties have in common."""
    now = datetime.now(UTC)
    limits = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(limits, critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _host_name(host: str) -> x509.GeneralName:
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
    certificate, key_file = files_of(directory, name)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_whole(key_file, secret, 0o600)
    write_whole(certificate, builder.sign(issuer_key, SHA256()).public_bytes(Encoding.PEM), 0o644)
    return certificate
