"""200,000 random schedules of small systems for each protocol: which promises break?

Systems of 3 to 6 processes, every other one with locality; each schedule is fixed by its
seed. Prints, per protocol, how many schedules ended in a cycle or never finished, and the
smallest system of each kind, and exits with 1 if a protocol that should hold does not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from random import Random

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.schedules import Finding, random_system, run_schedule

STACKS = (
    ("skeen", False),
    ("df", False),
    ("dcc", True),
    ("dcc/rv", True),
    ("fifo dcc", False),
    ("dcc-published", True),
)
"""Each with whether its channels are FIFO."""

BROKEN = {"dcc-published"}

AT_ONCE = 5_000


def search(stack: str, fifo: bool, seeds: range) -> list[Finding]:
    plan = parse_stack(stack)
    findings = []
    for seed in seeds:
        random = Random(seed)
        system = random_system(random, locality=seed % 2 == 0)
        finding = run_schedule(plan, system, random, fifo)
        if finding is not None:
            findings.append(finding)
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description="Random schedules of small systems.")
    parser.add_argument("--schedules", type=int, default=200_000, help="per protocol")
    options = parser.parse_args()
    unexpected = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for stack, fifo in STACKS:
            start = time.perf_counter()
            parts = [
                range(first, min(first + AT_ONCE, options.schedules))
                for first in range(0, options.schedules, AT_ONCE)
            ]
            found = pool.map(search, [stack] * len(parts), [fifo] * len(parts), parts)
            findings = [finding for part in found for finding in part]
            seconds = time.perf_counter() - start
            kinds = sorted({finding.kind for finding in findings})
            counts = ", ".join(
                f"{sum(finding.kind == kind for finding in findings)} {kind}" for kind in kinds
            )
            print(
                f"{stack:14} {options.schedules:,} schedules, "
                f"{options.schedules / seconds:,.0f}/s: {counts or 'no promise broken'}"
            )
            for kind in kinds:
                smallest = min(
                    (finding for finding in findings if finding.kind == kind),
                    key=lambda finding: (len(finding.system.messages), len(finding.arrivals)),
                )
                print(f"  smallest {kind}: {smallest.system}")
            if stack not in BROKEN and findings:
                unexpected += 1
                print(findings[0].script())
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
