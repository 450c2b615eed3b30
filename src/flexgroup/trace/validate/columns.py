"""The columns of one file against those of the schema."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class ColumnProblem:
    """A column that is not there, or that holds something else."""

    missing: bool
    reason: str


def column_problems(
    found: pa.Schema, wanted: pa.Schema, required: Collection[str]
) -> list[ColumnProblem]:
    """Return what is wrong with a file of these columns.

    Columns that are not required may be missing, and columns that nobody asked for may be there:
    that is how versions differ.
    """
    problems = []
    for field in wanted:
        position = found.get_field_index(field.name)
        if position < 0:
            if field.name in required:
                problems.append(ColumnProblem(True, f"has no column '{field.name}'"))
            continue
        actual = found.field(position).type
        if _plain(actual) != _plain(field.type):
            reason = f"column '{field.name}' is {actual}, not {field.type}"
            problems.append(ColumnProblem(False, reason))
    return problems


def _plain(type_: pa.DataType) -> pa.DataType:
    """Return the type without what only concerns memory: in the file, these are all the same."""
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_plain(type_.value_type))
    return type_
