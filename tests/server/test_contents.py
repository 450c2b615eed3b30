"""The contents of an envelope: who has sent several messages in a row is named once."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.server.clients.contents import opened, packed, packed_one_by_one
from flexgroup.wire.requests import Sent

MESSAGES = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=4)))


@given(MESSAGES)
def test_messages_come_out_with_their_senders_in_their_order(
    messages: list[tuple[str, bytes]],
) -> None:
    assert opened(packed_one_by_one(messages)) == messages


def test_a_sender_is_named_once_for_messages_in_a_row() -> None:
    contents = packed_one_by_one([("a", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"4")])
    assert contents == packed([Sent("a", [b"1", b"2"]), Sent("b", [b"3"]), Sent("a", [b"4"])])
    assert contents.count(b"a") == 2


def test_what_another_server_made_up_holds_no_message() -> None:
    for made_up in ([["a", b"1"]], [["a", [1]]], [["a", [b"1"], 2]], {"a": [b"1"]}):
        assert opened(msgspec.msgpack.encode(made_up)) == []
