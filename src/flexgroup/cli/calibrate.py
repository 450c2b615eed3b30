"""`flexgroup calibrate`: the constants of this machine, for simulations of servers on it."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Command, Option, make_folder, path_here, print_json
from flexgroup.cli.progress import progress_bar

if TYPE_CHECKING:
    from flexgroup.experiments.calibration import Calibration

COMMAND = Command(
    "calibrate",
    "measure what things cost on this machine, for the simulator",
    "flexgroup calibrate --out machine.json",
    (
        Option(
            "--out", type=path_here, metavar="FILE",
            help="write the constants there, for flexgroup experiment dcc --world network",
        ),
        Option(
            "--runs", type=path_here, metavar="DIR",
            help="keep the small runs there; those that are finished are not made again",
        ),
    ),
    "Start servers on this machine, load them for a few minutes with loads that no figure has, and"
    " tell what a frame, a packet, a byte and a message cost. Nothing else should run meanwhile.",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.experiments.calibration import calibrate, write_calibration

    if options.out is not None:
        make_folder(options.out.parent)
    with ExitStack() as stack:
        if options.runs is not None:
            make_folder(options.runs, "--runs")
        folder = options.runs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with progress_bar("calibrating", wanted=not options.json) as progress:
            calibration = calibrate(folder, progress)
    if options.out is not None:
        write_calibration(calibration, options.out)
    if options.json:
        print_json(calibration.to_json())
    else:
        show(calibration)
    return 0


def show(calibration: Calibration) -> None:
    constants = asdict(calibration.constants)
    print(f"{constants.pop('cores')} processors")
    print(f"{'background':10} {constants.pop('background'):10.1%} of them")
    for name, seconds in constants.items():
        print(f"{name:10} {seconds * 1e6:10.3f} us")
    print("processor time of servers in the small runs, measured and explained:")
    for each in calibration.explained:
        print(f"  {each.run:60} {each.cpu:7.3f} s {each.explained / each.cpu:7.0%}")
    print(f"--network {calibration.constants.network}")
