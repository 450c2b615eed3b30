"""The converters of examples/: what they write can be validated and checked, and what they cannot
read they refuse by line."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.reader import load_history, read_run, read_runs
from flexgroup.trace.validate.report import validate

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
JSON_LOG = EXAMPLES / "data" / "deliveries.jsonl"
CSV_LOG = EXAMPLES / "data" / "deliveries.csv"

NODES = ("--nodes", "alpha,beta,gamma")
PROCESSES = ("--processes", "3")


@dataclass(frozen=True)
class Ended:
    code: object
    said: str
    complained: str


def converted(name: str, log: Path, out: Path, *more: str) -> str:
    """Runs a converter as a user does; what it printed."""
    command = [sys.executable, str(EXAMPLES / name), str(log), "--out", str(out), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


Convert = Callable[..., Ended]


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Convert:
    """Runs a converter here, as starting Python for each bad line would take too long."""

    def run(name: str, log: Path, out: Path, *more: str) -> Ended:
        monkeypatch.setattr(sys, "argv", [name, str(log), "--out", str(out), *more])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr()
        return Ended(ended.value.code, printed.out, printed.err)

    return run


def refused(ended: Ended, out: Path) -> str:
    assert ended.code == 2
    assert list(out.glob("**/*.parquet")) == []
    return ended.complained.splitlines()[-1]


def verdict_on(out: Path, run: str, name: str) -> Verdict:
    [verdict] = check(load_history(out, read_run(out, run)), [name])
    return verdict


def test_json_lines_in_which_the_order_is_violated(tmp_path: Path) -> None:
    said = converted("from_json_lines.py", JSON_LOG, tmp_path, *NODES)
    assert said == "10 events of 3 members and 1 clients: run 'deliveries'\n"
    assert validate(tmp_path).problems == []
    assert verdict_on(tmp_path, "deliveries", "validity").outcome is Outcome.HOLDS
    order = verdict_on(tmp_path, "deliveries", "acyclic order")
    assert order.outcome is Outcome.VIOLATED
    assert order.explanation.splitlines()[0] == (
        "let a = message alpha#1 to {alpha,beta,gamma}, b = message web-7#1 to {alpha,beta}"
    )


def test_csv_in_which_all_is_well(tmp_path: Path) -> None:
    said = converted("from_csv.py", CSV_LOG, tmp_path, *PROCESSES)
    assert said == "10 events of 3 processes and 1 clients: run 'deliveries'\n"
    assert validate(tmp_path).problems == []
    history = load_history(tmp_path, read_run(tmp_path, "deliveries"))
    outcomes = {verdict.property: verdict.outcome for verdict in check(history)}
    assert outcomes["acyclic order"] is outcomes["validity"] is Outcome.HOLDS
    assert Outcome.VIOLATED not in outcomes.values()
    assert history.multicasts.time.tolist() == [100_000, 900_000, 130_000]


def test_both_write_into_one_set_and_overwrite_only_when_told(
    tmp_path: Path, convert: Convert
) -> None:
    convert("from_json_lines.py", JSON_LOG, tmp_path, *NODES, "--run", "json", "--cut")
    convert("from_csv.py", CSV_LOG, tmp_path, *PROCESSES, "--stack", "theirs")
    runs = read_runs(tmp_path)
    assert [(run.run, run.outcome, run.stack) for run in runs] == [
        ("deliveries", "complete", "theirs"),
        ("json", "cut", "unnamed"),
    ]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    again = convert("from_csv.py", CSV_LOG, tmp_path, *PROCESSES)
    assert again.code == 2
    assert "already holds run 'deliveries'" in again.complained
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert convert("from_csv.py", CSV_LOG, tmp_path, *PROCESSES, "--force").code == 0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "this is no JSON: Expecting property name"),
        ("[]", "this is no JSON object"),
        ('{"at": 1, "node": "alpha", "event": "send"}', "there is no 'message'"),
        (
            '{"at": "noon", "node": "alpha", "event": "send", "message": "alpha#1"}',
            "there is no 'at' that is a number of seconds",
        ),
        (
            '{"at": 1e300, "node": "alpha", "event": "deliver", "message": "alpha#1"}',
            "'at' is 1E+300; give seconds that fit",
        ),
        (
            '{"at": NaN, "node": "alpha", "event": "deliver", "message": "alpha#1"}',
            "there is no 'at' that is a number of seconds",
        ),
        (
            '{"at": 1, "node": "alpha", "event": "send", "message": "alpha#2", "to": "beta"}',
            "list their names in 'to'",
        ),
        (
            '{"at": 1, "node": "alpha", "event": "deliver", "message": "a#8796093022208"}',
            "is not SENDER#NUMBER, with up to 43 bits",
        ),
        ('{"at": 1, "node": "alpha", "event": "ack", "message": "a#1"}', "event 'ack' is none of"),
        ('{"at": 1, "node": "alpha", "event": "send", "message": "x"}', "is not SENDER#NUMBER"),
        (
            '{"at": 1, "node": "delta", "event": "deliver", "message": "alpha#1"}',
            "'delta' is not among the members; name it in --nodes",
        ),
    ],
)
def test_a_bad_line_of_json(tmp_path: Path, line: str, told: str, convert: Convert) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(JSON_LOG.read_text() + line + "\n")
    said = refused(convert("from_json_lines.py", log, tmp_path / "out", *NODES), tmp_path / "out")
    assert said.startswith(f"from_json_lines.py: {log}, line 11: ")
    assert told in said


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1200,one,deliver,2,1,", "line 12: 'one' is no node"),
        ("1200,1,receive,2,1,", "line 12: 'receive' is no event"),
        ("1200,1,multicast,1,1,2;3", "line 12: '2;3' is no destinations"),
        ("1200,1,multicast,1,1,", "line 12: a multicast without destinations"),
        ("1200,1,deliver,2,8796093022208,", "line 12: '8796093022208' is no number"),
        ("1200,3,deliver,2,1,", "line 12: a client receives; processes are 0 to 2"),
        ("1200,1,multicast,1,1,0 7", "line 12: a client receives; processes are 0 to 2"),
        ("1200,1,deliver", "Row #12: Expected 6 columns, got 3"),
        ("\n", "line 12: '' is no time_us"),
    ],
)
def test_a_bad_line_of_csv(tmp_path: Path, line: str, told: str, convert: Convert) -> None:
    log = tmp_path / "log.csv"
    log.write_text(CSV_LOG.read_text() + line + "\n")
    said = refused(convert("from_csv.py", log, tmp_path / "out", *PROCESSES), tmp_path / "out")
    assert said.startswith(f"from_csv.py: {log}: ")
    assert told in said


def test_a_csv_without_a_column(tmp_path: Path, convert: Convert) -> None:
    log = tmp_path / "log.csv"
    log.write_text("time_us,node,event,sender,number\n1,2,deliver,0,1\n")
    said = refused(convert("from_csv.py", log, tmp_path / "out", *PROCESSES), tmp_path / "out")
    assert "line 1: there is no column 'destinations'; begin with time_us,node," in said


@pytest.mark.parametrize(
    ("name", "more"), [("from_json_lines.py", NODES), ("from_csv.py", PROCESSES)]
)
def test_a_log_that_is_not_there(
    tmp_path: Path, name: str, more: tuple[str, str], convert: Convert
) -> None:
    assert "nowhere" in refused(
        convert(name, tmp_path / "nowhere", tmp_path / "out", *more), tmp_path / "out"
    )


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        ("from_json_lines.py", NODES, ""),
        ("from_csv.py", PROCESSES, ""),
        ("from_csv.py", PROCESSES, "time_us,node,event,sender,number,destinations\n"),
    ],
)
def test_an_empty_log_is_no_run_in_which_all_is_well(
    tmp_path: Path, name: str, more: tuple[str, str], text: str, convert: Convert
) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    refused(convert(name, log, tmp_path / "out", *more), tmp_path / "out")


@pytest.mark.parametrize("nodes", ["", "alpha,alpha,beta", "alpha,,beta"])
def test_members_are_named_once(tmp_path: Path, nodes: str, convert: Convert) -> None:
    ended = convert("from_json_lines.py", JSON_LOG, tmp_path / "out", "--nodes", nodes)
    assert "--nodes names each member once" in refused(ended, tmp_path / "out")


def test_csv_needs_a_process(tmp_path: Path, convert: Convert) -> None:
    ended = convert("from_csv.py", CSV_LOG, tmp_path / "out", "--processes", "0")
    assert "0 processes deliver nothing" in refused(ended, tmp_path / "out")


@pytest.mark.parametrize("run", ["a/b", "_draft", "..", "x" * 300])
def test_the_name_of_a_run_names_files(tmp_path: Path, run: str, convert: Convert) -> None:
    ended = convert("from_csv.py", CSV_LOG, tmp_path / "out", *PROCESSES, "--run", run)
    assert "a run cannot be called" in refused(ended, tmp_path / "out")
