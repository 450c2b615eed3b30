"""Python values as messages: what comes back, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup import values
from flexgroup.client.keys import check_keys
from flexgroup.core.errors import PeerError, UsageError

integers = st.integers(-(1 << 200), 1 << 200)
leaves = (
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC))
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(-(1 << 63), (1 << 64) - 1), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=50)
@given(anything)
def test_values_come_back_as_they_were(value: Any) -> None:
    data = values.encode(value)
    check_keys(data, values.DEEPEST)
    again = values.decode(data)
    assert again == value
    assert type(again) is type(value)


@settings(max_examples=300)
@given(st.binary(max_size=64))
def test_bytes_from_anybody_are_a_value_or_the_fault_of_the_sender(data: bytes) -> None:
    with suppress(PeerError):
        check_keys(data, values.DEEPEST)
        values.decode(data)


@settings(max_examples=50)
@given(anything, st.data())
def test_damaged_values_are_a_value_or_the_fault_of_the_sender(value: Any, data: Any) -> None:
    damaged = bytearray(values.encode(value))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] = data.draw(st.integers(0, 255))
    with suppress(PeerError):
        values.decode(bytes(damaged))


@dataclass
class Order:
    item: str
    cups: int
    at: datetime


class Shape(msgspec.Struct, tag=True):
    corners: tuple[tuple[int, int], ...]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Order, Order("tea", 2, datetime(2024, 2, 29, tzinfo=UTC))),
        (Shape, Shape(((0, 0), (1, 0)))),
        (set[int], {1, 2, 3}),
        (tuple[int, str], (1, "a")),
        (dict[int, list[str]], {1: ["a"]}),
    ],
)
def test_with_a_type_values_come_back_as_that_type(kind: type[Any], value: Any) -> None:
    codec = values.of(kind)
    assert codec.decode(codec.encode(value)) == value


def test_a_message_that_does_not_fit_the_type_is_the_fault_of_the_sender() -> None:
    with pytest.raises(PeerError, match="Expected `int`"):
        values.of(int).decode(values.encode("seven"))


def test_a_value_that_does_not_fit_the_type_is_not_sent() -> None:
    with pytest.raises(UsageError, match="this is no int"):
        values.of(int).encode("seven")  # type: ignore[arg-type]


def test_without_a_type_tuples_and_sets_are_lists() -> None:
    assert values.decode(values.encode((1, (2, 3)))) == [1, [2, 3]]
    assert values.decode(values.encode({4})) == [4]


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_limited_on_both_sides() -> None:
    assert values.decode(values.encode(nested(values.DEEPEST))) == nested(values.DEEPEST)
    with pytest.raises(UsageError, match="deeper than 64"):
        values.encode(nested(values.DEEPEST + 1))
    for depth in (values.DEEPEST, 1_000_000):
        with pytest.raises(PeerError, match="deeper than 64"):
            values.decode(b"\x91" * depth + b"\x90")


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="deeper than 64"):
        values.encode(loop)


def test_sizes_are_limited() -> None:
    with pytest.raises(PeerError, match="at most"):
        values.decode(b"\xc6" + values.MOST_BYTES.to_bytes(4, "big") + bytes(values.MOST_BYTES))
    with pytest.raises(UsageError, match="send larger ones as text"):
        values.encode(1 << 10_000)
    with pytest.raises(PeerError, match="an integer of 2000 bytes"):
        values.decode(msgspec.msgpack.encode(msgspec.msgpack.Ext(1, bytes(2000))))


def with_keys(keys: list[bytes]) -> bytes:
    """A dict of None for each of these keys."""
    return b"\xdf" + len(keys).to_bytes(4, "big") + b"".join(key + b"\xc0" for key in keys)


def large_integer(value: int) -> bytes:
    data = value.to_bytes(16, "big")
    return b"\xd8\x01" + data


def array(number: int) -> bytes:
    """Of -1 and -2, whose hashes are the same."""
    return b"\xdc\x00\x10" + bytes(0xFF - (number >> place & 1) for place in range(16))


@pytest.mark.parametrize(
    "keys",
    [
        [large_integer(1 + number * ((1 << 61) - 1)) for number in range(50_000)],
        [array(number) for number in range(50_000)],
    ],
    ids=["large integers", "arrays"],
)
def test_a_dict_whose_keys_have_one_hash_is_refused_before_it_is_read(keys: list[bytes]) -> None:
    for data in (with_keys(keys), b"\x92\xa1a" + with_keys([b"\xa1b", *keys])):
        with pytest.raises(PeerError, match="a dict with a key"):
            values.decode(data)


def test_points_in_time_may_be_keys() -> None:
    check_keys(values.encode({datetime(2024, 2, 29, tzinfo=UTC): 1}), values.DEEPEST)


def test_a_length_that_is_a_lie_costs_nothing() -> None:
    for lie in (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"):
        with pytest.raises(PeerError, match="truncated"):
            values.decode(lie)


def test_an_extension_that_is_not_ours_is_refused() -> None:
    with pytest.raises(PeerError, match="code 5"):
        values.decode(msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"")))


def test_what_cannot_be_a_message_is_said_when_it_is_sent() -> None:
    for value in (object(), {"a": lambda: None}, "\ud800"):
        with pytest.raises(UsageError, match="cannot hold this value"):
            values.encode(value)
    with pytest.raises(UsageError, match="cannot be messages"):
        values.of(type(lambda: None) | dict[list[int], set[Any] | list[Any]])  # type: ignore[arg-type]


def test_who_sends_a_value_that_receivers_would_refuse_is_told() -> None:
    few, many = [{(number, number): 0 for number in range(count)} for count in (10, 2_000)]
    assert values.decode(values.encode(few)) == few
    with pytest.raises(UsageError, match=r"receivers refuse this value .* send it as a list"):
        values.encode(many)
