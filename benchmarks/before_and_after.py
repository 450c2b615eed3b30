"""How fast two checkouts are, one beside the other, in alternating runs on one machine.

    python benchmarks/before_and_after.py BEFORE AFTER [--only simulator,explorer] [--rounds 5]

BEFORE and AFTER are checkouts with an environment of their own (`make install` in each). Every
round runs each measurement in both, one right after the other and in turns first, so that a noisy
moment of the machine meets both alike. The ratio is that of the medians: above 1, AFTER is
faster; the smallest and the largest ratio of a single round say how much it can be trusted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BENCH = "bench --stack RELIABLE_ATOMIC --servers 3 --payload 64 --duration 4 --json"


@dataclass(frozen=True)
class Measurement:
    """A command of a checkout, and the speed in what it prints: the more, the faster."""

    name: str
    unit: str
    command: str
    speed: Callable[[str], float]
    pure: bool = False


def field(name: str) -> Callable[[str], float]:
    return lambda text: float(json.loads(text)[name])


def inverse(name: str) -> Callable[[str], float]:
    return lambda text: 1 / float(json.loads(text)[name])


def found(pattern: str) -> Callable[[str], float]:
    def speed(text: str) -> float:
        match = re.search(pattern, text)
        assert match is not None, text
        return float(match[1].replace(",", ""))

    return speed


def cpu_of_a_message(text: str) -> float:
    """Messages per second of processor time: the machine's load hardly shows in it."""
    told = json.loads(text)
    return 1e6 / float(told["server_cpu_us"] + told["member_cpu_us"])


SIMULATOR = "benchmarks/simulator_speed.py --directory {temporary} --ours"
EXPLORER = "benchmarks/explorer_speed.py --workers 1"
TRANSITIONS = found(r"explorer, 1 worker : +([\d,]+) transitions")

MEASUREMENTS = (
    Measurement("simulator", "packets/CPU s", f"{SIMULATOR} 120000", field("rate")),
    Measurement("simulator-pure", "packets/CPU s", f"{SIMULATOR} 30000", field("rate"), pure=True),
    Measurement("explorer", "transitions/s", EXPLORER, TRANSITIONS),
    Measurement("explorer-pure", "transitions/s", EXPLORER, TRANSITIONS, pure=True),
    *(
        measurement
        for clients in (64, 8, 1)
        for measurement in (
            Measurement(
                f"network-{clients}",
                "messages/s",
                f"flexgroup {BENCH} --clients {clients}",
                field("messages_a_second"),
            ),
            Measurement(
                f"network-{clients}-cpu",
                "messages/CPU s",
                f"flexgroup {BENCH} --clients {clients}",
                cpu_of_a_message,
            ),
        )
    ),
    Measurement(
        "network-1-latency", "1/p50 ms", f"flexgroup {BENCH} --clients 1", inverse("p50_ms")
    ),
    Measurement(
        "verify",
        "sorts/verification",
        "benchmarks/spark_verify.py --rounds 1",
        lambda text: 1 / found(r"verify / sort: ([\d.]+)")(text),
    ),
)


def run(checkout: Path, measurement: Measurement) -> str:
    python = checkout / ".venv" / "bin" / "python"
    with tempfile.TemporaryDirectory() as temporary:
        words = measurement.command.format(temporary=temporary).split()
        words = [word.replace("_", " ") if word == "RELIABLE_ATOMIC" else word for word in words]
        if words[0] == "flexgroup":
            words = ["-m", "flexgroup.cli.main", *words[1:]]
        done = subprocess.run(
            [str(python), *words],
            cwd=checkout,
            env={**os.environ, "FLEXGROUP_PURE": "1" if measurement.pure else ""},
            stdout=subprocess.PIPE,
            text=True,
        )
    # A benchmark may end with 1 because a wish of its own is not reached.
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{' '.join(words)} failed in {checkout}: exit code {done.returncode}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--only", help="names of measurements, or their beginnings, with commas")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.after is None:
        print("Name two checkouts to compare: before_and_after.py BEFORE AFTER")
        return
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    # Measurements that read the same output share a run.
    by_command: dict[tuple[str, bool], list[Measurement]] = {}
    for measurement in MEASUREMENTS:
        if measurement.name.startswith(wanted):
            by_command.setdefault((measurement.command, measurement.pure), []).append(measurement)
    checkouts = [options.before.resolve(), options.after.resolve()]
    print(f"{'':20}{'before':>12}{'after':>12}  ratio (of single rounds)")
    for shared in by_command.values():
        speeds: dict[str, list[list[float]]] = {m.name: [[], []] for m in shared}
        for number in range(options.rounds):
            for place in (0, 1) if number % 2 == 0 else (1, 0):
                text = run(checkouts[place], shared[0])
                for measurement in shared:
                    speeds[measurement.name][place].append(measurement.speed(text))
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        for measurement in shared:
            before, after = speeds[measurement.name]
            rounds = sorted(new / old for old, new in zip(before, after, strict=True))
            old, new = statistics.median(before), statistics.median(after)
            print(
                f"{measurement.name:20}{old:12,.2f}{new:12,.2f}  {new / old:.3f} "
                f"({rounds[0]:.2f} to {rounds[-1]:.2f})  {measurement.unit}",
                flush=True,
            )


if __name__ == "__main__":
    main()
