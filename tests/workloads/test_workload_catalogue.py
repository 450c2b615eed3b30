"""How workloads are written, and what is said when one is written wrongly."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.errors import UsageError
from flexgroup.workloads import KINDS, WorkloadKind, parse_workload

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_the_example_in_the_documentation_is_true() -> None:
    ran = doctest.testfile(str(DOCUMENTATION), module_relative=False)
    assert ran.attempted > 0
    assert ran.failed == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.form)
def test_every_kind_in_the_table_can_be_written_as_its_example(kind: WorkloadKind) -> None:
    workload = parse_workload(kind.example, processes=16)
    assert workload.name == kind.example
    assert workload.processes == 16


def test_the_table_fits_a_help_text() -> None:
    for kind in KINDS:
        assert len(f"{kind.form:<16} {kind.description}") <= 80


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("random:04", "random:4"),
        ("partitioned:04x4", "partitioned:4x4"),
        ("alternating:02x8@.05", "alternating:2x8@0.05"),
        ("tpcc@.5", "tpcc@0.5"),
        ("tpcc@0.50", "tpcc@0.5"),
        ("random:N@1.0", "random:N@1"),
        ("broadcast@0", "broadcast@0"),
        ("partitioned:8x2@1e-3", "partitioned:8x2@0.001"),
    ],
)
def test_a_workload_is_named_in_one_way(spec: str, canonical: str) -> None:
    workload = parse_workload(spec, 16)
    assert workload.name == canonical
    assert parse_workload(canonical, 16).name == canonical


@pytest.mark.parametrize(
    ("spec", "wrong", "instead"),
    [
        ("", "there is no workload ''", "write one of random:K, random:N, tpcc"),
        ("zipf:4", "there is no workload 'zipf:4'", "write one of random:K, random:N, tpcc"),
        ("TPCC", "there is no workload 'TPCC'", "write one of random:K, random:N, tpcc"),
        ("random", "'' is not a number of destinations", "random:4, or random:N"),
        ("random:", "'' is not a number of destinations", "random:4, or random:N"),
        ("random:n", "'n' is not a number of destinations", "random:4, or random:N"),
        ("random:-1", "'-1' is not a number of destinations", "random:4, or random:N"),
        ("random:2.5", "'2.5' is not a number of destinations", "random:4, or random:N"),
        ("random:1_0", "'1_0' is not a number of destinations", "random:4, or random:N"),
        ("random:0", "wants 0 destinations out of 16 processes", "a number from 1 to 16"),
        ("random:17", "wants 17 destinations out of 16 processes", "a number from 1 to 16"),
        ("partitioned", "'' does not split processes", "such as partitioned:2x8"),
        ("partitioned:4", "'4' does not split processes", "such as partitioned:2x8"),
        ("partitioned:4xfour", "'4xfour' does not split processes", "such as partitioned:2x8"),
        ("partitioned:3x4", "is for 3 x 4 = 12 processes, not 16", "write partitioned:4x4"),
        ("partitioned:0x4", "is for 0 x 4 = 0 processes, not 16", "write partitioned:4x4"),
        ("alternating:4", "'4' does not split processes", "such as alternating:2x8"),
        ("alternating:3x4", "is for 3 x 4 = 12 processes, not 16", "write alternating:4x4"),
        ("tpcc:4", "nothing may follow tpcc but @P", "write tpcc or tpcc@0.02"),
        ("broadcast:", "nothing may follow broadcast but @P", "write broadcast or"),
        ("tpcc@", "'' is not a probability", "a number from 0 to 1, such as tpcc@0.02"),
        ("tpcc@2%", "'2%' is not a probability", "a number from 0 to 1, such as tpcc@0.02"),
        ("tpcc@nan", "'nan' is not a probability", "a number from 0 to 1, such as tpcc@0.02"),
        ("tpcc@-0.1", "'-0.1' is not a probability", "a number from 0 to 1, such as tpcc@0.02"),
        ("tpcc@1.1", "1.1 is not a probability", "a number from 0 to 1, such as tpcc@0.02"),
        ("random:4@5", "5 is not a probability", "a number from 0 to 1, such as random:4@0.02"),
        ("tpcc@0.1@0.2", "'0.1@0.2' is not a probability", "such as tpcc@0.02"),
    ],
)
def test_a_mistake_is_explained_with_what_to_write_instead(
    spec: str, wrong: str, instead: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_workload(spec, 16)
    explanation = str(refusal.value)
    assert wrong in explanation
    assert instead in explanation
    assert "\n" not in explanation


def test_a_workload_needs_a_process() -> None:
    with pytest.raises(UsageError, match="at least one process"):
        parse_workload("broadcast", 0)


@given(st.integers(1, 500))
def test_the_split_that_is_suggested_is_accepted(processes: int) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_workload(f"partitioned:1x{processes + 1}", processes)
    suggestion = str(refusal.value).split("write ")[1].split(",")[0]
    assert parse_workload(suggestion, processes).name == suggestion


@given(st.text())
def test_nothing_that_is_written_causes_any_other_error(spec: str) -> None:
    for text in (spec, f"random:{spec}", f"partitioned:{spec}", f"tpcc@{spec}"):
        refused = ""
        try:
            parse_workload(text, 16)
        except UsageError as refusal:
            refused = str(refusal)
        assert not refused or "write" in refused
        assert "\n" not in refused
