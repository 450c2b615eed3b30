"""`flexgroup results`: one page of what papers claim and what holds, from several experiments."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from flexgroup.cli.arguments import Command, Option, path_here, print_json

COMMAND = Command(
    "results",
    "write one page of the claims that experiments have judged",
    "flexgroup results runs/dcc --record docs/results.csv --out docs/results.md",
    (
        Option(
            "directories", nargs="*", type=path_here, metavar="DIR",
            help="of experiments that were run; their claims replace what the record has of them",
        ),
        Option(
            "--record", required=True, type=path_here, metavar="FILE",
            help="keeps the claims of all experiments from time to time",
        ),
        Option(
            "--out", required=True, type=path_here, metavar="FILE", help="where the page goes"
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.experiments.results import (
        YES,
        judged_in,
        page,
        pages_beside,
        read_record,
        renewed,
        write_record,
    )

    news = [row for path in options.directories for row in judged_in(path)]
    record = renewed(read_record(options.record), news)
    write_record(options.record, record)
    options.out.write_text(page(record, pages_beside(options.out)), encoding="utf-8")
    if options.json:
        print_json([asdict(row) for row in record])
        return 0
    appear = sum(row.appears == YES for row in record)
    print(f"{len(record)} claims: {appear} appear, {len(record) - appear} do not")
    print(f"page: {options.out}")
    return 0
