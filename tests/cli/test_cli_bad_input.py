"""Bad input: exit code 2, and one line on standard error that says what to do."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main

SIMULATE = "simulate --protocol skeen --processes 4 --clients 2 --workload random:2".split()
QUICK = ["--duration", "0.002", "--network", "unit"]


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command answers bad input with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("flexgroup: error: ")
    return line.removeprefix("flexgroup: error: ")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            ["--protocol", "oracle"],
            "unknown protocol 'oracle'; choose from: best-effort, reliable, fifo, ",
        ),
        (["--protocol", ""], "the stack is empty; name at least one protocol"),
        (["--protocol", "skeen/rv"], "'skeen' has no option 'rv'; it has: none"),
        (["--protocol", "dcc/xx"], "'dcc' has no option 'xx'; it has: rv"),
        (["--processes", "0"], "0 processes cannot be simulated; give a number from 1 to"),
        (["--processes", "-3"], "-3 processes cannot be simulated"),
        (["--processes", "many"], "argument --processes: invalid int value: 'many'; see"),
        (["--clients", "0"], "0 clients cannot be simulated; give a number from 1 to"),
        (["--duration", "-1"], "a duration of -1.0 s is not possible; give seconds above 0"),
        (["--duration", "0"], "a duration of 0.0 s is not possible"),
        (["--duration", "nan"], "a duration of nan s is not possible"),
        (["--drain", "-1"], "is not possible; give 0"),
        (["--rate", "-1"], "is not possible; give 0"),
        (["--drain", "inf"], "drain"),
        (["--rate", "nan"], "rate"),
        (["--workload", "tpcd"], "there is no workload 'tpcd': write one of random:K"),
        (
            ["--workload", "random:5"],
            "wants 5 destinations out of 4 processes, or groups",
        ),
        (["--workload", "random:0"], "wants 0 destinations out of 4 processes"),
        (["--workload", "random:x"], "'x' is not a number of destinations: write one"),
        (["--workload", "partitioned:3x2"], "not 4: write partitioned:2x2"),
        (["--workload", "random:2@1.5"], "1.5 is not a probability: write a number from 0 to 1"),
        (["--network", "cable"], "unknown network 'cable'; choose from: unit, lan, wan, neko"),
        (["--network", "lan:speed=1"], "'speed=1' is not option=value; options: delay"),
        (["--network", "lan:loss=7"], "loss is a share from 0 to 1, not '7'"),
        (["--network", "lan:delay=slow"], "'slow' is not a time; write for example 50us"),
        (["--groups", "3"], "--groups 3: write how many groups of how many, for example 10x3"),
        (["--groups", "2x3"], "groups of 3, 3 replicas do not divide 4 processes: every process"),
        (["--protocol", "paxos"], "'paxos' works in groups of replicas, and the processes are not"),
        (
            ["--protocol", "leader paxos", "--groups", "2x2", "--workload", "random:2"],
            "a message to 0,1,2,3 cannot be multicast: with paxos, a message goes to all members",
        ),
        (["--crash", "9@1s"], "'9' is not a process; they are 0 to 3"),
        (["--crash", "1"], "write PROCESS@TIME, for example 3@1.5s"),
        (["--recover", "1@1s"], "add --crash 1@TIME with an earlier time"),
        (["--partition", "0|1"], "write for example 0,1|2,3@1s-2s"),
        (["--suspect", "0@1s-2s"], "write WHO:WHOM@START-END"),
        (["--suspect", "1:1@1s-2s"], "does not suspect itself"),
        (["--view", "0,1"], "write MEMBERS@TIME"),
        (["--view", "0,9@1s"], "'9' is not a process"),
        (["--detection", "soon"], "'soon' is not a time"),
        (["--check", "some"], "argument --check: invalid choice: 'some'"),
        (["--colour"], "unrecognized arguments: --colour; see flexgroup --help"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_simulate(more: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in complaint([*SIMULATE, *QUICK, *more], capsys)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--max-states", "-1"], "--max-states: '-1' is not possible; give a whole number from 1"),
        (["--max-depth", "0"], "--max-depth: '0' is not possible; give a whole number from 1"),
        (["--max-seconds", "nan"], "--max-seconds: 'nan' is not possible; give seconds above 0"),
        (["--max-memory", "many"], "--max-memory: 'many' is not possible"),
        (["--crashes", "-1"], "cannot be negative"),
        (["--message", "0,9"], "destination 9 does not exist; processes are 0 to 2"),
        (["--resume", "nowhere"], "cannot read 'nowhere'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_explore(more: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = "explore --protocol skeen --processes 3 --message 0,1".split()
    assert told in complaint([*small, *more], capsys)


def test_what_the_operating_system_refuses_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(options: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "runs/first/events")

    monkeypatch.setattr("flexgroup.cli.protocols.run", full)
    assert complaint(["protocols"], capsys) == "runs/first/events: No space left on device"


def test_ctrl_c_while_spark_works_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As py4j has it: a traceback in the log, and then the interrupt."""

    def interrupted(options: object) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            logging.exception("KeyboardInterrupt while sending command.")
            raise

    monkeypatch.setattr("flexgroup.cli.protocols.run", interrupted)
    assert main(["protocols"]) == 130
    assert capsys.readouterr().err == (
        "flexgroup: error: interrupted; nothing half-written was kept\n"
    )


def test_ctrl_c_while_a_command_is_being_loaded_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flexgroup.cli.parser.build_parser", interrupted)
    assert main(["protocols"]) == 130
    assert capsys.readouterr().err.startswith("flexgroup: error: interrupted")


def test_dcc_needs_fifo_channels(capsys: pytest.CaptureFixture[str]) -> None:
    line = complaint([*SIMULATE, "--protocol", "dcc", "--network", "lan:fifo=no"], capsys)
    assert line == (
        "Dcc needs fifo, reliable, but the network gives only reliable: missing fifo "
        "(what one process sends to another arrives in the order it was sent); "
        "put a layer that gives it below Dcc, or change the network"
    )


def test_skeen_needs_reliable_channels(capsys: pytest.CaptureFixture[str]) -> None:
    for unreliable in (
        ["--network", "lan:loss=0.1"],
        ["--network", "lan:duplication=0.1"],
        ["--partition", "0,1|2,3@0s-1s!drop"],
    ):
        assert "missing reliable" in complaint([*SIMULATE, *unreliable], capsys)


def test_a_seed_that_a_trace_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything is written."""
    huge = str(1 << 70)
    line = complaint([*SIMULATE, *QUICK, "--seed", huge, "--out", str(tmp_path)], capsys)
    assert "seed" in line
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: COMMAND; see flexgroup --help"),
        (["destroy"], "invalid choice: 'destroy'"),
        (["simulate"], "the following arguments are required: --protocol/--stack; see"),
        (["replay"], "the following arguments are required: path; see flexgroup replay --help"),
        (["protocols", "skeen"], "unrecognized arguments: skeen"),
        (["protocols", "--yaml"], "unrecognized arguments: --yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in complaint(arguments, capsys)


def test_a_directory_that_cannot_be_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("a regular file")
    out = str(tmp_path / "file" / "traces")
    line = complaint([*SIMULATE, *QUICK, "--out", out], capsys)
    assert line.startswith(f"cannot write a trace into '{out}': Not a directory; choose a")


def test_the_directory_of_an_experiment_cannot_be_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("a regular file")
    line = complaint(["experiment", "demo", "--out", str(tmp_path / "file")], capsys)
    assert "choose a directory that you may write to" in line


@pytest.mark.parametrize("command", ["verify", "measure"])
def test_a_trace_set_that_is_not_there_is_told_before_spark_starts(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("flexgroup.pipeline.spark.session.spark_environment", pytest.fail)
    missing = str(tmp_path / "missing")
    line = complaint([command, missing], capsys)
    assert line == f"'{missing}' does not exist; give the directory of a trace set"


@pytest.mark.parametrize("command", ["verify", "measure", "report"])
def test_a_place_that_cannot_be_written_to_is_told_before_spark_starts(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recorded(tmp_path, capsys)
    monkeypatch.setattr("flexgroup.pipeline.spark.session.spark_environment", pytest.fail)
    line = complaint([command, str(tmp_path), "--out", "/dev/null/there/it"], capsys)
    assert "Not a directory; choose another place with --out" in line


def test_a_master_that_spark_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Java would say so with a stack trace."""
    recorded(tmp_path, capsys)
    line = complaint(["verify", str(tmp_path), "--master", "spark:/host"], capsys)
    assert line.startswith("there is no Spark 'spark:/host'; give a master such as local[4]")


# Replay.


STACK = "stack skeen over fifo channels, processes 3\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "holds no command; see docs/scripts.md"),
        ("# only a comment\n", "holds no command; see docs/scripts.md"),
        ("cast 0 a to=1\n", "line 1: the script must begin with a stack, for example: stack"),
        ("stack skeen\n", "line 1: 'stack skeen': write: stack NAME over fifo channels"),
        ("stack oracle over fifo channels, processes 3\n", "line 1: unknown protocol 'oracle'"),
        ("stack skeen over fifo channels, processes 0\n", "a script needs at least one process"),
        ("stack dcc over reordering channels, processes 3\n", "missing fifo"),
        (STACK + "cast 0 a to=0,3\n", "destination 3 does not exist; processes are 0 to 2"),
        (STACK + "cast 0 a to=x\n", "write: cast ORIGIN NAME to=0,2"),
        (STACK + "deliver 0->1\n", "there is no packet 0 in flight from 0 to 1"),
        (STACK + "fly 0\n", "unknown command 'fly'; commands: stack, cast, deliver"),
        (STACK + "----\nok\n\n----\n", "an answer without a command before it"),
        (
            "stack df over fifo channels, processes 2\ncast 2 a to=0,1\ndeliver 2->0\n"
            "deliver 0->1\nduplicate 1->0\ndeliver 1->0\ndeliver 1->0\n",
            "process 1 sent End, which DelporteFauconnier at process 0 cannot take here",
        ),
    ],
)
def test_a_bad_script(
    script: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "script.txt"
    path.write_text(script)
    # With --json nothing is printed before the error; without, the steps so far are.
    line = complaint(["replay", str(path), "--json"], capsys)
    assert str(path) in line
    assert told in line


def test_a_script_is_wrong_in_a_certain_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "script.txt"
    path.write_text(f"# Two blocks.\n{STACK}----\nok\n\ncast 3 a to=0,7\n----\n")
    line = complaint(["replay", str(path), "--json"], capsys)
    assert line.startswith(f"{path}, line 6: destination 7 does not exist")


def test_replay_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing")
    told = f"'{missing}' does not exist; give a script or the directory of a trace set"
    assert complaint(["replay", missing], capsys) == told
    told = f"'{tmp_path}' holds no runs (no runs/*.parquet); record one with: "
    assert complaint(["replay", str(tmp_path)], capsys).startswith(told)


def recorded(directory: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A trace set with one run; the file of its deliveries."""
    assert main([*SIMULATE, *QUICK, "--out", str(directory)]) == 0
    capsys.readouterr()
    (path,) = directory.glob("events/event=deliver/*.parquet")
    return path


def test_replay_of_a_truncated_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, capsys)
    path.write_bytes(path.read_bytes()[:100])
    line = complaint(["replay", str(tmp_path)], capsys)
    assert line.startswith(f"cannot read '{path}' as Parquet: ")
    assert line.endswith("remove it or record the run again")


def test_replay_of_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, capsys)
    pq.write_table(pa.table({"city": ["Porto Alegre"]}), path)
    line = complaint(["replay", str(tmp_path)], capsys)
    assert line.startswith(f"'{path}' has no column 'run': it is not a FlexGroup trace; see")


def test_replay_of_one_file_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, capsys)
    line = complaint(["replay", str(path)], capsys)
    assert line == f"'{path}' is not a text; give a script"


def test_replay_of_a_run_of_an_unknown_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path, capsys)
    (path,) = tmp_path.glob("runs/*.parquet")
    table = pq.ParquetFile(path).read()
    position = table.column_names.index("stack")
    field = table.schema.field("stack")
    pq.write_table(table.set_column(position, field, pa.array(["oracle"])), path)
    line = complaint(["replay", str(tmp_path)], capsys)
    assert (
        "cannot be replayed, which takes the code that made it: unknown protocol 'oracle'" in line
    )
    assert line.endswith("name the module of a protocol of your own with --protocols")


def test_a_changed_trace_gives_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, capsys)
    table = pq.ParquetFile(path).read()
    rows = table.to_pylist()
    crowded = max(range(4), key=lambda process: sum(row["process"] == process for row in rows))
    first, second = [row for row in rows if row["process"] == crowded][:2]
    for column in ("origin", "seq"):
        first[column], second[column] = second[column], first[column]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert main(["replay", str(tmp_path)]) == 1
    assert "DIVERGES: process " in capsys.readouterr().out
