"""The recorder: a journal that hands what happened to a sink, in blocks of rows.

Texts (packet names, details) and destination sets repeat endlessly, so each is kept
once, in a table, and rows hold its number.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from flexgroup.core.journal import (
    COMPLETION,
    DELIVER,
    MULTICAST,
    NO_LABEL,
    RECEIVE,
    SEND,
    Journal,
    Transmission,
    send_detail,
)
from flexgroup.core.message import NO_MESSAGE, Message, Packet
from flexgroup.trace.rows import EventLog, new_event_log


@mypyc_attr(allow_interpreted_subclasses=True)
class Sink:
    """Takes blocks of rows, as columns, with the tables that their numbers refer to."""

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        raise NotImplementedError


class Recorder(Journal):
    """Logs the events of all processes.

    Sends and receives, which are most of a trace, have logs of their own so that a sink
    need not sort them out.
    """

    def __init__(self, sink: Sink | None, block: int = 1 << 18) -> None:
        self.sends = new_event_log(SEND)
        self.receives = new_event_log(RECEIVE)
        self.others = new_event_log()
        self.has_messages = False
        """Some message was multicast or delivered."""
        self.has_drained = False
        """Some rows have gone to the sink."""
        self._sink = sink
        self._block = block
        self._labels: list[tuple[str | None, str | None]] = [(None, None)]
        self._label_numbers: dict[str, int] = {"": NO_LABEL}
        self._label_of_type: dict[type[Packet], int] = {}
        self._sets: list[tuple[int, ...]] = []
        self._set_numbers: dict[tuple[int, ...], int] = {}

    def label(self, packet: Packet) -> int:
        detail = packet.detail()
        if detail is not None:
            return self._label(type(packet).__name__, detail)
        number = self._label_of_type.get(type(packet))
        if number is None:
            number = self._label(type(packet).__name__, None)
            self._label_of_type[type(packet)] = number
        return number

    def multicast(self, process: int, step: int, time: int, m: Message) -> None:
        number = self._set_numbers.get(m.destinations)
        if number is None:
            number = len(self._sets)
            self._set_numbers[m.destinations] = number
            self._sets.append(m.destinations)
        self.has_messages = True
        size = _payload_bytes(m)
        self.others.add(MULTICAST, process, step, time, m.id, 0, number, 0, 0, size, 0, 0)

    def send(
        self, process: int, step: int, time: int, target: int, transmission: Transmission
    ) -> None:
        label = transmission.label
        if transmission.work_of == COMPLETION:
            label = self._label(type(transmission.packet).__name__, send_detail(transmission))
        self.sends.add(
            SEND,
            process,
            step,
            time,
            transmission.message,
            target,
            label,
            transmission.depth,
            transmission.header_bytes,
            transmission.payload_bytes,
            0,
            0,
        )

    def receive(
        self,
        process: int,
        step: int,
        time: int,
        sender: int,
        transmission: Transmission,
        sent: int,
        queued: int,
    ) -> None:
        self.receives.add(
            RECEIVE,
            process,
            step,
            time,
            transmission.message,
            sender,
            transmission.label,
            transmission.depth,
            transmission.header_bytes,
            transmission.payload_bytes,
            sent,
            queued,
        )

    def deliver(self, process: int, step: int, time: int, m: Message, depth: int) -> None:
        self.has_messages = True
        size = _payload_bytes(m)
        self.others.add(DELIVER, process, step, time, m.id, 0, NO_LABEL, depth, 0, size, 0, 0)

    def other(
        self, kind: int, process: int, step: int, time: int, peer: int, detail: str | None
    ) -> None:
        label = self._label(None, detail)
        self.others.add(kind, process, step, time, NO_MESSAGE, peer, label, 0, 0, 0, 0, 0)

    def _label(self, packet: str | None, detail: str | None) -> int:
        key = f"{packet or ''}\0{detail}" if detail is not None else (packet or "")
        number = self._label_numbers.get(key)
        if number is None:
            number = len(self._labels)
            self._label_numbers[key] = number
            self._labels.append((packet, detail))
        return number

    def flush_if_full(self) -> None:
        for log in (self.sends, self.receives, self.others):
            if log.count >= self._block:
                self._drain(log)

    def flush(self) -> None:
        for log in (self.sends, self.receives, self.others):
            self._drain(log)

    def _drain(self, log: EventLog) -> None:
        if log.count:
            columns = log.drain()
            self.has_drained = True
            if self._sink is not None:
                self._sink.take(columns, self._labels, self._sets)


def _payload_bytes(m: Message) -> int:
    payload = m.payload
    return 0 if isinstance(payload, Packet) else len(payload)
