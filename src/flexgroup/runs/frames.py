"""Runs as tables of pandas."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flexgroup.core.errors import UsageError
from flexgroup.core.message import name_of, origin_of
from flexgroup.core.replicas import Replicas
from flexgroup.metrics.counting import Casts, MessageFates, within
from flexgroup.metrics.in_memory import span_of
from flexgroup.metrics.period import SECOND, measured_period
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.history import History
from flexgroup.trace.run import Run

try:
    import pandas as pd
except ImportError:
    raise UsageError(
        "tables of runs are those of pandas, which is not installed: pip install pandas"
    ) from None


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row for each verdict, by property."""
    rows = [
        {
            "property": verdict.property,
            "outcome": verdict.outcome.value,
            "violations": verdict.violations,
            "explanation": verdict.explanation,
        }
        for verdict in verdicts
    ]
    columns = ["property", "outcome", "violations", "explanation"]
    return pd.DataFrame(rows, columns=columns).set_index("property")


def latency_table(history: History, run: Run) -> pd.DataFrame:
    """Return a row for each message: when it was multicast and how long it took, in seconds, and
    its steps. Durations are those of docs/measures.md, empty where there are none."""
    fates = MessageFates.of(Casts.of(history.multicasts), history, run.replicas)
    since = fates.casts.time
    table = _by_message(history, fates)
    table["multicast"] = since / SECOND
    for name, flags, times in (
        ("first", fates.is_delivered, fates.first),
        ("group", fates.is_reached, fates.group),
        ("last", fates.is_answered, fates.last),
    ):
        table[name] = np.where(flags, (times - since) / SECOND, np.nan)
    table["measured"] = within(since, measured_period(run, span_of(run, history)))
    return table.sort_values("multicast", kind="stable")


def steps_table(history: History, replicas: Replicas) -> pd.DataFrame:
    """Return a row for each message of a run without times: in how many steps it was delivered."""
    return _by_message(history, MessageFates.of(Casts.of(history.multicasts), history, replicas))


def _by_message(history: History, fates: MessageFates) -> pd.DataFrame:
    identities = fates.casts.identity.tolist()
    columns = {
        "message": [history.names.get(m) or name_of(m) for m in identities],
        "origin": [origin_of(m) for m in identities],
        "answered": fates.is_answered,
        "steps_first": np.where(fates.is_delivered, fates.steps_first, np.nan),
        "steps": np.where(fates.is_delivered, fates.steps, np.nan),
    }
    return pd.DataFrame(columns).set_index("message")
