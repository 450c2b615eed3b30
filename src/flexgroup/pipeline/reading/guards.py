"""The rules about single rows of events in Spark's form: reading a value that breaks one fails.

They are the rules of `flexgroup.trace.rules`, as expressions around the columns that a plan reads
anyway: no row is read for them, and none is moved. A column that a plan does not read is not
looked at, and cannot mislead it either.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as f

from flexgroup.trace import schema
from flexgroup.trace.rules import LARGEST, LIST, NATURAL, SEE, ListRule, is_empty_in

Broken = tuple[Column, Column]
"""Whether a row breaks a rule, and what to say then."""


def guarded(kind: str, name: str) -> Column:
    """Return a column of events of this kind, which fails where a rule about it is broken; the
    name of the run must be in the row."""
    column = f.col(name)
    checked = None
    for is_broken, reason in _rules(kind, name):
        told = f.concat(f.lit("run '"), f.col("run"), f.lit("': "), reason, f.lit(f"; {SEE}"))
        failing = f.raise_error(told)
        checked = (
            f.when(is_broken, failing) if checked is None else checked.when(is_broken, failing)
        )
    return column if checked is None else checked.otherwise(column).alias(name)


def broken(kind: str, name: str) -> Column:
    """Tell whether the value of this column breaks a rule, in a row of events of this kind."""
    rules = [f.coalesce(is_broken, f.lit(False)) for is_broken, _ in _rules(kind, name)]
    return reduce(lambda one, other: one | other, rules, f.lit(False))


def _rules(kind: str, name: str) -> Iterator[Broken]:
    column, where = f.col(name), f"a {kind} event"
    if name in schema.required_columns(kind):
        yield column.isNull(), f.lit(is_empty_in(name, where))
    if name in NATURAL:
        value = f.concat(f.lit(f"column '{name}' of {where} is "), column.cast("string"))
        yield column < 0, f.concat(value, f.lit(", and must not be negative"))
        if name in LARGEST:
            most = f", at most {LARGEST[name]} is possible"
            yield column > LARGEST[name], f.concat(value, f.lit(most))
    if name == LIST and kind == schema.MULTICAST:
        for rule, is_broken in {
            ListRule.NONE: f.size(column) == 0,
            ListRule.EMPTY: f.exists(column, lambda process: process.isNull()),
            ListRule.NEGATIVE: f.exists(column, lambda process: process < 0),
            ListRule.TWICE: f.size(f.array_distinct(column)) < f.size(column),
        }.items():
            yield is_broken, f.lit(f"the '{LIST}' of {where}: {rule}")
