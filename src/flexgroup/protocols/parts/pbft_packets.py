"""The packets by which replicas agree although some of them lie, in the words of Castro and Liskov
1999, and what a seal or a digest in them is of."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from flexgroup.core.message import Message, Packet
from flexgroup.core.state import write_canonically

DIGEST_BYTES: Final = 20


def digest_of(messages: tuple[Message, ...]) -> bytes:
    """The digest of a batch: of the identities, destinations and contents of its messages."""
    out = bytearray()
    write_canonically(out, messages)
    return blake2b(out, digest_size=DIGEST_BYTES).digest()


def digest_after(before: bytes, digest: bytes) -> bytes:
    """The digest of all that was delivered, when the batch with this digest is delivered as
    well."""
    return blake2b(before + digest, digest_size=DIGEST_BYTES).digest()


@final
class Request(Packet):
    """Order m; sent by its origin to all replicas, and sealed since the primary quotes it."""

    m: Message
    seal: bytes

    def said(self) -> Request:
        """What the seal is of."""
        return Request(self.m, b"")


@final
class PrePrepare(Packet):
    """These requests have this sequence number in this view, says its primary, in the place of its
    own `Prepare` for them."""

    view: int
    number: int
    requests: tuple[Packet, ...]

    def batch(self) -> tuple[Message, ...]:
        """The batch, if what is quoted is requests."""
        return tuple([one.m for one in self.requests if isinstance(one, Request)])


@final
class Prepare(Packet):
    """I take part in giving this number to the batch with this digest, in this view."""

    view: int
    number: int
    digest: bytes


@final
class Commit(Packet):
    """The batch with this digest is prepared here in this view: a quorum takes part in it."""

    view: int
    number: int
    digest: bytes


@final
class Checkpoint(Packet):
    """I have delivered the batches up to this number; the digest is that of all of them."""

    number: int
    digest: bytes
    process: int
    seal: bytes

    def said(self) -> Checkpoint:
        """What the seal is of."""
        return self.with_seal(b"")

    def with_seal(self, seal: bytes) -> Checkpoint:
        return Checkpoint(self.number, self.digest, self.process, seal)


@final
class ViewChange(Packet):
    """I take part in no view before this one.

    `stable` is the number of my last stable checkpoint, and `C` the sealed checkpoints that prove
    it. `P` are the commits that I have sent beyond it, the last one for each number, and `Q` the
    prepares, the last one for each number and batch. All of that is sealed. The rest is only for
    who gets it from me: the batches that `P` is about, each as it was pre-prepared, and the last
    number that I have delivered.
    """

    view: int
    stable: int
    C: tuple[Packet, ...]
    P: tuple[Packet, ...]
    Q: tuple[Packet, ...]
    process: int
    seal: bytes
    batches: tuple[Packet, ...]
    last: int

    def said(self) -> ViewChange:
        """What the seal is of."""
        return self.with_seal(b"").quoted()

    def with_seal(self, seal: bytes) -> ViewChange:
        return ViewChange(
            self.view, self.stable, self.C, self.P, self.Q, self.process, seal, self.batches,
            self.last,
        )  # fmt: skip

    def quoted(self) -> ViewChange:
        """This as a new view quotes it: with its seal, and without what that is not of."""
        return ViewChange(
            self.view, self.stable, self.C, self.P, self.Q, self.process, self.seal, (), 0
        )


@final
class NewView(Packet):
    """This view begins, as so many replicas ask for it in `V`, with the pre-prepares in `O`."""

    view: int
    V: tuple[Packet, ...]
    O: tuple[Packet, ...]  # noqa: E741


@final
class Fetch(Packet):
    """I lack the batches from `first` to `last`: tell me as soon as you have delivered them."""

    first: int
    last: int


@final
class Fetched(Packet):
    """I have delivered this batch under this number."""

    number: int
    messages: tuple[Message, ...]


@final
class Batch(Packet):
    """What was delivered under a number, in stable storage for replicas that lack it."""

    messages: tuple[Message, ...]
