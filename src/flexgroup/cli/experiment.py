"""`flexgroup experiment`: published figures and tables, run as Spark jobs, beside the paper's."""

from __future__ import annotations

import argparse
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import Command, Group, Option, flag, path_here, print_json, repeated
from flexgroup.cli.progress import progress_bar
from flexgroup.cli.spark_commands import master_option
from flexgroup.core.errors import UsageError
from flexgroup.properties.verdict import Outcome

if TYPE_CHECKING:
    from flexgroup.experiments.directory import Directory
    from flexgroup.experiments.experiment import Experiment
    from flexgroup.experiments.run import Result, Stage
    from flexgroup.sweeps.tasks import Progress

SCALES = ("small", "paper")
WORLDS = ("simulator", "network")
ON_NETWORK = "dcc"
"""The experiment that can be run on real servers."""


COMMAND = Command(
    "experiment",
    "run a published experiment on Spark and show it beside the paper",
    "flexgroup experiment demo --scale small --out runs/demo",
    (
        Option("name", nargs="?", metavar="NAME", help="which experiment; --list tells them"),
        flag("--list", "list the experiments and what each shows"),
        Option(
            "--scale", choices=SCALES, default="small",
            help="small takes minutes; paper: 1 to 64 clients, three repetitions (small)",
        ),
        Option(
            "--out", type=path_here, metavar="DIR",
            help="where everything goes; what is finished there is not run again",
        ),
        master_option("; DIR must be a path that all its machines share"),
        flag("--force", "remove what is in DIR and begin anew"),
        Group(
            "on real servers",
            Option(
                "--world", choices=WORLDS, default=WORLDS[0],
                help="network: run dcc on 16 servers of this machine, too, beside simulations of "
                "this machine (simulator)",
            ),
            repeated(
                "--connect", "HOST:PORT",
                "a running server to use instead of those of this machine; repeat it for each of "
                "the 16, which are started with --pack 1 and --trace",
            ),
            Option(
                "--traces", type=path_here, metavar="DIR",
                help="with --connect: the folder that these servers record into",
            ),
            Option(
                "--machine", type=path_here, metavar="FILE",
                help="the constants of the machine, as flexgroup calibrate writes them; without "
                "it, they are measured first",
            ),
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    if options.list:
        return list_experiments(options)
    if options.name is None:
        raise UsageError("name an experiment; flexgroup experiment --list tells them")
    from flexgroup.experiments.catalogue import find_experiment

    experiment = find_experiment(options.name)
    _check_world(options)
    if options.out is None:
        raise UsageError(f"say where results go, for example: --out runs/{experiment.name}")
    from flexgroup.experiments.directory import reserved_directory
    from flexgroup.experiments.run import run_experiment
    from flexgroup.pipeline.spark.session import refuse_connect, start
    from flexgroup.report import write_report

    refuse_connect(options.master, "a sweep of simulations")

    def stage(doing: str) -> AbstractContextManager[Progress]:
        return progress_bar(doing, wanted=not options.json)

    with ExitStack() as stack:
        if options.world == "network":
            experiment, directory = stack.enter_context(_network_chapter(options, stage))
        else:
            directory = stack.enter_context(
                reserved_directory(experiment, options.scale, options.out, options.force)
            )
        with stage("starting Spark"):
            started = start(
                options.master, f"flexgroup experiment {experiment.name}", _settings(options)
            )
        result = run_experiment(started.spark, experiment, options.scale, directory, stage)
        report = write_report(directory.path)
    _show(options, experiment, result, report, started.seconds)
    return 1 if result.violations else 0


def _check_world(options: argparse.Namespace) -> None:
    if options.world == "network":
        if options.name != ON_NETWORK:
            raise UsageError(f"--world network is for the experiment '{ON_NETWORK}' only")
        if bool(options.connect) != (options.traces is not None):
            raise UsageError("--connect and --traces go together: servers, and where they record")
    elif options.connect or options.traces is not None or options.machine is not None:
        raise UsageError("--connect, --traces and --machine go with --world network")


def _network_chapter(
    options: argparse.Namespace, stage: Stage
) -> AbstractContextManager[tuple[Experiment, Directory]]:
    from flexgroup.experiments.network_run import Given, network_chapter

    given = Given(tuple(options.connect), options.traces) if options.connect else None
    return network_chapter(options.scale, options.out, options.force, options.machine, given, stage)


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """Return settings for a small job, if the scale is small and Spark is on this machine."""
    from flexgroup.pipeline.spark.session import SMALL_JOB

    return SMALL_JOB if options.master is None and options.scale == "small" else {}


def list_experiments(options: argparse.Namespace) -> int:
    from flexgroup.experiments.catalogue import EXPERIMENTS

    rows: list[dict[str, Any]] = [
        {
            "name": experiment.name,
            "title": experiment.title,
            "source": experiment.source,
            "figures": [figure.id for figure in experiment.figures],
            "claims": [claim.name for claim in experiment.claims],
            "runs": {scale: len(experiment.scenarios(scale)) for scale in SCALES},
        }
        for experiment in EXPERIMENTS.values()
    ]
    if options.json:
        print_json(rows)
        return 0
    for row in rows:
        runs = ", ".join(f"{scale} {count}" for scale, count in row["runs"].items())
        print(f"{row['name']:22} {row['title']}")
        print(f"{'':22} runs: {runs}; source: {row['source']}")
        if row["figures"]:
            print(f"{'':22} shows: {', '.join(row['figures'])}")
        print()
    return 0


def _show(
    options: argparse.Namespace,
    experiment: Experiment,
    result: Result,
    report: Path,
    start_seconds: float,
) -> None:
    if options.json:
        print_json(
            {
                "experiment": experiment.name,
                "scale": options.scale,
                "runs": {"found": result.found, "simulated": result.simulated},
                "claims": result.claims,
                "points": result.points,
                "outcomes": result.outcomes,
                "violations": result.violations,
                "traces": str(result.directory.traces),
                "tables": str(result.directory.tables),
                "figures": str(result.directory.page),
                "report": str(report),
                "seconds": {"spark": start_seconds, **result.seconds},
            }
        )
        return
    print(f"{experiment.name} at scale {options.scale}: {experiment.title}")
    print(f"  {result.simulated} runs simulated, {result.found} found finished")
    _show_figures(experiment, result)
    for claim in result.claims:
        print(f"{'yes' if claim['holds'] else 'NO':4}{claim['claim']}: {claim['paper']}")
        print(f"    {claim['evidence']}")
    _show_violations(result)
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result.seconds.items())
    print(f"took: Spark's start {start_seconds:.0f} s, {took}")
    print(f"tables: {result.directory.tables}")
    print(f"figures beside the paper: {result.directory.page}")
    print(f"report: {report}")


def _show_figures(experiment: Experiment, result: Result) -> None:
    from flexgroup.experiments.page import heading, told
    from flexgroup.metrics.catalogue import CONDITIONS
    from flexgroup.report.figure import Kind

    for figure in experiment.figures:
        if figure.kind is not Kind.CURVES:
            continue
        across, up = figure.metrics
        against_size = across in CONDITIONS and across != "clients"
        shown = heading(up) if against_size else "at the highest throughput"
        print(f"{figure.id}: {figure.title}; {shown}:")
        for series in figure.series:
            curve = figure.points_of(series, result.points)
            if against_size:
                words = (
                    f"{told(curve[-1], up):>12} with {told(curve[-1], across)} {heading(across)}"
                )
            else:
                best = max(curve, key=lambda row: row["throughput"] or 0.0)
                words = (
                    f"{told(best, 'throughput'):>8} messages/s at {told(best, 'latency')} ms "
                    f"with {best['clients']} clients"
                )
            print(f"    {series.label:24} {words}")


def _show_violations(result: Result) -> None:
    """Print how often each promise was broken, and one example of each."""
    told = ", ".join(f"{result.outcomes.get(name, 0)} {name}" for name in Outcome)
    print(f"promised properties, run by run: {told}")
    counts = Counter((row["stack"], row["property"]) for row in result.violations)
    for (stack, name), count in counts.items():
        first = next(
            row for row in result.violations if (row["stack"], row["property"]) == (stack, name)
        )
        print(f"VIOLATED by {stack} in {count} runs: {name}; for example in {first['run']}:")
        for line in first["explanation"].splitlines():
            print(f"  {line}")
