"""The envelope that messages of clients travel in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError
from flexgroup.worlds.network.envelope import past_of, seal, unseal

numbers = st.integers(0, (1 << 70) - 1)


def test_the_bytes_of_an_envelope() -> None:
    """Two groups: 1 at position 0 and 200 at position 2**40; 21 messages; what they are."""
    sealed = seal(((1, 0), (200, 1 << 40)), 21, b"contents")
    assert sealed.hex(" ") == "02 01 00 c8 01 80 80 80 80 80 20 15 63 6f 6e 74 65 6e 74 73"


def test_in_causal_order_an_envelope_begins_with_what_precedes_it() -> None:
    """Of three processes; then one group, 1 at position 0, and one message."""
    sealed = seal(((1, 0),), 1, b"x", (3, 0, 200))
    assert sealed.hex(" ") == "03 00 c8 01 01 01 00 01 78"


@given(
    groups=st.lists(st.tuples(numbers, numbers)).map(tuple),
    count=numbers,
    contents=st.binary(),
    past=st.lists(numbers, max_size=4).map(tuple),
)
def test_what_was_sealed_is_unsealed(
    groups: tuple[tuple[int, int], ...], count: int, contents: bytes, past: tuple[int, ...]
) -> None:
    sealed = seal(groups, count, contents, past)
    envelope = unseal(sealed, len(past))
    assert (envelope.groups, envelope.count, envelope.contents) == (groups, count, contents)
    assert past_of(sealed, len(past)) == past


@given(data=st.binary(max_size=40))
def test_any_bytes_are_an_envelope_or_the_fault_of_the_peer(data: bytes) -> None:
    try:
        envelope = unseal(data)
    except PeerError:
        return
    again = unseal(seal(envelope.groups, envelope.count, envelope.contents))
    assert again.groups == envelope.groups


@pytest.mark.parametrize("data", ["", "80", "ff ff ff ff ff ff ff ff ff ff 00"])
def test_a_number_must_end(data: str) -> None:
    with pytest.raises(
        PeerError, match=r"in the middle of a number|a number has more than 10 bytes"
    ):
        unseal(bytes.fromhex(data))
