"""Seals between servers: Ed25519 signatures, with a key for each server.

A folder holds the key of a server, `NAME.seal`, and the public keys of all, `seals.txt`, a line for
each: the key in hexadecimal digits, and the name. `flexgroup certificates` makes both. What servers
seal names the cluster, the domain and the stack, so that no seal can pass for one elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.message import Packet
from flexgroup.core.seals import Notary
from flexgroup.wire.private_files import write_whole

PUBLIC: Final = "seals.txt"

HOW_TO_MAKE: Final = "make it: flexgroup certificates {} --server '{}'"


class SealKeys:
    """The key of one server, and the public keys of all that it knows."""

    def __init__(self, name: str, key: Ed25519PrivateKey, public: dict[str, bytes]) -> None:
        self._key = key
        self._public = {
            server: Ed25519PublicKey.from_public_bytes(data) for server, data in public.items()
        }
        self.name = name

    def check_known(self, servers: Iterable[str]) -> None:
        """Raise UsageError unless the public keys of all these servers are known."""
        unknown = sorted(set(servers) - set(self._public))
        if unknown:
            raise UsageError(
                f"server {self.name} has no public key of {', '.join(unknown)} to check seals "
                f"with; make one, and copy {PUBLIC} to all servers before they are started"
            )

    def seal(self, statement: bytes) -> bytes:
        return self._key.sign(statement)

    def is_sealed(self, server: str, statement: bytes, seal: bytes) -> bool:
        key = self._public.get(server)
        if key is None:
            return False
        try:
            key.verify(seal, statement)
        except InvalidSignature:
            return False
        return True


class ServerNotary(Notary):
    """The notary of the process of a stack at this server."""

    def __init__(
        self, keys: SealKeys, servers: tuple[str, ...], where: bytes, codec: Codec
    ) -> None:
        keys.check_known(servers)
        self._keys = keys
        self._servers = servers
        self._where = len(where).to_bytes(4, "big") + where
        """What tells the stack, with its processes, from all others."""
        self._codec = codec

    def seal(self, layer: int, packet: Packet) -> bytes:
        return self._keys.seal(self._where + self._codec.statement(layer, packet))

    def is_sealed(self, process: int, layer: int, packet: Packet, seal: bytes) -> bool:
        if process >= len(self._servers):
            return False
        statement = self._where + self._codec.statement(layer, packet)
        return self._keys.is_sealed(self._servers[process], statement, seal)


# The files.


def make_seal_keys(directory: Path, servers: Iterable[str]) -> list[Path]:
    """Make the keys of servers, each anew, and add their public keys to those in the folder."""
    public = read_public(directory) if (directory / PUBLIC).exists() else {}
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for name in servers:
        if not name or not name.isprintable():
            raise UsageError(f"'{name}' cannot name a server with a key; use printable characters")
        key = Ed25519PrivateKey.generate()
        path = key_file(directory, name)
        data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_whole(path, data, 0o600)
        public[name] = key.public_key().public_bytes_raw()
        made.append(path)
    if made:
        lines = [f"{data.hex()} {name}\n" for name, data in sorted(public.items())]
        write_whole(directory / PUBLIC, "".join(lines).encode(), 0o644)
    return made


def key_file(directory: Path, name: str) -> Path:
    return directory / f"{quote(name, safe='')}.seal"


def read_seal_keys(directory: Path, name: str) -> SealKeys:
    """The keys that a server of this name has in a folder; raises UsageError if it has not got
    what it needs, or something else."""
    path = key_file(directory, name)
    public = read_public(directory)
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise UsageError(
            f"the key of server '{name}' cannot be read, {path}: {error.strerror}; "
            + HOW_TO_MAKE.format(directory, name)
        ) from None
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{path} is damaged or no key: {error}; " + HOW_TO_MAKE.format(directory, name)
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path} is a key of another kind than Ed25519; " + HOW_TO_MAKE.format(directory, name)
        )
    if public.get(name) != key.public_key().public_bytes_raw():
        said = "has another public key for" if name in public else "has no public key for"
        raise UsageError(
            f"{directory / PUBLIC} {said} '{name}', whose key is {path}: nobody would believe its "
            "seals; take both files from where they were made together"
        )
    return SealKeys(name, key, public)


def read_public(directory: Path) -> dict[str, bytes]:
    """The public keys in a folder, by the names of servers."""
    path = directory / PUBLIC
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(
            f"the public keys of servers cannot be read, {path}: {error.strerror}; make them: "
            f"flexgroup certificates {directory} --server NAME"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no list of public keys: it is not a text") from None
    public: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        digits, _, name = line.partition(" ")
        try:
            data = bytes.fromhex(digits)
            Ed25519PublicKey.from_public_bytes(data)
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: write the 64 digits of a public key and the name of its "
                "server"
            ) from None
        if not name or public.get(name, data) != data:
            raise UsageError(
                f"{path}, line {number}: '{name}' is no name, or has another key in a line before"
            )
        public[name] = data
    return public
