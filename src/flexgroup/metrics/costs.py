"""What a run cost: steps, packets, bytes, and how many messages stayed among their own.

Metrics of section 6.1.4 of the DCC dissertation (Louzada 2024), per multicast:

- the *genuine rate* is the share of messages that involve only their destinations and their
  origin: no other process sends or receives a packet about them;
- the *fast rate* is the share of messages that no process forwarded in slow mode;
- *steps* is the largest depth at which a destination delivered the message;
- *volume* is the number of packets among the processes, those from clients not counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from flexgroup.trace.history import History, Ints

SLOW_DETAIL = '{"mode":"slow"}'


@dataclass(frozen=True)
class Costs:
    """Means over the messages of a run; rates are between 0 and 1."""

    genuine_rate: float
    fast_rate: float
    steps: float
    volume: float
    header_bytes: float
    """Mean over the packets among the processes."""

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def costs(history: History) -> Costs:
    messages, index = np.unique(history.multicasts.message, return_index=True)
    count = len(messages)
    if count == 0:
        return Costs(1.0, 1.0, 0.0, 0.0, 0.0)
    sends = history.sends
    inner = (sends.process < history.processes) & (sends.message >= 0)
    slow_codes = [code for code, text in enumerate(sends.detail) if text == SLOW_DETAIL]
    slow = np.intersect1d(messages, sends.message[np.isin(sends.detail_code, slow_codes)])
    steps = np.zeros(count, dtype=np.int64)
    known = np.isin(history.deliveries.message, messages)
    delivered = np.searchsorted(messages, history.deliveries.message[known])
    np.maximum.at(steps, delivered, history.deliveries.depth[known])
    return Costs(
        genuine_rate=1 - len(foreign_messages(history, messages, index)) / count,
        fast_rate=1 - len(slow) / count,
        steps=float(steps.mean()),
        volume=int(inner.sum()) / count,
        header_bytes=float(sends.header_bytes[inner].mean()) if inner.any() else 0.0,
    )


def foreign_messages(history: History, messages: Ints, index: Ints) -> Ints:
    """The messages about which a process that is neither origin nor destination heard."""
    multicasts = history.multicasts
    span = int(
        max(
            multicasts.process.max(initial=0),
            multicasts.targets.max(initial=0),
            history.sends.process.max(initial=0),
            history.receives.process.max(initial=0),
        )
        + 1
    )
    lengths = np.diff(multicasts.offsets)
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    number_of_row = np.searchsorted(messages, multicasts.message)
    allowed = np.concatenate(
        (
            number_of_row[row_of] * span + multicasts.targets,
            np.arange(len(messages)) * span + multicasts.process[index],
        )
    )
    involved = []
    for packets in (history.sends, history.receives):
        known = np.isin(packets.message, messages)
        number = np.searchsorted(messages, packets.message[known])
        involved.append(np.unique(number * span + packets.process[known]))
    pairs = np.unique(np.concatenate(involved))
    foreign: Ints = np.unique(pairs[~np.isin(pairs, allowed)] // span)
    return foreign
