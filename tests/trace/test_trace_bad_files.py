"""Files that are not what they should be: every error names the file and what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.trace.reader import load_history, read_run, read_runs

from .damages import (
    Damage,
    cut_in_half,
    damage_the_middle,
    flip_a_bit_of,
    make_empty,
    make_foreign,
    make_text,
    with_null,
    with_type,
    without,
    without_checksums,
    without_rows,
)
from .recorded import SCENARIO, event_file, record, replay_again, run_file, tamper

UNREADABLE = "remove it or record the run again"
NOT_A_TRACE = "see docs/trace.md for the columns"


@pytest.mark.parametrize(
    ("damage", "advice"),
    [
        (cut_in_half, UNREADABLE),
        (make_empty, UNREADABLE),
        (make_text, UNREADABLE),
        (make_foreign, NOT_A_TRACE),
        (without("stack"), NOT_A_TRACE),
        (with_type("processes", pa.int64()), NOT_A_TRACE),
        (with_type("seed", pa.string()), NOT_A_TRACE),
        (with_null("schema_version"), "schema_version"),
        (with_null("processes"), "processes"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_bad_file_of_runs(tmp_path: Path, damage: Damage, advice: str) -> None:
    path = run_file(tmp_path, record(tmp_path))
    damage(path)
    with pytest.raises(UsageError) as caught:
        read_runs(tmp_path)
    assert str(path) in str(caught.value)
    assert advice in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["multicast", "send", "receive", "deliver"])
@pytest.mark.parametrize(
    ("damage", "advice"),
    [
        (cut_in_half, UNREADABLE),
        (make_empty, UNREADABLE),
        (make_text, UNREADABLE),
        (damage_the_middle, UNREADABLE),
        (make_foreign, NOT_A_TRACE),
        (without("step"), NOT_A_TRACE),
        (with_type("time", pa.float64()), NOT_A_TRACE),
        (with_type("process", pa.int64()), NOT_A_TRACE),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_bad_file_of_events(tmp_path: Path, kind: str, damage: Damage, advice: str) -> None:
    run = record(tmp_path)
    path = event_file(tmp_path, kind, run)
    damage(path)
    for use in (load_history, replay_again):
        with pytest.raises(UsageError) as caught:
            use(tmp_path, read_run(tmp_path, run))
        assert str(path) in str(caught.value)
        assert advice in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_text_that_was_damaged(tmp_path: Path) -> None:
    """Files of other systems may have no checksums, and a flipped bit may hit the name of the
    run."""
    run = record(tmp_path)
    path = event_file(tmp_path, "send", run)
    without_checksums(path)
    name = run.encode()
    path.write_bytes(path.read_bytes().replace(name, name[:-1] + b"\x99"))
    with pytest.raises(UsageError) as caught:
        load_history(tmp_path, read_run(tmp_path, run))
    assert str(path) in str(caught.value)
    assert "UTF8" in str(caught.value)


def test_a_bit_that_was_flipped_in_a_file_with_checksums(tmp_path: Path) -> None:
    """It may leave a number that is as good as any other."""
    run = record(tmp_path)
    for path, column in (
        (event_file(tmp_path, "deliver", run), "step"),
        (run_file(tmp_path, run), "processes"),
    ):
        whole = path.read_bytes()
        flip_a_bit_of(column)(path)
        with pytest.raises(UsageError, match=re.escape(f"'{path}'") + ".*CRC checksum"):
            load_history(tmp_path, read_run(tmp_path, run))
        path.write_bytes(whole)


def test_the_error_says_which_column_and_which_type(tmp_path: Path) -> None:
    run = record(tmp_path)
    path = event_file(tmp_path, "deliver", run)
    with_type("time", pa.float64())(path)
    with pytest.raises(UsageError) as caught:
        load_history(tmp_path, read_run(tmp_path, run))
    assert str(caught.value) == (
        f"'{path}': column 'time' is double, not int64; see docs/trace.md for the columns"
    )
    without("time")(path)
    with pytest.raises(UsageError) as caught:
        load_history(tmp_path, read_run(tmp_path, run))
    assert str(caught.value) == (
        f"'{path}' has no column 'time': it is not a FlexGroup trace; "
        "see docs/trace.md for the columns"
    )


@pytest.mark.parametrize("kind", ["send", "receive"])
def test_columns_that_may_be_null_may_be_missing(tmp_path: Path, kind: str) -> None:
    """Foreign systems record what they have: details are not needed for any check."""
    run = record(tmp_path)
    whole = load_history(tmp_path, read_run(tmp_path, run))
    without("detail")(event_file(tmp_path, kind, run))
    history = load_history(tmp_path, read_run(tmp_path, run))
    assert history.sends.message.tolist() == whole.sends.message.tolist()


@pytest.mark.parametrize(
    ("kind", "column"), [("multicast", "destinations"), ("multicast", "origin"), ("deliver", "seq")]
)
def test_a_column_that_this_kind_cannot_do_without(tmp_path: Path, kind: str, column: str) -> None:
    """It may be null in other kinds of events, but here nothing could be checked."""
    run = record(tmp_path)
    path = event_file(tmp_path, kind, run)
    without(column)(path)
    with pytest.raises(UsageError, match=re.escape(f"'{path}'") + f".*'{column}'"):
        load_history(tmp_path, read_run(tmp_path, run))


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_runs(tmp_path)
    assert str(caught.value) == (
        f"'{tmp_path}' holds no runs (no runs/*.parquet); record one with: "
        f"flexgroup simulate --protocol skeen --out {tmp_path}"
    )


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory; give the directory of a trace set"):
        read_runs(tmp_path / "nowhere")


def test_no_such_run(tmp_path: Path) -> None:
    record(tmp_path)
    with pytest.raises(UsageError, match="holds no run 'other'"):
        read_run(tmp_path, "other")


def test_a_file_of_runs_without_a_row(tmp_path: Path) -> None:
    run = record(tmp_path)
    path = run_file(tmp_path, run)
    without_rows(path)
    with pytest.raises(UsageError, match=re.escape(str(path))):
        read_run(tmp_path, run)
    with pytest.raises(UsageError, match=re.escape(str(path))):
        read_runs(tmp_path)


def test_the_same_run_twice(tmp_path: Path) -> None:
    run = record(tmp_path)
    again = run_file(tmp_path, "zz-copy")
    again.write_bytes(run_file(tmp_path, run).read_bytes())
    with pytest.raises(UsageError) as caught:
        read_runs(tmp_path)
    assert str(caught.value) == f"'{again}' describes run '{run}' again; keep one of them"


def test_a_run_of_a_newer_version(tmp_path: Path) -> None:
    run = record(tmp_path)
    path = run_file(tmp_path, run)
    tamper(path, lambda rows: rows[0].update(schema_version=3))
    with pytest.raises(
        UsageError, match=r"written by a newer version \(schema 3, this one reads 2"
    ):
        read_runs(tmp_path)


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    run = record(tmp_path)
    (tmp_path / "runs" / "_half.parquet").write_text("in the making")
    (tmp_path / "runs" / "README.txt").write_text("notes")
    (tmp_path / "events" / "event=send" / "_half.parquet").write_text("in the making")
    assert [row.run for row in read_runs(tmp_path)] == [run]
    load_history(tmp_path, read_run(tmp_path, run))


def test_events_of_several_runs_in_one_file(tmp_path: Path) -> None:
    """As another system, or Spark, may write them."""
    one, other = record(tmp_path), record(tmp_path, replace(SCENARIO, seed=2))
    expected = {
        name: load_history(tmp_path, read_run(tmp_path, name)).deliveries.message.tolist()
        for name in (one, other)
    }
    paths = [event_file(tmp_path, "deliver", name) for name in (one, other)]
    together = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
    for path in paths:
        path.unlink()
    pq.write_table(together, paths[0].with_name("part-0.parquet"))
    for name in (one, other):
        history = load_history(tmp_path, read_run(tmp_path, name))
        assert history.deliveries.message.tolist() == expected[name]
