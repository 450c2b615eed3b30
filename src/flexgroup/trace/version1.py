"""What the rows of schema version 1 meant, worked out once, when they are read.

Version 1 named the stack and the network, and left it to readers to know what these promise and
cost. The tables below are a record of how it was when version 2 came, and do not change any more.
Where a row names a stack or a network that is not in them, nothing is known, as it was then.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from flexgroup.core.guarantees import Guarantee, Guarantees, guarantees_of_channels
from flexgroup.core.promises import promised_properties
from flexgroup.trace.cost_models import BY_ALL, BY_LAST, CostModel


class Described(NamedTuple):
    """The columns that version 2 added, with None for what a row of version 1 does not tell."""

    channels: tuple[str, ...] | None = None
    promises: tuple[str, ...] | None = None
    cost_model: str | None = None
    faulty: tuple[int, ...] = ()


class _Layer:
    """What a layer needs from below, gives above, and passes on if it is given."""

    def __init__(
        self, needs: str, gives: str, keeps: str, genuine: bool = False, last_answers: bool = False
    ) -> None:
        self.needs, self.gives, self.keeps = map(_guarantees, (needs, gives, keeps))
        self.genuine = genuine
        self.last_answers = last_answers


def _guarantees(names: str) -> Guarantees:
    return frozenset(Guarantee(name) for name in names.split())


_LAYERS = {
    "best-effort": _Layer("", "", "reliable fifo", genuine=True),
    "reliable": _Layer("", "reliable", "", genuine=True),
    "fifo": _Layer("reliable", "fifo", "reliable", genuine=True),
    "causal": _Layer("reliable", "fifo causal", "reliable"),
    "causal-rst": _Layer("reliable", "fifo causal", "reliable", genuine=True),
    "atomic": _Layer("reliable", "reliable fifo causal total", ""),
    "skeen": _Layer("reliable", "reliable total", "", genuine=True),
    "df": _Layer("reliable", "reliable total", "", genuine=True, last_answers=True),
    "dcc": _Layer("reliable fifo", "reliable total", "", last_answers=True),
    "dcc-published": _Layer("reliable fifo", "reliable total", "", last_answers=True),
    "vcube-detector": _Layer("", "", "reliable fifo"),
    "heartbeat": _Layer("", "", "reliable fifo"),
    "vcube-best-effort": _Layer("reliable", "reliable", ""),
    "vcube-reliable": _Layer("reliable", "reliable", ""),
    "vcube-atomic": _Layer("reliable", "reliable total", ""),
    "vcube-atomic-published": _Layer("reliable", "reliable total", ""),
    "vcube-atomic-majority": _Layer("reliable", "reliable total", ""),
    "all2all-atomic": _Layer("reliable", "reliable total", ""),
    "xamp-best-effort": _Layer("", "", "reliable", genuine=True),
    "xamp-at-least": _Layer("", "", "reliable", genuine=True),
    "xamp-reliable": _Layer("", "reliable", "", genuine=True),
    "xamp-causal": _Layer("", "reliable fifo causal", "", genuine=True),
    "xamp-atomic": _Layer("", "reliable total", "", genuine=True),
}

_COSTS = {
    "unit": {"send": 0, "receive": 0, "byte": 0},
    "lan": {"send": 15_000, "receive": 15_000, "byte": 100_000},
    "wan": {"send": 15_000, "receive": 15_000, "byte": 100_000},
    "neko": {"send": 100_000, "receive": 100_000, "byte": 0},
}
"""Nanoseconds for sending and for receiving a packet, and picoseconds for a byte."""

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

_LOSSY_EXPLORATION = ", with losses and duplicates"
"""What the explorer wrote after the channels of a scope in which packets may be lost or doubled."""


def described(world: str, stack: str, network: str | None, faults: str | None) -> Described:
    """Return what version 2 would have said of a run with these columns."""
    try:
        layers = [_LAYERS[word.partition("/")[0]] for word in stack.lower().split()]
        name, options, loses = _network(network or "lan", faults)
        given = channels = guarantees_of_channels(not loses, options.get("fifo") != "no")
        for layer in layers:
            if not layer.needs <= given:
                return Described()
            given = layer.gives | (given & layer.keeps)
        top = layers[-1]
        figures = {what: _cost(options, what, usual) for what, usual in _COSTS[name].items()}
        costs = CostModel(name, **figures, answers=BY_LAST if top.last_answers else BY_ALL)
    except (KeyError, ValueError, IndexError):
        return Described()
    return Described(
        tuple(guarantee.value for guarantee in Guarantee if guarantee in channels),
        promised_properties(given, top.genuine),
        costs.text if world == "simulator" else None,
    )


def _network(text: str, faults: str | None) -> tuple[str, dict[str, str], bool]:
    """Return the name and the options of a network, as in `lan:loss=0.01,fifo=no`, and whether it
    loses or doubles packets; raise KeyError or ValueError if there was none of that name."""
    name, _, rest = text.removesuffix(_LOSSY_EXPLORATION).partition(":")
    if name not in _COSTS:
        raise KeyError(name)
    options = dict(option.split("=") for option in rest.split(",") if option)
    loses = any(float(options.get(name, 0)) for name in ("loss", "duplication"))
    planned = json.loads(faults or "{}")
    cuts = planned.get("partitions", ()) if isinstance(planned, dict) else ()
    drops = any("!drop" in cut for cut in cuts)
    return name, options, loses or drops or text.endswith(_LOSSY_EXPLORATION)


def _cost(options: dict[str, str], what: str, usual: int) -> int:
    text = options.get(what)
    if text is None:
        return usual
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)?", text)
    if found is None:
        raise ValueError(text)
    return round(float(found[1]) * _UNITS[found[2] or "s"]) * (1000 if what == "byte" else 1)
