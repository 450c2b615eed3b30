"""The wire codec, derived from the fields that packets declare.

Integers are of variable length (`flexgroup.core.varints`); lists and byte strings carry their
length. A message carries identity, destinations and payload; where the layer is not the top one,
the payload is the packet of the layer above, or of one that the layer hosts, encoded in turn. A
packet with several messages is about all of them, and about the first of them if only one counts.
A packet may quote others of its layer, and is about their messages as well.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.fields import (
    ALL_BYTES,
    BYTES,
    ID,
    INT,
    INTS,
    MESSAGE,
    MESSAGES,
    PACKET,
    PACKETS,
    STAMP,
    TEXT,
)
from flexgroup.core.journal import COMPLETION, ONE_SIDED, Transmission
from flexgroup.core.layer import Layer
from flexgroup.core.message import (
    NO_MESSAGE,
    ORIGIN_MASK,
    PROCESS_MASK,
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
from flexgroup.core.stack import packets_by_level
from flexgroup.core.varints import Reader, append_varint, varint_size

MAX_LIST: Final = 1 << 20
MAX_QUOTES: Final = 8
"""How deep packets may stand within packets of the same layer."""
MAX_COUNT: Final = (1 << 43) - 1
"""More messages or clock ticks would not fit beside a process in one integer."""


def _write_ints(out: BytesWriter, items: tuple[int, ...]) -> None:
    append_varint(out, len(items))
    for item in items:
        append_varint(out, item)


def _write_bytes(out: BytesWriter, data: bytes) -> None:
    append_varint(out, len(data))
    out.write(data)


def _read_identity(reader: Reader) -> MessageId:
    origin = reader.varint()
    seq = reader.varint()
    if origin > ORIGIN_MASK or seq > MAX_COUNT:
        raise PeerError(f"message {origin}.{seq}: no process counts that far")
    return message_id(origin, seq)


def _read_stamp(reader: Reader) -> Stamp:
    clock = reader.varint()
    process = reader.varint()
    if process > PROCESS_MASK or clock > MAX_COUNT:
        raise PeerError(f"timestamp ({clock},{process}): no process counts that far")
    return stamp(clock, process)


def _read_length(reader: Reader) -> int:
    length = reader.varint()
    if length > MAX_LIST:
        raise PeerError(f"a list of {length} entries; at most {MAX_LIST} are accepted")
    return length


def _read_ints(reader: Reader) -> tuple[int, ...]:
    length = _read_length(reader)
    if length == 0:
        return ()
    return tuple([reader.varint() for _entry in range(length)])


@final
class _Field:
    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: int) -> None:
        self.name = name
        self.kind: i64 = kind


@final
class _Format:
    """What packets of one type are on the wire."""

    __slots__ = ("fields", "tag", "type")

    def __init__(self, tag: int, type_: type[Packet]) -> None:
        self.tag = tag
        self.type = type_
        self.fields = [_Field(name, kind) for name, kind in type_.FIELDS]


@final
class _Level:
    """The packets of one layer, and where the message in the last of them went."""

    __slots__ = ("_destinations", "_encoded_destinations", "formats", "formats_by_type")

    def __init__(self, packets: tuple[type[Packet], ...]) -> None:
        self.formats = [_Format(tag, type_) for tag, type_ in enumerate(packets)]
        self.formats_by_type = {format_.type: format_ for format_ in self.formats}
        self._destinations: tuple[int, ...] = ()
        self._encoded_destinations = b"\0"

    def read_destinations(self, reader: Reader) -> tuple[int, ...]:
        """Most are those of the message before: the same bytes are read and checked once."""
        start = reader.position
        end = start + len(self._encoded_destinations)
        if end <= reader.end and reader.data[start:end] == self._encoded_destinations:
            reader.position = end
            return self._destinations
        destinations = _read_ints(reader)
        before = -1
        for destination in destinations:
            if destination <= before:
                raise PeerError("the destinations are not in ascending order")
            before = destination
        self._destinations = destinations
        self._encoded_destinations = reader.data[start : reader.position]
        return destinations


@final
class Codec:
    """Encodes, decodes and measures the packets of one stack."""

    __slots__ = (
        "_about_the_same",
        "_adapters",
        "_levels",
        "_measured",
        "_measured_bytes",
        "_places",
        "_quotes",
        "_stored",
    )

    def __init__(self, layers: list[type[Layer]]) -> None:
        self._levels = [_Level(packets) for packets in packets_by_level(layers)]
        self._stored = [_Level(layer.STORED) for layer in layers]
        self._places: list[int] = []
        """The level of each layer on the wire, where what layers host is a level, too."""
        place = 0
        for layer in layers:
            self._places.append(place)
            place += 2 if layer.HOSTED else 1
        self._quotes = 0
        """How many packets of the same layer stand around the one that is being read."""
        self._adapters: dict[type[Packet], int] = {}
        """The packets that adapters take in, or send as well, without a processor."""
        self._about_the_same: set[type[Packet]] = set()
        for layer in layers:
            self._about_the_same.update(layer.ABOUT_THE_SAME)
            for packet in layer.ONE_SIDED:
                self._adapters[packet] = COMPLETION if packet in layer.COMPLETIONS else ONE_SIDED
        # One message may go to a thousand destinations, in a hundred thousand packets.
        self._measured: tuple[int, ...] = ()
        self._measured_bytes = 1

    def encode(self, packet: Packet) -> bytes:
        out = BytesWriter()
        self._write(out, 0, self._levels[0], packet)
        return out.getvalue()

    def statement(self, layer: int, packet: Packet) -> bytes:
        """What a process says by a packet of this layer of the stack: the bytes that are sealed.

        They begin with the layer and the type of the packet, so that no other packet has them.
        """
        level = self._places[layer]
        types = self._levels[level]
        if type(packet) not in types.formats_by_type:
            raise UsageError(
                f"a seal is asked for or checked of {type(packet).__name__}, which the PACKETS of "
                f"layer {layer} does not name; add it, or nobody can tell what the seal is of"
            )
        out = BytesWriter()
        append_varint(out, level)
        self._write(out, level, types, packet)
        return out.getvalue()

    def encode_stored(self, level: int, packet: Packet) -> bytes:
        """What a layer has in stable storage, as bytes."""
        out = BytesWriter()
        self._write(out, level, self._stored[level], packet)
        return out.getvalue()

    def decode_stored(self, level: int, data: bytes) -> Packet:
        return self._decode(Reader(data, 0, len(data)), level, self._stored[level])

    def decode(self, data: bytes) -> Packet:
        return self.decode_part(data, 0, len(data))

    def decode_part(self, data: bytes, start: int, end: int) -> Packet:
        """The packet that these bytes of the data are."""
        return self._decode(Reader(data, start, end), 0, self._levels[0])

    def _decode(self, reader: Reader, level: int, types: _Level) -> Packet:
        self._quotes = 0
        packet = self._read(reader, level, types)
        if reader.position != reader.end:
            raise PeerError(f"{reader.end - reader.position} bytes are left over after the packet")
        return packet

    def measure(self, packet: Packet) -> Transmission:
        """The size of what `encode` would produce, and the messages that the packet is about."""
        measured = Transmission(packet)
        self._measure(packet, measured)
        return measured

    def _write(self, out: BytesWriter, level: int, types: _Level, packet: Packet) -> None:
        format_ = types.formats_by_type[type(packet)]
        out.append(format_.tag)
        for field in format_.fields:
            value = getattr(packet, field.name)
            kind = field.kind
            if kind == INT:
                append_varint(out, value)
            elif kind == ID:
                identity: MessageId = value
                append_varint(out, origin_of(identity))
                append_varint(out, seq_of(identity))
            elif kind == STAMP:
                timestamp: Stamp = value
                append_varint(out, clock_of(timestamp))
                append_varint(out, process_of(timestamp))
            elif kind == INTS:
                _write_ints(out, value)
            elif kind == TEXT:
                text: str = value
                _write_bytes(out, text.encode())
            elif kind == MESSAGE:
                self._write_message(out, level, value)
            elif kind == MESSAGES:
                messages: tuple[Message, ...] = value
                append_varint(out, len(messages))
                for m in messages:
                    self._write_message(out, level, m)
            elif kind == BYTES:
                _write_bytes(out, value)
            elif kind == ALL_BYTES:
                strings: tuple[bytes, ...] = value
                append_varint(out, len(strings))
                for string in strings:
                    _write_bytes(out, string)
            elif kind == PACKET:
                self._write(out, level, types, value)
            else:
                assert kind == PACKETS, kind
                quoted: tuple[Packet, ...] = value
                append_varint(out, len(quoted))
                for other in quoted:
                    self._write(out, level, types, other)

    def _write_message(self, out: BytesWriter, level: int, m: Message) -> None:
        append_varint(out, origin_of(m.id))
        append_varint(out, seq_of(m.id))
        _write_ints(out, m.destinations)
        payload = m.payload
        if isinstance(payload, Packet):
            self._write(out, level + 1, self._levels[level + 1], payload)
        else:
            _write_bytes(out, payload)

    def _read(self, reader: Reader, level: int, types: _Level) -> Packet:
        tag = reader.varint()
        formats = types.formats
        if tag >= len(formats):
            raise PeerError(f"packet type {tag} at level {level}; there are {len(formats)} types")
        format_ = formats[tag]
        values: list[object] = []
        for field in format_.fields:
            kind = field.kind
            if kind == INT:
                values.append(reader.varint())
            elif kind == ID:
                values.append(_read_identity(reader))
            elif kind == STAMP:
                values.append(_read_stamp(reader))
            elif kind == INTS:
                values.append(_read_ints(reader))
            elif kind == TEXT:
                try:
                    values.append(reader.bytes().decode())
                except UnicodeDecodeError:
                    raise PeerError("a text is not UTF-8") from None
            elif kind == MESSAGE:
                values.append(self._read_message(reader, level))
            elif kind == MESSAGES:
                count = _read_length(reader)
                values.append(tuple([self._read_message(reader, level) for _m in range(count)]))
            elif kind == BYTES:
                values.append(reader.bytes())
            elif kind == ALL_BYTES:
                count = _read_length(reader)
                values.append(tuple([reader.bytes() for _string in range(count)]))
            elif kind == PACKET:
                values.append(self._read_quoted(reader, level, types))
            else:
                assert kind == PACKETS, kind
                count = _read_length(reader)
                quoted = [self._read_quoted(reader, level, types) for _packet in range(count)]
                values.append(tuple(quoted))
        make = format_.type
        return make(*values)

    def _read_quoted(self, reader: Reader, level: int, types: _Level) -> Packet:
        """A packet within one of the same layer."""
        if self._quotes == MAX_QUOTES:
            raise PeerError(f"packets stand within packets more than {MAX_QUOTES} deep")
        self._quotes += 1
        packet = self._read(reader, level, types)
        self._quotes -= 1
        return packet

    def _read_message(self, reader: Reader, level: int) -> Message:
        identity = _read_identity(reader)
        destinations = self._levels[level].read_destinations(reader)
        if level + 1 < len(self._levels):
            above = level + 1
            return Message(identity, destinations, self._read(reader, above, self._levels[above]))
        return Message(identity, destinations, reader.bytes())

    def _measure_destinations(self, destinations: tuple[int, ...]) -> None:
        size = varint_size(len(destinations))
        for destination in destinations:
            size += varint_size(destination)
        self._measured = destinations
        self._measured_bytes = size

    def _measure_message(self, m: Message, measured: Transmission) -> int:
        """How many bytes of the header are about this message; what it carries is added."""
        size = varint_size(origin_of(m.id)) + varint_size(seq_of(m.id))
        if m.destinations is not self._measured:
            self._measure_destinations(m.destinations)
        size += self._measured_bytes
        payload = m.payload
        if isinstance(payload, Packet):
            self._measure(payload, measured)
        else:
            measured.message = m.id
            measured.payload_bytes += len(payload)
            size += varint_size(len(payload))
        return size

    def _measure_messages(self, messages: tuple[Message, ...], measured: Transmission) -> int:
        """The same of several, the first of which is the one if only one counts."""
        size = 0
        others: list[MessageId] = []
        # The last one that is measured is the first.
        for m in reversed(messages):
            other = measured.message
            measured.message = NO_MESSAGE
            size += self._measure_message(m, measured)
            if measured.message == NO_MESSAGE:
                measured.message = other
            elif other != NO_MESSAGE and other != measured.message:
                others.append(other)
        if others:
            measured.others = (*measured.others, *others)
        return size

    def _measure_quoted(self, packets: tuple[Packet, ...], measured: Transmission) -> None:
        """The same of packets within one of their layer, which says itself what it is about first.

        That they are one-sided, or about the same as what they answered, says nothing of it.
        """
        work_of = measured.work_of
        about_the_same = measured.about_the_same
        for packet in packets:
            before = measured.message
            measured.message = NO_MESSAGE
            self._measure(packet, measured)
            if before != NO_MESSAGE:
                quoted = measured.message
                measured.message = before
                if quoted != NO_MESSAGE and quoted not in measured.others:
                    measured.others = (*measured.others, quoted)
        if measured.message in measured.others:
            measured.others = tuple([m for m in measured.others if m != measured.message])
        measured.work_of = work_of
        measured.about_the_same = about_the_same

    def _measure(self, packet: Packet, measured: Transmission) -> None:
        size = 1
        if self._adapters and type(packet) in self._adapters:
            measured.work_of = self._adapters[type(packet)]
        if self._about_the_same and type(packet) in self._about_the_same:
            measured.about_the_same = True
        for name, kind in packet.FIELDS:
            if kind == MESSAGE:
                size += self._measure_message(getattr(packet, name), measured)
            elif kind == MESSAGES:
                messages: tuple[Message, ...] = getattr(packet, name)
                size += varint_size(len(messages))
                if len(messages) == 1:
                    size += self._measure_message(messages[0], measured)
                elif messages:
                    size += self._measure_messages(messages, measured)
            elif kind == ID:
                identity: int = getattr(packet, name)
                size += varint_size(origin_of(identity)) + varint_size(seq_of(identity))
                if measured.message == NO_MESSAGE:
                    measured.message = identity
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
            elif kind == TEXT:
                text: str = getattr(packet, name)
                encoded = len(text.encode())
                size += varint_size(encoded) + encoded
            elif kind == BYTES:
                data: bytes = getattr(packet, name)
                size += varint_size(len(data)) + len(data)
            elif kind == ALL_BYTES:
                strings: tuple[bytes, ...] = getattr(packet, name)
                size += varint_size(len(strings))
                for string in strings:
                    size += varint_size(len(string)) + len(string)
            elif kind == PACKET:
                self._measure_quoted((getattr(packet, name),), measured)
            else:
                quoted: tuple[Packet, ...] = getattr(packet, name)
                size += varint_size(len(quoted))
                self._measure_quoted(quoted, measured)
        measured.header_bytes += size
