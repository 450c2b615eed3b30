"""`--spark DIR` of commands that explore: the session, and what is finished in the folder."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Option, path_here
from flexgroup.cli.progress import progress_bar
from flexgroup.cli.spark_commands import master_option
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexgroup.protocols.catalogue import StackPlan
    from flexgroup.sweeps.table import Row, Sweep
    from flexgroup.virtual.campaign import Drawn, Judged
    from flexgroup.worlds.explorer.all_systems import SystemOutcome
    from flexgroup.worlds.explorer.explorer import SearchLimits, SearchProgress
    from flexgroup.worlds.explorer.random_walks import Elsewhere, WalkOptions, WalkTotals
    from flexgroup.worlds.explorer.result import ExplorationResult
    from flexgroup.worlds.explorer.scope import Scope
    from flexgroup.worlds.explorer.search_setup import SearchOptions

PAYS_FROM = 10**9
"""So many states do not fit into the memory of most machines: 36 bytes each, and the frontier."""

SMALL_FOR_SPARK = (
    "without --spark a search takes a quarter of the processor time: Spark pays above a billion "
    "states, or with many machines"
)


def spark_options() -> tuple[Option, Option]:
    """Return the options by which a command works on Spark, and can be killed and begun again."""
    return (
        Option(
            "--spark", type=path_here, metavar="DIR",
            help="work on Spark, with tables in DIR; what is finished there is not done again",
        ),
        master_option("; with --spark, whose DIR must be a path that all its machines share"),
    )  # fmt: skip


def check_spark_options(options: argparse.Namespace, without: dict[str, str]) -> None:
    """Refuse options that do not go with --spark, each with what to do instead."""
    if options.spark is None:
        if options.master is not None:
            raise UsageError(
                "--master says which Spark, and only --spark DIR says to use Spark; give both"
            )
        return
    for name, instead in without.items():
        if getattr(options, name.replace("-", "_")):
            raise UsageError(f"--{name} does not go with --spark: {instead}")


def started_spark(options: argparse.Namespace, doing: str) -> SparkSession:
    """Return the session that is wanted; one that is there already is used."""
    from flexgroup.pipeline.spark.session import SMALL_JOB, refuse_connect, start

    refuse_connect(options.master, doing)
    with progress_bar("starting Spark", not options.json, known=False):
        return start(options.master, f"flexgroup {doing}", SMALL_JOB).spark


def rows_of(options: argparse.Namespace, sweep: Sweep, name: str) -> list[Row]:
    """Do what is left of a sweep, in a folder of this name in that of --spark."""
    from flexgroup.sweeps.table import fill_table

    def session() -> SparkSession:
        return started_spark(options, name)

    with progress_bar(f"{name} on Spark", not options.json) as show:
        return fill_table(session, sweep, folder_of(options, name), show).rows


def folder_of(options: argparse.Namespace, name: str) -> Path:
    folder: Path = options.spark / re.sub(r"\W+", "-", name).strip("-")
    return folder


def systems_on_spark(
    options: argparse.Namespace,
    plan: StackPlan,
    size: tuple[int, int],
    how: tuple[SearchOptions, SearchLimits],
) -> Iterator[SystemOutcome]:
    """Return what was learnt of all systems of a size; how long Spark takes to start does not
    count as a part of that."""
    from flexgroup.sweeps.systems import AllSystems
    from flexgroup.sweeps.table import is_finished

    fifo = options.channels == "fifo"
    sweep = AllSystems(plan.name, *size, fifo, *how, tuple(options.protocols))
    name = "{} {}x{}".format(plan.name, *size)
    if not is_finished(sweep, folder_of(options, name)):
        started_spark(options, name)

    def outcomes() -> Iterator[SystemOutcome]:
        yield from sweep.outcomes(rows_of(options, sweep, name))

    return outcomes()


def walks_on_spark(options: argparse.Namespace, plan: StackPlan, scope: Scope) -> Elsewhere:
    from flexgroup.sweeps.walks import Walks

    def take(how: WalkOptions, todo: list[range]) -> Iterator[WalkTotals]:
        sweep = Walks(plan.name, scope, how, tuple(todo), tuple(options.protocols))
        name = "walks following clients" if how.search.follow_clients else "walks"
        yield from sweep.totals(rows_of(options, sweep, name))

    return take


def schedules_on_spark(
    options: argparse.Namespace, drawn: list[Drawn], most_executions: int
) -> Iterator[Judged]:
    from flexgroup.sweeps.schedules import Schedules

    sweep = Schedules(tuple(drawn), most_executions, tuple(options.protocols))
    yield from sweep.judged(rows_of(options, sweep, "schedules"))


def search_on_spark(
    options: argparse.Namespace,
    plan: StackPlan,
    scope: Scope,
    how: SearchOptions,
    limits: SearchLimits,
    report: Callable[[SearchProgress], None],
    interrupted: Callable[[], bool],
) -> tuple[ExplorationResult, SearchOptions]:
    """Search one scope level by level; return the result and how the search was made at last."""
    from flexgroup.sweeps.large_search import LargeSearch, parts_for, parts_on_spark
    from flexgroup.sweeps.search_part import Question

    spark = started_spark(options, "search")
    search = LargeSearch(
        Question(plan.name, scope, how, parts_for(spark), tuple(options.protocols)),
        folder_of(options, "search"),
        parts_on_spark(spark),
        limits,
        options.keep_going,
        report,
        interrupted,
    )
    result = search.run()
    if result.states < PAYS_FROM:
        result = replace(result, notes=(*result.notes, SMALL_FOR_SPARK))
    return result, search.options
