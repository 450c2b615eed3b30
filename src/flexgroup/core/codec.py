"""The wire codec, derived from the fields that packets declare.

Every integer is a variable-length one (seven bits a byte, low bits first), so small
counters cost one byte and no counter ever overflows. Lists and byte strings carry their
length. A message field carries identity, destinations and payload; where the layer is
not the top one, the payload is the packet of the layer above, encoded in turn.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Layer
from flexgroup.core.message import (
    ID,
    INT,
    INTS,
    MESSAGE,
    NO_MESSAGE,
    ORIGIN_MASK,
    PROCESS_MASK,
    STAMP,
    TEXT,
    Message,
    MessageId,
    Packet,
    Stamp,
    clock_of,
    message_id,
    origin_of,
    process_of,
    seq_of,
    stamp,
)

MAX_LIST: Final = 1 << 20
MAX_VARINT_BYTES: Final = 10
MAX_COUNT: Final = (1 << 43) - 1
"""Of messages and clock ticks: more would not fit beside a process in one integer."""


def varint_size(value: int) -> int:
    if value < 128:
        return 1
    return (value.bit_length() + 6) // 7


def write_varint(out: bytearray, value: int) -> None:
    if value < 0:
        raise ValueError(f"the wire has no negative integers, and a packet holds {value}")
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)


@final
class _Reader:
    """Reads what a peer sent; anything that is not right is the peer's fault."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def varint(self) -> int:
        at = self.position
        if at < len(self.data) and self.data[at] < 128:  # most are
            self.position = at + 1
            return self.data[at]
        return self._long_varint()

    def _long_varint(self) -> int:
        value = 0
        for shift in range(0, 7 * MAX_VARINT_BYTES, 7):
            if self.position >= len(self.data):
                raise PeerError("the packet ends in the middle of a number")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise PeerError(f"a number of more than {MAX_VARINT_BYTES} bytes")

    def identity(self) -> MessageId:
        origin = self.varint()
        seq = self.varint()
        if origin > ORIGIN_MASK or seq > MAX_COUNT:
            raise PeerError(f"message {origin}.{seq}: no process counts that far")
        return message_id(origin, seq)

    def timestamp(self) -> Stamp:
        clock = self.varint()
        process = self.varint()
        if process > PROCESS_MASK or clock > MAX_COUNT:
            raise PeerError(f"timestamp ({clock},{process}): no process counts that far")
        return stamp(clock, process)

    def length(self) -> int:
        length = self.varint()
        if length > MAX_LIST:
            raise PeerError(f"a list of {length} entries; at most {MAX_LIST} are accepted")
        return length

    def ints(self) -> tuple[int, ...]:
        return tuple([self.varint() for _ in range(self.length())])

    def bytes(self) -> bytes:
        length = self.varint()
        end = self.position + length
        if end > len(self.data):
            raise PeerError(f"{length} bytes announced, {len(self.data) - self.position} there")
        part = self.data[self.position : end]
        self.position = end
        return part


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Measure:
    """The size of a packet on the wire, and the message that it is about."""

    __slots__ = ("about", "header_bytes", "payload_bytes")

    def __init__(self) -> None:
        self.header_bytes = 0
        self.payload_bytes = 0
        self.about: MessageId = NO_MESSAGE


@final
class Codec:
    """Encodes, decodes and measures the packets of one stack."""

    __slots__ = ("_kinds", "_measured", "_measured_bytes", "_tags")

    def __init__(self, layers: list[type[Layer]]) -> None:
        self._kinds = [layer.PACKETS for layer in layers]
        self._tags: list[dict[type[Packet], int]] = [
            {kind: tag for tag, kind in enumerate(kinds)} for kinds in self._kinds
        ]
        # One message may go to a thousand destinations, in a hundred thousand packets.
        self._measured: tuple[int, ...] = ()
        self._measured_bytes = 1

    def encode(self, packet: Packet) -> bytes:
        out = bytearray()
        self._write(out, 0, packet)
        return bytes(out)

    def decode(self, data: bytes) -> Packet:
        reader = _Reader(data)
        packet = self._read(reader, 0)
        if reader.position != len(data):
            raise PeerError(f"{len(data) - reader.position} bytes left over after the packet")
        return packet

    def measure(self, packet: Packet) -> Measure:
        """What `encode` would produce, without producing it."""
        measure = Measure()
        self._measure(packet, measure)
        return measure

    def _write(self, out: bytearray, level: int, packet: Packet) -> None:
        out.append(self._tags[level][type(packet)])
        for name, kind in packet.FIELDS:
            value = getattr(packet, name)
            if kind == INT:
                write_varint(out, value)
            elif kind == ID:
                write_varint(out, origin_of(value))
                write_varint(out, seq_of(value))
            elif kind == STAMP:
                write_varint(out, clock_of(value))
                write_varint(out, process_of(value))
            elif kind == INTS:
                write_varint(out, len(value))
                for item in value:
                    write_varint(out, item)
            elif kind == TEXT:
                encoded = value.encode()
                write_varint(out, len(encoded))
                out.extend(encoded)
            else:
                assert kind == MESSAGE, kind
                self._write_message(out, level, value)

    def _write_message(self, out: bytearray, level: int, m: Message) -> None:
        write_varint(out, origin_of(m.id))
        write_varint(out, seq_of(m.id))
        write_varint(out, len(m.destinations))
        for destination in m.destinations:
            write_varint(out, destination)
        payload = m.payload
        if isinstance(payload, Packet):
            self._write(out, level + 1, payload)
        else:
            write_varint(out, len(payload))
            out.extend(payload)

    def _read(self, reader: _Reader, level: int) -> Packet:
        tag = reader.varint()
        kinds = self._kinds[level]
        if tag >= len(kinds):
            raise PeerError(f"packet type {tag} at level {level}; there are {len(kinds)} types")
        values: list[object] = []
        for _, kind in kinds[tag].FIELDS:
            if kind == INT:
                values.append(reader.varint())
            elif kind == ID:
                values.append(reader.identity())
            elif kind == STAMP:
                values.append(reader.timestamp())
            elif kind == INTS:
                values.append(reader.ints())
            elif kind == TEXT:
                try:
                    values.append(reader.bytes().decode())
                except UnicodeDecodeError:
                    raise PeerError("a text that is not UTF-8") from None
            else:
                assert kind == MESSAGE, kind
                values.append(self._read_message(reader, level))
        return kinds[tag](*values)

    def _read_message(self, reader: _Reader, level: int) -> Message:
        identity = reader.identity()
        destinations = reader.ints()
        for before, after in pairwise(destinations):
            if before >= after:
                raise PeerError("destinations that are not in ascending order")
        if level + 1 < len(self._kinds):
            return Message(identity, destinations, self._read(reader, level + 1))
        return Message(identity, destinations, reader.bytes())

    def _measure_destinations(self, destinations: tuple[int, ...]) -> None:
        size = varint_size(len(destinations))
        for destination in destinations:
            size += varint_size(destination)
        self._measured = destinations
        self._measured_bytes = size

    def _measure(self, packet: Packet, measure: Measure) -> None:
        size = 1
        for name, kind in packet.FIELDS:
            if kind == MESSAGE:
                m: Message = getattr(packet, name)
                size += varint_size(origin_of(m.id)) + varint_size(seq_of(m.id))
                if m.destinations is not self._measured:
                    self._measure_destinations(m.destinations)
                size += self._measured_bytes
                payload = m.payload
                if isinstance(payload, Packet):
                    self._measure(payload, measure)
                else:
                    measure.about = m.id
                    measure.payload_bytes += len(payload)
                    size += varint_size(len(payload))
            elif kind == ID:
                identity: int = getattr(packet, name)
                size += varint_size(origin_of(identity)) + varint_size(seq_of(identity))
                if measure.about == NO_MESSAGE:
                    measure.about = identity
            elif kind == STAMP:
                timestamp: int = getattr(packet, name)
                size += varint_size(clock_of(timestamp)) + varint_size(process_of(timestamp))
            elif kind == INT:
                number: int = getattr(packet, name)
                size += varint_size(number)
            elif kind == INTS:
                items: tuple[int, ...] = getattr(packet, name)
                size += varint_size(len(items))
                for item in items:
                    size += varint_size(item)
            else:
                text: str = getattr(packet, name)
                encoded = len(text.encode())
                size += varint_size(encoded) + encoded
        measure.header_bytes += size
