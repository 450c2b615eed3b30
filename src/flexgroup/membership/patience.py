"""How long servers wait for each other, after what links have shown.

A server asks each other one, with every beat, to miss it no sooner than after a *patience*. The
answer is a lease: for three quarters of that time, counted from when the beat was sent, the server
may rely on not being missed. Each lease is as long as its own beat says. So the patience may rise
and fall from beat to beat, and beats may be lost, late or out of order.
"""

from __future__ import annotations

from typing import Final, final

WINDOW: Final = 100
"""So many confirmations have to be quick before less patience is asked for."""


def lease(patience: float) -> float:
    """How long whoever has asked for this patience may rely on it.

    It is shorter than the patience. The rest is for noticing that it has ended, and for clocks
    that do not run at quite the same speed.
    """
    return patience * 3 / 4


def stall(patience: float) -> float:
    """Who had no event for so long must have been stopped, compared with this patience."""
    return patience / 4


@final
class LinkPatience:
    """The patience that this server asks of one other server.

    It is twice the longest time for which that server has lately left this one with an old
    confirmation. Whatever makes servers wait is in that time: the way to and fro, what has to be
    sent again, and pauses of both machines. It includes how long the other one hears nothing.
    """

    __slots__ = ("_before", "_least", "_longest", "_most", "_seen")

    def __init__(self, least: float, most: float) -> None:
        self._least = least
        self._most = most
        self._seen = 0
        self._longest = 0.0
        """The longest of these times since the window began."""
        self._before = most
        """The longest in the window before; at first nothing is known to be quick."""

    @property
    def seconds(self) -> float:
        return min(self._most, max(self._least, 2 * self._longest, 2 * self._before))

    def waited(self, seconds: float) -> None:
        """A confirmation has come, when the last one was so old."""
        if self._least == self._most:
            return  # there is nothing to learn
        self._longest = max(self._longest, seconds)
        self._seen += 1
        if self._seen == WINDOW:
            self._before, self._longest, self._seen = self._longest, 0.0, 0
