"""What a server tells the process that writes its trace, through a pipe."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from flexgroup.trace.run import Run

LENGTH_BYTES = 4


class Began(Struct, frozen=True, array_like=True, tag=True):
    """A run has begun."""

    run: Run
    """Its row in `runs`, as far as it is known."""
    servers: tuple[str, ...]
    """Who records it, as file names have it, by process."""


class Happened(Struct, frozen=True, array_like=True, tag=True):
    """Events of a run, as columns of a log, with the labels and destination sets that are new."""

    run: str
    columns: list[bytes]
    labels: list[tuple[str | None, str | None]]
    destination_sets: list[tuple[int, ...]]


class Ended(Struct, frozen=True, array_like=True, tag=True):
    """A run is over; these processes are not in the next configuration."""

    run: str
    missed: tuple[int, ...]


class Closed(Struct, frozen=True, array_like=True, tag=True):
    """The server ends. The last of all servers has nobody to leave anything to."""

    is_last: bool


Order = Began | Happened | Ended | Closed

_decoder = msgspec.msgpack.Decoder(Order)


def framed(order: Order) -> bytes:
    content = msgspec.msgpack.encode(order)
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def taken_from(received: bytearray) -> list[Order]:
    """The orders that are there whole; they are removed."""
    orders, start = [], 0
    while len(received) >= start + LENGTH_BYTES:
        begin = start + LENGTH_BYTES
        end = begin + int.from_bytes(received[start:begin], "little")
        if end > len(received):
            break
        orders.append(_decoder.decode(received[begin:end]))
        start = end
    del received[:start]
    return orders
