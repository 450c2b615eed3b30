"""Messages: what an application multicasts and what is delivered to it.

A message's identity is the pair (origin, seq): the process that multicast it and
how many it had multicast before. Protocols use identities as keys millions of times
a second, so the pair is packed into one integer that hashes fast, sorts by origin
and then by seq, and looks the same in every process whatever its hash seed.
"""

from __future__ import annotations

from typing import final

MessageId = int

SEQ_BITS = 40
_SEQ_MASK = (1 << SEQ_BITS) - 1


def message_id(origin: int, seq: int) -> MessageId:
    return (origin << SEQ_BITS) | seq


def origin_of(identity: MessageId) -> int:
    return identity >> SEQ_BITS


def seq_of(identity: MessageId) -> int:
    return identity & _SEQ_MASK


def name_of(identity: MessageId) -> str:
    """The identity as people write it: `origin.seq`."""
    return f"{origin_of(identity)}.{seq_of(identity)}"
