"""The tables of verification: verdicts, and the events behind them."""

from __future__ import annotations

import json

import pyarrow as pa

from flexgroup.properties.verdict import Verdict

VERDICTS = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("property", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("violations", pa.int64()),
        pa.field("witness", pa.string()),
        pa.field("explanation", pa.string()),
    ]
)


def verdict_row(run: str, verdict: Verdict) -> dict[str, object]:
    told = verdict.to_json()
    witness = None if told["witness"] is None else json.dumps(told["witness"])
    return {**told, "run": run, "witness": witness}


def verdict_table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, VERDICTS)
