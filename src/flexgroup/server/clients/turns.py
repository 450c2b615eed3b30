"""Turns: how much of a round of the event loop is spent on what one client asks for.

A frame may hold thousands of requests. A client that asks for more than its share of a round waits
for the rounds that follow, in turn with others who do the same, and nothing more is read from it
meanwhile. So what other clients and other servers say is heard in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

SHARE: Final = 1024
"""What is spent on one client in a round: messages, or credits."""

REQUEST: Final = 64
"""What a request costs. Servers may have to agree on it, and answers may name all members."""

SHARES_OF_WAITING: Final = 4 * SHARE
"""What is spent in a round, in all, on clients that wait for their turn."""


@final
class Turns:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        self._waiting: dict[int, Callable[[], int]] = {}
        """Who waits, by number, and in the order of turns. Each takes its turn when it is called,
        and tells what that has cost."""

    def wait(self, number: int, take_turn: Callable[[], int]) -> None:
        """Have this client called in its turn, in one of the next rounds."""
        self._waiting[number] = take_turn
        self._go_on_later()

    def _go_on_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        left = SHARES_OF_WAITING
        for number in list(self._waiting):
            if left <= 0:
                break
            left -= self._waiting.pop(number)()
        if self._waiting:
            self._go_on_later()
