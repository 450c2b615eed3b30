"""One run of a trace in memory, as columns: what the properties look at.

A message is named by its packed identity (see `flexgroup.core.message`). Rows of each
kind are sorted by (process, step), so a process's history is one slice of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from flexgroup.core.errors import UsageError
from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.trace.names import Names

Ints = NDArray[np.int64]
SmallInts = NDArray[np.signedinteger[Any]]
"""Integers of any width: most of a trace is packets, and most of their columns fit in 32 bits."""


def no_ints() -> Ints:
    return np.empty(0, dtype=np.int64)


LARGEST = int(np.iinfo(np.int64).max)


def in_order(keys: Ints) -> Ints:
    """Return row numbers sorted by key; rows with the same key stay in their order.

    Plain integers sort ten times as fast as numbers of rows by their keys. So a key and its row
    become one integer, where both fit in.
    """
    count = len(keys)
    if count == 0:
        return no_ints()
    least, span = int(keys.min()), int(keys.max()) - int(keys.min())
    if span < 1 << 16:
        return np.argsort((keys - least).astype(np.uint16), kind="stable")
    bits = count.bit_length()
    if span.bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    packed = ((keys - least) << bits) | np.arange(count)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def by_pairs(major: Ints, minor: Ints) -> Ints:
    """Return row numbers sorted by two columns; rows that are equal in both stay in their order."""
    if len(major) == 0:
        return no_ints()
    first, least = int(major.min()), int(minor.min())
    span = int(minor.max()) - least + 1
    if (int(major.max()) - first + 1) * span > LARGEST:
        return np.lexsort((minor, major))
    return in_order((major - first) * span + (minor - least))


def by_key(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each key with the rows that have it."""
    order = in_order(keys)
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if len(rows):
            yield int(keys[rows[0]]), rows


@dataclass(frozen=True)
class Rows:
    """Which process, at which step of its history, and when."""

    process: Ints = field(default_factory=no_ints)
    step: Ints = field(default_factory=no_ints)
    time: Ints = field(default_factory=no_ints)


@dataclass(frozen=True)
class Multicasts(Rows):
    """The multicast rows; destinations of row i are targets[offsets[i] : offsets[i + 1]]."""

    message: Ints = field(default_factory=no_ints)
    offsets: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    targets: Ints = field(default_factory=no_ints)


@dataclass(frozen=True)
class Deliveries(Rows):
    message: Ints = field(default_factory=no_ints)
    depth: Ints = field(default_factory=no_ints)


@dataclass(frozen=True)
class Packets:
    """The send or the receive rows; message is -1 where a packet concerns none."""

    process: SmallInts = field(default_factory=no_ints)
    step: Ints = field(default_factory=no_ints)
    time: Ints = field(default_factory=no_ints)
    message: Ints = field(default_factory=no_ints)
    peer: SmallInts = field(default_factory=no_ints)
    depth: SmallInts = field(default_factory=no_ints)
    header_bytes: SmallInts = field(default_factory=no_ints)
    payload_bytes: SmallInts = field(default_factory=no_ints)
    packet: tuple[str, ...] = ()
    packet_code: SmallInts = field(default_factory=no_ints)
    detail: tuple[str | None, ...] = ()
    detail_code: SmallInts = field(default_factory=no_ints)


@dataclass(frozen=True)
class Faults(Rows):
    """Crash and recover rows: which process, at which step of its history."""


class View(NamedTuple):
    """A view is told by its number and its members together: parts of a group that lost sight of
    each other may give the same number to different views."""

    number: int
    members: tuple[int, ...]


def parse_view(detail: str | None) -> View:
    """Return the view that a text such as `{"members":[0,1,2],"number":3}` describes."""
    try:
        told = json.loads(detail or "")
        number, members = told["number"], told["members"]
        integers = [number, *members]
    except (ValueError, KeyError, TypeError):
        integers = [None]
    if not all(type(value) is int for value in integers):
        raise UsageError(
            f"the detail of a view row is {detail!r}; it must have a number and members, "
            'as {"members":[0,1,2],"number":3}'
        )
    return View(number, tuple(sorted(set(members))))


def is_only_told(detail: str | None) -> bool:
    """Tell whether the process was told of the view, which it installs later, if it does."""
    return detail is not None and '"told":true' in detail


@dataclass(frozen=True)
class Views(Rows):
    """The view rows: the view that row i installed is distinct[view[i]]."""

    view: Ints = field(default_factory=no_ints)
    distinct: tuple[View, ...] = ()


def views_of(process: Ints, step: Ints, time: Ints, installed: Sequence[View]) -> Views:
    """Return the view rows, given the view that each installed."""
    distinct = tuple(sorted(set(installed)))
    place = {view: number for number, view in enumerate(distinct)}
    view = np.array([place[view] for view in installed], dtype=np.int64)
    return Views(process, step, time, view, distinct)


Recorded = TypeVar("Recorded", Deliveries, Packets, Views)


def of_correct(rows: Recorded, faulty: tuple[int, ...]) -> Recorded:
    """Return the rows without those of processes that are faulty by design; of packets, also
    without those from and to them, and about their messages."""
    kept = ~np.isin(rows.process, faulty)
    if isinstance(rows, Packets):
        kept &= ~np.isin(rows.peer, faulty)
        kept &= (rows.message < 0) | ~np.isin(rows.message & ORIGIN_MASK, faulty)
    columns: dict[str, Any] = {
        name: column[kept]
        for name, column in vars(rows).items()
        if isinstance(column, np.ndarray) and len(column) == len(kept)
    }
    return replace(rows, **columns)


Lost = tuple[tuple[int, int], ...]
"""Processes whose last events are missing, each with the number of the first message that it may
have multicast after the last event that is there."""


def lost_since(processes: Sequence[int], multicast: Ints) -> Lost:
    """Return what is lost with the last events of these processes, if these messages are known."""
    origin, number = multicast & ORIGIN_MASK, multicast >> ORIGIN_BITS
    return tuple(
        (process, 1 + int(number[origin == process].max(initial=-1))) for process in processes
    )


def may_be_lost(lost: Lost, messages: Ints) -> NDArray[np.bool_]:
    """Tell for each message whether its multicast may be among the events that are lost."""
    flags = np.zeros(len(messages), dtype=np.bool_)
    for process, first in lost:
        flags |= (messages & ORIGIN_MASK == process) & (messages >> ORIGIN_BITS >= first)
    return flags & (messages >= 0)


def no_name(message: int) -> None:
    """Return what a message is called where nobody has named any."""


@dataclass(frozen=True)
class RunFacts:
    """What must be known of a run besides its events."""

    run: str
    processes: int
    complete: bool
    lost: Lost = field(default=(), kw_only=True)
    faulty: tuple[int, ...] = field(default=(), kw_only=True)
    """Processes that are faulty by design: nothing is expected of them, and nothing that they did
    counts."""
    nodes: tuple[str, ...] = field(default=(), kw_only=True)
    """What processes and clients are called where the run comes from, by number."""

    @property
    def called(self) -> Names:
        """What explanations call processes; clients are processes that only multicast."""
        return Names(nodes=self.nodes)

    def facts(self) -> dict[str, Any]:
        """Return them by name, and nothing else that this object may have."""
        return {fact.name: getattr(self, fact.name) for fact in fields(RunFacts)}


@dataclass(frozen=True)
class History(RunFacts):
    """Everything that was recorded of one run."""

    multicasts: Multicasts
    deliveries: Deliveries
    sends: Packets = field(default_factory=Packets)
    receives: Packets = field(default_factory=Packets)
    crashes: Faults = field(default_factory=Faults)
    recoveries: Faults = field(default_factory=Faults)
    views: Views = field(default_factory=Views)
    names: Mapping[int, str] = field(default_factory=dict)
    """What explanations call messages, by identity; others get the first letters that are free."""
    message_name: Callable[[int], str | None] = field(default=no_name)
    """What a message is called where the run comes from, by identity."""
