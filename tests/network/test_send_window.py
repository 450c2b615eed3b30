"""How much is let be under way, after how long messages take."""

from __future__ import annotations

from flexgroup.core.message import message_id
from flexgroup.worlds.network.send_window import (
    FIRST_BYTES,
    LEAST_BYTES,
    LONGEST_WAIT,
    SendWindow,
)


def take(window: SendWindow, milliseconds: int, is_full: bool = True) -> None:
    """Let a message take so long."""
    window.watch(1000, message_id(0, 0))
    window.was_full = is_full
    window.arrived(1000 + milliseconds)


def test_it_grows_while_messages_take_no_longer_and_it_is_full() -> None:
    window = SendWindow()
    take(window, 20)
    assert window.bytes == 2 * FIRST_BYTES
    take(window, 20, is_full=False)
    assert window.bytes == 2 * FIRST_BYTES
    take(window, 30)
    assert window.bytes == 4 * FIRST_BYTES


def test_it_shrinks_while_messages_wait_and_always_lets_some_pass() -> None:
    window = SendWindow()
    take(window, 20, is_full=False)
    take(window, 20 + LONGEST_WAIT * 3 // 2)
    assert window.bytes == FIRST_BYTES * 2 // 3
    take(window, 20 + 100 * LONGEST_WAIT)
    assert window.bytes == FIRST_BYTES // 3
    for _ in range(10):
        take(window, 20 + 100 * LONGEST_WAIT)
    assert window.bytes == LEAST_BYTES


def test_a_long_way_is_no_wait() -> None:
    window = SendWindow()
    for _ in range(3):
        take(window, 10 * LONGEST_WAIT)
    assert window.bytes == 8 * FIRST_BYTES
