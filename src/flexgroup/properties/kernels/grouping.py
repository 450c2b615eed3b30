"""Rows grouped by a key, and runs of rows listed one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flexgroup.trace.history import Ints, in_order


def grouped(keys: Ints, count: int) -> tuple[Ints, Ints]:
    """Return row numbers by key: those of key k are rows[starts[k] : starts[k + 1]], in row
    order."""
    rows = in_order(keys)
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
    return rows, starts


def numbered(values: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct values, sorted; a row that has each; and the number of each row's
    value."""
    order = in_order(values)
    ordered = values[order]
    is_new = np.ones(len(values), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new], order[is_new], scattered(len(values), order, np.cumsum(is_new) - 1)


def distinct(values: Ints) -> Ints:
    """Return the values, sorted, each once, several times faster than np.unique on large arrays."""
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def lookup(sorted_keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Tell where each wanted key stands among the sorted ones, and whether it is there at all."""
    if len(sorted_keys) == len(wanted) and (sorted_keys == wanted).all():
        return np.arange(len(wanted)), np.ones(len(wanted), dtype=np.bool_)
    place = np.searchsorted(sorted_keys, wanted)
    if len(sorted_keys) == 0:
        return place, np.zeros(len(wanted), dtype=np.bool_)
    return place, sorted_keys[np.minimum(place, len(sorted_keys) - 1)] == wanted


def scattered(count: int, at: Ints, values: Ints) -> Ints:
    """Return so many numbers: the values at the given places, the last one if a place is given
    twice, and -1 elsewhere."""
    found = np.full(count, -1, dtype=np.int64)
    found[at] = values
    return found


def marked(count: int, at: Ints) -> NDArray[np.bool_]:
    """Return so many flags, of which those at the given places are set."""
    flags = np.zeros(count, dtype=np.bool_)
    flags[at] = True
    return flags


def places(order: Ints) -> Ints:
    """Return, for each number from 0 on, its place in an order of them."""
    return scattered(len(order), order, np.arange(len(order)))


def runs(firsts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the numbers firsts[i] .. ends[i] - 1 of every i in turn, and the i each belongs to."""
    lengths = ends - firsts
    owners = np.repeat(np.arange(len(firsts)), lengths)
    shifts = firsts - (np.cumsum(lengths) - lengths)
    return np.arange(len(owners)) + shifts[owners], owners


def largest_before(group: Ints, value: Ints) -> Ints:
    """Return, for each row, the largest value of the earlier rows of its group; -1 if there is
    none.

    Rows of a group are adjacent, groups are numbered from 0 upwards, values are not negative.
    """
    if len(value) == 0:
        return value.copy()
    span = int(value.max()) + 2
    lifted = np.maximum.accumulate(value + 1 + group * span)
    before = np.empty_like(lifted)
    before[0] = 0
    before[1:] = lifted[:-1]
    return np.maximum(before - group * span, 0) - 1
