"""A log of another system keeps its names: in verdicts, witnesses, reports, pictures, exports and
in the lab."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from flexgroup.cli.main import main
from flexgroup.lab.app import Lab

from ..docs.fences import ROOT
from .conftest import Visited, listening
from .test_traces_http import loaded


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a chat service as a trace set, as docs/foreign-traces.md makes it."""
    traces = tmp_path_factory.mktemp("foreign") / "chats"
    command = (
        f"{sys.executable} {ROOT}/examples/from_json_lines.py "
        f"{ROOT}/examples/data/deliveries.jsonl --nodes alpha,beta,gamma --run chat --out {traces}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return traces


@pytest.fixture(scope="module")
def looked_at(chat: Path) -> Iterator[Visited]:
    with listening(Lab((), [chat])) as ready:
        yield ready


def words_of(page: str) -> str:
    """What one reads of a page, and what a screen reader says, without addresses."""
    return unescape(re.sub(r'(href|value)="[^"]*"', "", page))


def window(**more: str) -> str:
    return f"/window?{urlencode({'traces': 'chats', 'run': 'chat', **more})}"


def speaks_by_names(words: str) -> None:
    assert not re.search(r"\bprocess \d", words)
    assert not re.search(r"\bclient \d", words)
    assert not re.search(r"\bmessage \d", words)


def test_verdicts_and_witnesses(chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(chat), "--property", "acyclic order", "--json"]) == 1
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert (
        "let a = message alpha#1 to {alpha,beta,gamma}, b = message web-7#1 to {alpha,beta}"
        in (verdict["explanation"])
    )
    assert "beta delivered b (step 0) and then a (step 1)" in verdict["explanation"]
    speaks_by_names(verdict["explanation"])
    assert [(step["node"], step["name"]) for step in verdict["witness"]] == [
        ("alpha", "alpha#1"),
        ("alpha", "web-7#1"),
        ("beta", "web-7#1"),
        ("beta", "alpha#1"),
    ]
    assert verdict["witness"][0]["message"] == "0.1", "by number, it is found in the trace"


def test_the_report(chat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(chat), "--out", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text()
    article = words_of(page[page.index('id="violation-1"') :].partition("</article>")[0])
    assert "alpha delivered a (message alpha#1)" in article
    assert "message web-7#1 to {alpha,beta}" in article
    assert re.search(r"<text[^>]*>gamma</text>", article)
    speaks_by_names(article)
    letters = re.findall(r"\b([ab]) = message (\S+)", article)
    assert set(letters) == {("a", "alpha#1"), ("b", "web-7#1")}


def test_exports(chat: Path, tmp_path: Path) -> None:
    assert main(["export", str(chat), "--to", "shiviz", "--out", str(tmp_path / "log")]) == 0
    log = (tmp_path / "log").read_text()
    assert "multicast web-7#1 to alpha,beta\nweb-7 {" in log
    assert "deliver alpha#1\ngamma {" in log


def test_the_lab_from_near(looked_at: Visited) -> None:
    words = words_of(loaded(looked_at, window()))
    for told in ("web-7 multicast b (message web-7#1)", ">alpha#1</a>", ">gamma</td>"):
        assert told in words
    assert "message alpha#1 to {alpha,beta,gamma}" in words
    speaks_by_names(words)


def test_the_lab_from_afar(looked_at: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexgroup.lab.closeup.MOST_EVENTS", 3)
    words = words_of(loaded(looked_at, window()))
    assert "only web-7" in words
    assert "alpha, " in words
    speaks_by_names(words)


def test_what_is_chosen_is_named(looked_at: Visited) -> None:
    words = words_of(loaded(looked_at, window(processes="0-1", message="3.1", destinations="0,1")))
    assert "only processes alpha,beta" in words
    assert "only messages web-7#1" in words
    assert "only messages to {alpha,beta}" in words


def test_a_message_is_found_by_its_name(looked_at: Visited) -> None:
    loaded(looked_at, window())
    assert looked_at.ask(window(called="web-7#1")).headers["location"] == window(message="3.1")
    missing = looked_at.ask(window(called="web-7#99"))
    assert missing.status == 400
    assert "no message of run 'chat' is called 'web-7#99'" in unescape(missing.text)


def test_names_are_no_markup(tmp_path: Path) -> None:
    """A log may have been written by somebody who means ill."""
    log = tmp_path / "log.jsonl"
    mean = '"><script>alert(1)</script>'
    lines = [
        {"at": 1, "node": mean, "event": "send", "message": f"{mean}#1", "to": [mean, "b"]},
        {"at": 2, "node": "b", "event": "deliver", "message": f"{mean}#1"},
    ]
    log.write_text("\n".join(map(json.dumps, lines)))
    program = f"{ROOT}/examples/from_json_lines.py"
    arguments = [log, "--nodes", f"{mean},b", "--run", "mean", "--out", tmp_path / "mean"]
    subprocess.run([sys.executable, program, *map(str, arguments)], check=True, capture_output=True)
    with listening(Lab((), [tmp_path / "mean"])) as lab:
        page = loaded(lab, "/window?traces=mean&run=mean")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
