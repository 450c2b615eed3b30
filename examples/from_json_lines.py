"""Turns a delivery log of JSON lines into a trace set that FlexGroup can check.

    python examples/from_json_lines.py examples/data/deliveries.jsonl --out traces \
        --nodes alpha,beta,gamma

A line of the log is one event at one node, and the lines of a node are in the order in which
things happened there:

    {"at": 12.5, "node": "alpha", "event": "send", "message": "alpha#1", "to": ["alpha", "beta"]}
    {"at": 12.6, "node": "beta", "event": "deliver", "message": "alpha#1"}

The log may be of any length: it is read line by line and written in batches. Adapt `event_of` to
your log, and leave the rest.
"""

from __future__ import annotations

import argparse
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.run import Run
from flexgroup.trace.writer import prepare_trace_set, run_file, write_run

BATCH = 50_000
KINDS = {"send": schema.MULTICAST, "deliver": schema.DELIVER}
FIELDS = (
    ("at", (int, Decimal), "a number of seconds"),
    ("node", str, "a text"),
    ("event", str, "a text"),
    ("message", str, "a text"),
)
NUMBERS = 1 << 43
"""How many messages of a sender an identity has room for."""
MOST = (1 << 63) - 1
"""The largest time that a column of the trace holds."""


class Numbers:
    """Nodes by number: members first, in the order given; whoever else turns up is a client."""

    def __init__(self, members: list[str]) -> None:
        if not all(members) or len(set(members)) < len(members):
            raise UsageError("--nodes names each member once, as in alpha,beta,gamma")
        self.members = len(members)
        self._numbers = {name: number for number, name in enumerate(members)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._numbers)

    def of(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def of_member(self, name: str) -> int:
        number = self._numbers.get(name, self.members)
        if number >= self.members:
            raise UsageError(f"'{name}' is not among the members; name it in --nodes")
        return number

    @property
    def clients(self) -> int:
        return len(self._numbers) - self.members


def event_of(line: bytes, numbers: Numbers) -> tuple[str, dict[str, Any]]:
    """The kind of event that a line tells of, and its row, without run and step."""
    try:
        # Decimals, because a float cannot hold nanoseconds since 1970.
        told = json.loads(line, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise UsageError(f"this is no JSON: {error.msg}, at character {error.pos + 1}") from None
    if not isinstance(told, dict):
        raise UsageError("this is no JSON object; write an object a line")
    for name, type_, meant in FIELDS:
        if not isinstance(told.get(name), type_) or isinstance(told[name], bool):
            raise UsageError(f"there is no '{name}' that is {meant}")
    kind = KINDS.get(told["event"])
    if kind is None:
        raise UsageError(f"event '{told['event']}' is none of: {', '.join(KINDS)}")
    sender, _, number = told["message"].rpartition("#")
    if not (sender and number.isdecimal() and int(number) < NUMBERS):
        raise UsageError(f"message '{told['message']}' is not SENDER#NUMBER, with up to 43 bits")
    time = Decimal(told["at"]) * 1_000_000_000
    if not -MOST <= time <= MOST:
        raise UsageError(f"'at' is {told['at']}; give seconds that fit 63 bits as nanoseconds")
    row: dict[str, Any] = {
        "process": numbers.of(told["node"]),
        "time": int(time),
        "origin": numbers.of(sender),
        "seq": int(number),
        "name": told["message"],
    }
    if kind == schema.MULTICAST:
        to = told.get("to")
        if not (to and isinstance(to, list) and all(isinstance(node, str) for node in to)):
            raise UsageError("a message without destinations; list their names in 'to'")
        row["destinations"] = sorted({numbers.of_member(node) for node in to})
    else:
        numbers.of_member(told["node"])
    return kind, row


class Events:
    """Writes the rows of each kind to a file that gets its final name when all is well."""

    def __init__(self, out: Path, run: str) -> None:
        self.run = run
        self._folders = {kind: out / "events" / f"event={kind}" for kind in KINDS.values()}
        self._rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in self._folders}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._steps: dict[int, int] = {}

    def add(self, kind: str, row: dict[str, Any]) -> None:
        step = self._steps.get(row["process"], 0)
        self._steps[row["process"]] = step + 1
        rows = self._rows[kind]
        rows.append({"run": self.run, "step": step, **row})
        if len(rows) == BATCH:
            self._write(kind)

    def _write(self, kind: str) -> None:
        if kind not in self._writers:
            self._folders[kind].mkdir(parents=True, exist_ok=True)
            # Readers pass over names that start with an underscore.
            draft = self._folders[kind] / f"_{run_file(self.run)}"
            self._writers[kind] = pq.ParquetWriter(draft, schema.EVENT_COLUMNS)
        table = pa.Table.from_pylist(self._rows[kind], schema=schema.EVENT_COLUMNS)
        self._writers[kind].write_table(table)
        self._rows[kind].clear()

    def close(self, keep: bool) -> None:
        for kind, folder in self._folders.items():
            if keep and self._rows[kind]:
                self._write(kind)
            if kind in self._writers:
                self._writers[kind].close()
                draft = folder / f"_{run_file(self.run)}"
                if keep:
                    draft.replace(folder / run_file(self.run))
                else:
                    draft.unlink()
            elif keep:
                (folder / run_file(self.run)).unlink(missing_ok=True)


def convert(options: argparse.Namespace) -> str:
    run = options.run or options.log.stem
    numbers = Numbers(options.nodes.split(","))
    line = 0
    with options.log.open("rb") as log:
        prepare_trace_set(options.out, run, options.force)
        events = Events(options.out, run)
        try:
            for text in log:
                line += 1
                events.add(*event_of(text, numbers))
            if line == 0:
                raise UsageError("the log is empty")
        except (ValueError, ArithmeticError, UsageError) as error:
            events.close(keep=False)
            raise UsageError(f"{options.log}, line {line}: {error}") from None
    events.close(keep=True)
    # Written last: a run that is listed is whole.
    write_run(
        options.out,
        Run(
            run=run,
            world="foreign",
            stack=options.stack,
            processes=numbers.members,
            clients=numbers.clients,
            outcome=schema.CUT if options.cut else schema.COMPLETE,
            software=Path(__file__).name,
            nodes=numbers.names,
            promises=tuple(options.promises.split(",")) if options.promises else None,
        ),
    )
    return f"{line} events of {numbers.members} members and {numbers.clients} clients: run '{run}'"


def main() -> int:
    parser = argparse.ArgumentParser(description="JSON lines of a delivery log as a trace set.")
    parser.add_argument("log", type=Path, help="the log, one JSON object a line")
    parser.add_argument("--out", type=Path, required=True, help="the trace set to write into")
    parser.add_argument("--nodes", required=True, help="the members, as in alpha,beta,gamma")
    parser.add_argument("--run", help="the name of the run (that of the log)")
    parser.add_argument("--stack", default="unnamed", help="what ordered the messages (unnamed)")
    parser.add_argument("--promises", help="what it promises, as in 'integrity,fifo order' (all)")
    parser.add_argument("--cut", action="store_true", help="deliveries may be missing at the end")
    parser.add_argument("--force", action="store_true", help="overwrite the same run")
    options = parser.parse_args()
    try:
        print(convert(options))
    except OSError as error:
        print(f"{Path(__file__).name}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except UsageError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
