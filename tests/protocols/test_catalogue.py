"""The table of protocols, and stacks by name."""

from __future__ import annotations

import pickle

import pytest

from flexgroup.protocols.catalogue import PROTOCOLS, RENAMED, parse_stack


@pytest.mark.parametrize("name", PROTOCOLS)
def test_rows_and_plans_can_be_pickled(name: str) -> None:
    """Workers of other processes are told by them what to build."""
    row, plan = PROTOCOLS[name], parse_stack(f"best-effort {name}")
    assert pickle.loads(pickle.dumps(row)) == row
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize("former", RENAMED)
def test_a_former_name_still_names_the_same(former: str) -> None:
    assert parse_stack(former) == parse_stack(RENAMED[former])


def test_forms_as_published_are_named_alike() -> None:
    forms = {name for name in PROTOCOLS if name.endswith("-published")}
    assert forms == {
        "dcc-published",
        "byzcast-published",
        "dcc-bft-published",
        "dcc-cft-published",
        "ft-abcast-published",
        "vcube-atomic-published",
        "xamp-atomic-published",
    }
    assert not any("published" in row.layer.OPTIONS for row in PROTOCOLS.values())
    for form in forms:
        assert form.removesuffix("-published") in PROTOCOLS


def test_what_a_protocol_tolerates_is_data_and_can_be_said() -> None:
    atomic = PROTOCOLS["vcube-atomic"]
    assert atomic.tolerates_crashes
    assert atomic.detector
    assert atomic.faults_in_words == "crashes, with a perfect detector"
    assert not PROTOCOLS["skeen"].tolerates_crashes
    assert PROTOCOLS["skeen"].faults_in_words == "none"
