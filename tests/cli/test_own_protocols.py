"""Protocols of one's own: named in a command or once for all, and tried against the rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.cli.parser import COMMANDS, build_parser
from flexgroup.protocols.catalogue import PROTOCOLS

REGISTERS = """
import random
from dataclasses import replace

from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import PROTOCOLS, register


class Drawing(Layer):
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.seen = 0

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Data) -> None:
        self.seen += random.randrange(1 << 30)
        self.deliver(packet.m)


class Raising(Drawing):
    def on_packet(self, sender: int, packet: Data) -> None:
        self.seen += 1
        if self.seen == 2:
            raise ZeroDivisionError("the second packet")
        self.deliver(packet.m)


ALIKE = PROTOCOLS["best-effort"]
register(replace(ALIKE, name="own-twin"))
register(replace(ALIKE, name="own-drawing", layer=Drawing))
register(replace(ALIKE, name="own-raising", layer=Raising))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder with a module that registers protocols; commands are given there."""
    (tmp_path / "own_protocols.py").write_text(REGISTERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "own_protocols"
    sys.modules.pop("own_protocols", None)
    for name in ("own-twin", "own-drawing", "own-raising"):
        PROTOCOLS.pop(name, None)


@pytest.fixture
def importable(own: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.syspath_prepend(tmp_path)
    return own


def project(text: str) -> None:
    Path("pyproject.toml").write_text(text)


def test_every_command_takes_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            build_parser().parse_args([command.COMMAND.name, "--help"])
        assert "--protocols MODULE" in capsys.readouterr().out, command.COMMAND.name


def test_a_project_names_its_protocols_once(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its folder or below it, wherever else Python looks for modules."""
    project(f'[tool.flexgroup]\nprotocols = ["{own}"]\n')
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    arguments = "explore --protocol own-twin --processes 2 --message 0,1".split()
    assert main(arguments) == 0
    assert "own-twin over fifo channels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.flexgroup\n", "is not TOML"),
        ('[tool.flexgroup]\nprotocol = ["own"]\n', "says 'protocol', which nothing reads"),
        ('[tool.flexgroup]\nprotocols = "own"\n', 'write [tool.flexgroup] with protocols = ["M'),
        ('[tool]\nflexgroup = ["own"]\n', "says 'flexgroup', which nothing reads"),
        ('[tool.flexgroup]\nprotocols = ["nowhere"]\n', "cannot import 'nowhere'"),
    ],
)
def test_a_table_that_makes_no_sense(
    own: str, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project(text)
    assert main(["protocols"]) == 2
    assert told in capsys.readouterr().err


def test_projects_without_the_table_are_left_alone(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project('[project]\nname = "other"\n')
    assert main(["protocols"]) == 0
    assert "own-twin" not in capsys.readouterr().out


def test_servers_are_given_the_protocols_of_bench_and_cluster(own: str) -> None:
    from flexgroup.cli.arguments import protocols_for_servers

    for command in ("bench", "cluster"):
        options = build_parser().parse_args([command, "--protocols", own, "--protocols", "other"])
        words = protocols_for_servers(options)
        assert words == ["--protocols", own, "--protocols", "other"]


def test_conform(importable: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", importable, "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    broken = {row["stack"] for row in rows if row["broken"] is not None}
    assert broken == {"own-drawing", "own-raising"}
    drawing = [row["rule"] for row in rows if row["stack"] == "own-drawing" and row["broken"]]
    assert "a fork goes on as the original does" in drawing


def test_conform_without_protocols(
    own: str, importable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty_module_of_none.py").write_text("")
    assert main(["conform", "empty_module_of_none"]) == 2
    assert "registers no protocol" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--walks", "10"]], ids=["search", "walks"])
def test_a_layer_that_draws_random_numbers_is_not_exhausted(
    importable: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scope = "--protocol own-drawing --processes 2 --message 0,1 --protocols".split()
    assert main(["explore", *scope, importable, *more]) == 2
    printed = capsys.readouterr()
    assert "did two different things" in printed.err
    assert "exhausted" not in printed.out


def test_a_handler_that_raises_is_a_finding_with_a_script(
    importable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope = "--protocol own-raising --processes 2 --message 0,1 --message 0,1 --protocols".split()
    out = tmp_path / "found"
    assert main(["explore", *scope, importable, "--out", str(out)]) == 1
    assert "conduct: violated after " in capsys.readouterr().out
    script = out / "own-raising-conduct.txt"
    assert "fails with ZeroDivisionError: the second packet" in script.read_text()
    assert main(["replay", str(script), "--protocols", importable]) == 1
    judged = capsys.readouterr().out.splitlines()
    assert "conduct: violated, ZeroDivisionError: the second packet" in judged


SIMULATED = (
    "simulate --protocol own-raising --processes 2 --clients 1 --workload broadcast "
    "--duration 0.01 --protocols"
).split()


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_handler_that_raises_while_simulated_is_a_violation_without_a_traceback(
    importable: str, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SIMULATED, importable, *form]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    told = printed.out
    if form:
        (verdict,) = json.loads(told)["verdicts"]
        assert (verdict["property"], verdict["outcome"]) == ("conduct", "violated")
        told = verdict["explanation"]
    else:
        assert told.startswith("conduct: violated\n")
    assert "ZeroDivisionError: the second packet (on_packet, own_protocols.py, line 30)" in told
    assert "flexgroup explore --protocol 'own-raising'" in told


def test_an_error_that_is_not_of_a_layer_is_not_blamed_on_it(
    importable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("flexgroup.runs.simulated.run_scenario", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        main([*SIMULATED, importable])
