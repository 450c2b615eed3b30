"""What was tampered with is found, by name and with the right witness, in small and large runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from flexgroup.core.message import name_of
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.verify import SizeLimits, large_runs, verify

from .made_up_runs import write_all
from .tampered_runs import TAMPERINGS, Tampered
from .tampering import correct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKED = [
    "integrity", "validity", "agreement", "fifo order", "causal order", "pairwise order",
    "prefix order", "acyclic order", "minimality",
]  # fmt: skip


@dataclass
class Verified:
    """The verdicts of a trace set by run and property, and what was done to its runs."""

    verdicts: dict[tuple[str, str], Any]
    tampered: dict[str, Tampered]


LARGE = SizeLimits(events_from_files=0, whole_deliveries=5_000, cell_deliveries=1_000)
"""What counts as large: so few deliveries that a large run is over soon."""


@dataclass(frozen=True)
class Size:
    """How many deliveries each run has, and how large runs are then told from small ones."""

    deliveries: int
    limits: SizeLimits


# All runs of the second size together have more deliveries than are looked at to see where to cut
# them, and each run is cut into several slices.
SIZES = {"small runs": Size(1_000, SizeLimits()), "large runs": Size(30_000, LARGE)}


@pytest.fixture(scope="module", params=SIZES)
def verified(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Verified:
    size = SIZES[request.param]
    deliveries = size.deliveries
    tampered = {tamper.__name__: tamper(deliveries) for tamper in TAMPERINGS}
    untampered = correct(deliveries, packets=True)
    directory = tmp_path_factory.mktemp("tampered")
    write_all(directory, [untampered, *(case.history for case in tampered.values())])
    traces = open_trace_set(spark, str(directory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_runs, "PART_DELIVERIES", 50_000)
        patch.setattr(large_runs, "MOST_TASKS", 8)
        rows = verify(traces, CHECKED, size.limits).collect()
    return Verified({(row.run, row.property): row for row in rows}, tampered)


@pytest.mark.slow
def test_nothing_is_reported_before_tampering(verified: Verified) -> None:
    outcomes = {name: verified.verdicts["untampered", name].outcome for name in CHECKED}
    assert set(outcomes.values()) == {"holds"}, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("name", [tamper.__name__ for tamper in TAMPERINGS])
def test_tampering_is_found(verified: Verified, name: str) -> None:
    case = verified.tampered[name]
    verdict = verified.verdicts[case.history.run, case.violated]
    assert verdict.outcome == "violated"
    assert verdict.violations == 1
    witness = json.loads(verdict.witness)
    assert {step["message"] for step in witness} == {name_of(m) for m in case.messages}
