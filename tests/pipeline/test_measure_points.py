"""Means over repetitions and their confidence intervals."""

from __future__ import annotations

from math import gamma, pi, sqrt
from typing import Any

import pyarrow as pa
import pytest

from flexgroup.metrics.confidence import student_95
from flexgroup.metrics.sums import PACKETS
from flexgroup.metrics.tables import MEASURES, points, with_packet_types


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 31, 60])
def test_student_95_holds_95_percent(freedom: int) -> None:
    """The density, summed in small steps up to the quantile."""
    height = gamma((freedom + 1) / 2) / (sqrt(freedom * pi) * gamma(freedom / 2))
    steps = 20_000
    width = student_95(freedom) / steps
    middles = ((place + 0.5) * width for place in range(steps))
    inside = sum((1 + t * t / freedom) ** (-(freedom + 1) / 2) for t in middles)
    assert 2 * height * inside * width == pytest.approx(0.95, abs=1e-6)


RUNS = [
    (1, 5.0, "complete"),
    (3, 10.0, "complete"),
    (3, 12.0, "cut"),
    (3, 17.0, "complete"),
    (3, None, "complete"),
    *((42, float(number % 2), "complete") for number in range(42)),
]
"""Clients, throughput and outcome of each."""


@pytest.fixture(scope="module")
def by_clients() -> dict[int, dict[str, Any]]:
    """The points of RUNS, by the number of clients."""
    rows = [
        {
            "run": str(number),
            "seed": number,
            "clients": clients,
            "outcome": outcome,
            "throughput": throughput,
        }
        for number, (clients, throughput, outcome) in enumerate(RUNS)
    ]
    found = points(pa.Table.from_pylist(rows, MEASURES)).to_pylist()
    return {row["clients"]: row for row in found}


def test_repetitions_become_a_mean_with_an_interval(by_clients: dict[int, dict[str, Any]]) -> None:
    """10, 12 and 17 have mean 13 and standard deviation sqrt(13); t is 4.303 with 2 degrees of
    freedom. A run without the metric does not count in it."""
    point = by_clients[3]
    assert (point["runs"], point["cut_runs"], point["throughput"]) == (4, 1, 13.0)
    assert point["throughput_ci95"] == pytest.approx(4.302653 * sqrt(13) / sqrt(3))


def test_a_single_run_has_no_interval(by_clients: dict[int, dict[str, Any]]) -> None:
    point = by_clients[1]
    assert (point["runs"], point["throughput"], point["throughput_ci95"]) == (1, 5.0, None)


def test_the_interval_of_many_runs(by_clients: dict[int, dict[str, Any]]) -> None:
    deviation = sqrt(42 * 0.25 / 41)
    assert by_clients[42]["throughput_ci95"] == pytest.approx(2.019541 * deviation / sqrt(42))


def test_runs_without_a_seed_are_not_averaged() -> None:
    """Two logs of one system are no repetitions, however alike what describes them is."""
    rows = [
        {"run": name, "stack": "theirs", "outcome": "complete", "throughput": throughput}
        for name, throughput in (("monday", 10.0), ("tuesday", 1000.0))
    ]
    found = points(pa.Table.from_pylist(rows, MEASURES)).to_pylist()
    assert [(row["run"], row["runs"], row["throughput"]) for row in found] == [
        ("monday", 1, 10.0),
        ("tuesday", 1, 1000.0),
    ]


def test_types_of_packets_become_columns() -> None:
    """Of what processes sent; a run without a type sent none of it."""
    measures = pa.table({"run": ["a", "b"]})
    sent = [("a", "process", "Ack", 3), ("a", "client", "Ask", 9), ("b", "process", None, 1)]
    rows = [dict(zip(PACKETS.names, row, strict=False)) for row in sent]
    typed = with_packet_types(measures, pa.Table.from_pylist(rows, PACKETS))
    assert typed.to_pydict() == {"run": ["a", "b"], "packets_Ack": [3, 0]}
