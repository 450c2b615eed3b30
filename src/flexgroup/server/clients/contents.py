"""The contents of an envelope: messages with their senders.

They are encoded once, by the server whose clients sent them, in the form in which clients get
them: the other servers pass the bytes on without looking at each message. Who has sent several in
a row is named once.
"""

from __future__ import annotations

import logging

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.wire.frames import decoded
from flexgroup.wire.requests import Delivered, DeliveredKept, Sent

log = logging.getLogger("flexgroup.server")

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[Sent])


def packed(sent: list[Sent]) -> bytes:
    """Encode messages."""
    return _encode(sent)


def packed_one_by_one(messages: list[tuple[str, bytes]]) -> bytes:
    """Encode messages, each of which comes with its sender."""
    sent: list[Sent] = []
    for sender, body in messages:
        if sent and sent[-1].sender == sender:
            sent[-1].bodies.append(body)
        else:
            sent.append(Sent(sender, [body]))
    return packed(sent)


def opened(contents: bytes) -> list[tuple[str, bytes]]:
    """The messages in it, each with its sender: none if another server has put in what are no
    messages."""
    try:
        sent = decoded(_decoder, contents, "an envelope with malformed contents")
    except PeerError as error:
        log.warning("dropped", extra={"data": {"reason": str(error)}})
        return []
    return [(one.sender, body) for one in sent for body in one.bodies]


def head_of(groups: list[int], here: int) -> bytes:
    """What goes before the position and the contents of an envelope to make them deliveries of
    the first `here` of these groups."""
    return _encode(Delivered(groups, here, 0, []))[:-2]


def head_of_kept(group: int, ahead: int) -> bytes:
    """The same, of a group that keeps its messages; their numbers are so far ahead of their
    positions."""
    return _encode(DeliveredKept(group, ahead, 0, []))[:-2]
