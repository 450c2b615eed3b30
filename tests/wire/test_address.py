"""Where a server is."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.wire.address import parse_address, parse_server_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:7401", "localhost:7401"),
        ("10.0.0.7", "10.0.0.7:7400"),
        ("[::1]:7401", "[::1]:7401"),
        ("[::1]", "[::1]:7400"),
        ("unix:run/flexgroup.sock", "unix:run/flexgroup.sock"),
    ],
)
def test_addresses_are_read_and_written(text: str, address: str) -> None:
    assert str(parse_address(text)) == address


@pytest.mark.parametrize("text", ["", ":7400", "host:", "host:port", "host:70000", "::1", "unix:"])
def test_what_is_no_address_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"host:port|unix:PATH|\[::1\]"):
        parse_address(text)


def test_without_an_address_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXGROUP_SERVER", "there:1234")
    assert str(parse_address(None)) == "there:1234"
    monkeypatch.delenv("FLEXGROUP_SERVER")
    assert str(parse_address(None)) == "localhost:7400"


@pytest.mark.parametrize(
    ("text", "address"),
    [("0.0.0.0:0", "0.0.0.0:0"), ("node7", "node7:7400"), ("[::1]:7401", "[::1]:7401")],
)
def test_servers_listen_at_a_host_and_a_port_which_may_be_any(text: str, address: str) -> None:
    assert str(parse_server_address(text)) == address


@pytest.mark.parametrize("text", ["unix:socket", "::1:7400", "host:70000", ""])
def test_servers_listen_nowhere_else(text: str) -> None:
    with pytest.raises(UsageError, match="write"):
        parse_server_address(text)
