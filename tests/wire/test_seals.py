"""Seals between servers: keys by file, and signatures that are worth something in one place."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.cli.main import main
from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.message import Message, message_id, stamp
from flexgroup.protocols.skeen import LocalTs, Skeen, Start
from flexgroup.wire.seals import PUBLIC, ServerNotary, key_file, make_seal_keys, read_seal_keys

SERVERS = ("anna", "ben", "c/d: ü")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("seals")
    make_seal_keys(directory, SERVERS)
    return directory


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    make_seal_keys(tmp_path, SERVERS)
    return tmp_path


CODEC = Codec([Skeen])
VOTE = LocalTs(message_id(4, 0), stamp(3, 1))


def notary(folder: Path, name: str, where: bytes = b"cluster, domain 1") -> ServerNotary:
    return ServerNotary(read_seal_keys(folder, name), SERVERS, where, CODEC)


def test_what_a_server_seals_all_others_can_check(folder: Path) -> None:
    seal = notary(folder, "anna").seal(0, VOTE)
    for name in SERVERS:
        assert notary(folder, name).is_sealed(0, 0, VOTE, seal)


def test_a_seal_is_about_one_packet_of_one_server_in_one_place(folder: Path) -> None:
    seal = notary(folder, "anna").seal(0, VOTE)
    ben = notary(folder, "ben")
    assert not ben.is_sealed(1, 0, VOTE, seal)
    assert not ben.is_sealed(3, 0, VOTE, seal), "there is no such process"
    assert not ben.is_sealed(0, 0, LocalTs(VOTE.m, stamp(4, 1)), seal)
    assert not ben.is_sealed(0, 0, Start(Message(VOTE.m, (0,), b"")), seal)
    assert not notary(folder, "ben", b"cluster, domain 2").is_sealed(0, 0, VOTE, seal)


@given(seal=st.binary(max_size=70))
def test_any_bytes_may_be_checked(folder: Path, seal: bytes) -> None:
    assert not notary(folder, "anna").is_sealed(1, 0, VOTE, seal)


def test_only_its_owner_reads_a_key(folder: Path) -> None:
    for name in SERVERS:
        assert stat.S_IMODE(key_file(folder, name).stat().st_mode) == 0o600


def test_keys_are_added_to_those_that_are_there(own_folder: Path) -> None:
    before = (own_folder / PUBLIC).read_text().splitlines()
    make_seal_keys(own_folder, ["dora"])
    after = (own_folder / PUBLIC).read_text().splitlines()
    assert [line for line in after if not line.endswith("dora")] == before
    ServerNotary(read_seal_keys(own_folder, "dora"), (*SERVERS, "dora"), b"", CODEC)


def test_a_server_that_is_unknown_is_refused_before_anything_is_sealed(folder: Path) -> None:
    with pytest.raises(UsageError, match="server anna has no public key of dora"):
        ServerNotary(read_seal_keys(folder, "anna"), (*SERVERS, "dora"), b"", CODEC)


def foreign(folder: Path) -> None:
    key_file(folder, "ben").replace(key_file(folder, "anna"))


def of_another_kind(folder: Path) -> None:
    key = generate_private_key(SECP256R1())
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_file(folder, "anna").write_bytes(data)


def with_public(text: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / PUBLIC).write_bytes(text)

    return write


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda folder: key_file(folder, "anna").unlink(), "the key of server 'anna' cannot be"),
        (lambda folder: (folder / PUBLIC).unlink(), "the public keys of servers cannot be read"),
        (lambda folder: key_file(folder, "anna").write_text("no"), "is damaged or no key"),
        (of_another_kind, "a key of another kind than Ed25519"),
        (foreign, "has another public key for 'anna'"),
        (with_public(b""), "has no public key for 'anna'"),
        (with_public(b"\xff\xfe"), "it is not a text"),
        (with_public(b"12 anna\n"), "line 1: write the 64 digits"),
        (with_public(b"xyz anna\n"), "line 1: write the 64 digits"),
        (with_public(b"00" * 32 + b"\n"), "line 1: '' is no name"),
        (
            with_public(b"00" * 32 + b" anna\n" + b"01" + b"00" * 31 + b" anna\n"),
            "line 2: 'anna' is no name, or has another key in a line before",
        ),
    ],
)
def test_what_is_wrong_with_keys_is_said(
    own_folder: Path, damage: Callable[[Path], None], complaint: str
) -> None:
    damage(own_folder)
    with pytest.raises(UsageError, match=complaint):
        read_seal_keys(own_folder, "anna")


def test_the_command_makes_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certificates", str(tmp_path), "--server", "anna", "--server", "ben"]) == 0
    assert f"with its public key in {tmp_path / PUBLIC}" in capsys.readouterr().out
    read_seal_keys(tmp_path, "anna").check_known(["ben"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--seals", "{}"], "--seals needs --name"),
        (["--seals", "{}", "--name", "dora"], "the key of server 'dora' cannot be read"),
        (["--attack", "forge"], "say its name twice"),
        (["--attack", "forge", "--name", "anna"], "say its name twice"),
        (["--attack", "forge", "--name", "anna", "--yes-this-server-lies", "ben"], "name twice"),
        (["--yes-this-server-lies", "anna"], "says how sure you are of --attack"),
        (
            ["--attack", "forge", "--name", "a", "--yes-this-server-lies", "a", "--data", "{}"],
            "--attack goes without --data",
        ),
    ],
)
def test_a_server_is_not_started_with_wrong_keys_or_as_a_liar_by_accident(
    own_folder: Path,
    options: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["server", *[option.format(own_folder) for option in options]]) == 2
    assert complaint in capsys.readouterr().err
