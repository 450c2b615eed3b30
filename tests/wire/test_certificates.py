"""Certificates for development, tried in real handshakes."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.wire.authority import make_certificates
from flexgroup.wire.certificates import SERVER, SERVER_UNIT, client_context, server_context


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    make_certificates(directory, clients=["alice", "a/b: ü"], hosts=["node7.example"])
    return directory


class Shake:
    """A handshake between two contexts, in memory."""

    def __init__(
        self, client: ssl.SSLContext, server: ssl.SSLContext, host: str = "localhost"
    ) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(to_client, to_server, server_hostname=host)
        self.server = server.wrap_bio(to_server, to_client, server_side=True)
        for _ in range(4):
            for end in (self.client, self.server):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue

    def names(self) -> tuple[dict[str, str], dict[str, str]]:
        """What each end learns of the other: first the client's names, then the server's."""
        return subject(self.server.getpeercert()), subject(self.client.getpeercert())


def subject(certificate: object) -> dict[str, str]:
    assert isinstance(certificate, dict)
    return {key: value for part in certificate["subject"] for key, value in part}


def test_each_end_learns_who_the_other_is(folder: Path) -> None:
    shake = Shake(client_context(folder, "alice"), server_context(folder))
    client, server = shake.names()
    assert client == {"commonName": "alice"}
    assert server["organizationalUnitName"] == SERVER_UNIT
    assert shake.client.version() == "TLSv1.3"


def test_a_name_may_hold_what_a_file_name_may_not(folder: Path) -> None:
    client, _ = Shake(client_context(folder, "a/b: ü"), server_context(folder)).names()
    assert client["commonName"] == "a/b: ü"


def test_servers_show_their_certificate_to_each_other(folder: Path) -> None:
    dialling, listening = Shake(client_context(folder, SERVER), server_context(folder)).names()
    assert dialling == listening
    assert dialling["organizationalUnitName"] == SERVER_UNIT


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "node7.example"])
def test_the_servers_certificate_is_good_for_its_hosts(folder: Path, host: str) -> None:
    assert Shake(client_context(folder, "alice"), server_context(folder), host).names()


def test_and_for_no_other(folder: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        Shake(client_context(folder, "alice"), server_context(folder), "node8.example")


def test_who_shows_no_certificate_is_refused(folder: Path) -> None:
    stranger = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        Shake(stranger, server_context(folder))


def test_certificates_of_another_authority_are_refused(folder: Path, tmp_path: Path) -> None:
    make_certificates(tmp_path, clients=["alice"])
    with pytest.raises(ssl.SSLCertVerificationError):
        Shake(client_context(folder, "alice"), server_context(tmp_path))
    impostor = client_context(tmp_path, "alice")
    impostor.load_verify_locations(folder / "authority.pem")
    with pytest.raises(ssl.SSLCertVerificationError):
        Shake(impostor, server_context(folder))


def test_a_client_cannot_pass_for_a_server(folder: Path) -> None:
    """Its certificate is not for that purpose, whatever the host is called."""
    impostor = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    impostor.load_cert_chain(folder / "alice.pem", folder / "alice.key")
    trusting = client_context(folder, "alice")
    trusting.check_hostname = False
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        Shake(trusting, impostor)


def test_keys_are_private(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.key")}
    assert set(modes) == {"authority.key", "server.key", "alice.key", "a%2Fb%3A%20%C3%BC.key"}
    assert set(modes.values()) == {0o600}


def test_the_authority_stays_and_clients_are_added(tmp_path: Path) -> None:
    first = make_certificates(tmp_path, clients=["alice"])
    assert [path.name for path in first] == ["authority.pem", "server.pem", "alice.pem"]
    second = make_certificates(tmp_path, clients=["bob"])
    assert [path.name for path in second] == ["bob.pem"]
    for name in ("alice", "bob"):
        Shake(client_context(tmp_path, name), server_context(tmp_path))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("server", "not for a client"),
        ("authority", "not for a client"),
        ("", "a name of 1 to 64 bytes"),
        ("x" * 65, "a name of 1 to 64 bytes"),
    ],
)
def test_names_that_no_client_may_have(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        make_certificates(tmp_path / "new", clients=[name])
    assert not (tmp_path / "new").exists()


def test_what_is_missing_is_said_with_the_command_that_makes_it(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"carol\.pem is missing; make it: .* --client carol"):
        client_context(folder, "carol")
    with pytest.raises(UsageError, match=r"authority\.pem is missing; make it: "):
        server_context(folder / "nowhere")


def test_a_broken_key_is_bad_input(tmp_path: Path) -> None:
    make_certificates(tmp_path, clients=["alice"])
    (tmp_path / "alice.key").write_text("nonsense")
    with pytest.raises(UsageError, match=r"alice.key or authority.pem in .* cannot be used"):
        client_context(tmp_path, "alice")


def test_a_folder_without_the_authoritys_key_issues_nothing(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    (tmp_path / "authority.key").unlink()
    with pytest.raises(UsageError, match="cannot issue certificates"):
        make_certificates(tmp_path, clients=["alice"])
    assert server_context(tmp_path).verify_mode is ssl.CERT_REQUIRED
