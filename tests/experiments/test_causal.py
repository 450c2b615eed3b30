"""What causal order costs on the wire: the questions that are put to measurements."""

from __future__ import annotations

from typing import Any

import pytest

from flexgroup.experiments.causal import (
    ALL,
    CLIENTS,
    FOUR,
    ISIS,
    LOADS,
    MATRIX,
    NODES,
    REORDERING,
    STACKS,
    THREE,
    TIMES,
    VECTOR,
    a_matrix_is_less,
    a_matrix_to_few_is_less,
    a_vector_to_all_is_less,
    has_the_same_bound,
    is_bounded_by_a_matrix,
    only_isis_goes_on_growing,
)
from flexgroup.experiments.findings import Findings
from flexgroup.metrics.catalogue import METRICS
from flexgroup.protocols.catalogue import PROTOCOLS


def findings(headers: dict[str, float], bytes_by_load: dict[str, tuple[float, ...]]) -> Findings:
    """Two sizes and four loads, in which a stack has these header bytes, and these bytes."""
    rows: list[dict[str, Any]] = []
    for stack in STACKS:
        sizes = bytes_by_load.get(stack, (100.0,) * 4)
        where = [(workload, n, CLIENTS, sizes[0]) for workload in (THREE, ALL) for n in (4, 8)]
        where += [(FOUR, NODES, load, size) for load, size in zip(LOADS, sizes, strict=True)]
        for workload, processes, clients, size in where:
            measured = dict.fromkeys(("latency_last_mean", *METRICS), 1.0)
            measured |= {"header_bytes": headers.get(stack, 1.0), "volume_bytes": size}
            rows.append(
                {**measured, "stack": stack, "workload": workload, "processes": processes,
                 "clients": clients, "network": REORDERING, "faults": "", "crashed": 0}
            )  # fmt: skip
    return Findings.of_tables(rows, []).on(REORDERING)


def test_every_protocol_that_gives_causal_order_and_no_more_is_compared() -> None:
    causal = {name for name in PROTOCOLS if "causal" in name.split("-")}
    assert set(STACKS) == causal


@pytest.mark.parametrize(("bytes_", "holds"), [(40.0, True), (60.0, False)])
def test_a_matrix_of_four_by_four_has_so_many_bytes(bytes_: float, holds: bool) -> None:
    """Two for each of 16 numbers, and for what a header to three processes has besides: 50."""
    assert is_bounded_by_a_matrix(findings({MATRIX: bytes_}, {}))[0] is holds


@pytest.mark.parametrize(("bytes_", "holds"), [(50.0, True), (70.0, False)])
def test_pairs_have_a_bound_that_is_little_more(bytes_: float, holds: bool) -> None:
    assert has_the_same_bound(findings({TIMES: bytes_}, {}))[0] is holds


FLAT, GROWING = (100.0, 100.0, 110.0, 120.0), (100.0, 200.0, 400.0, 800.0)


@pytest.mark.parametrize(
    ("matrix", "isis", "holds"),
    [(FLAT, GROWING, True), (FLAT, FLAT, False), (GROWING, GROWING, False)],
)
def test_only_isis_may_go_on_growing(
    matrix: tuple[float, ...], isis: tuple[float, ...], holds: bool
) -> None:
    found = only_isis_goes_on_growing(findings({}, {MATRIX: matrix, ISIS: isis}))
    assert found[0] is holds


def test_less_means_everywhere() -> None:
    for isis, holds in ((GROWING, False), ((200.0,) * 4, True)):
        assert a_matrix_is_less(findings({}, {MATRIX: FLAT, ISIS: isis}))[0] is holds


def test_a_vector_and_a_matrix_change_places_with_the_number_of_destinations() -> None:
    less, more = (100.0,) * 4, (200.0,) * 4
    found = findings({}, {VECTOR: less, MATRIX: more})
    assert a_vector_to_all_is_less(found)[0]
    assert not a_matrix_to_few_is_less(found)[0]
