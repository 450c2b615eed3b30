"""The patience of a replica: the timer by which it asks for another view, since what it waits for
does not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from flexgroup.core.layer import Layer, Notice, Record, Suspect, Trust
from flexgroup.core.message import NO_MESSAGE, MessageId
from flexgroup.protocols.parts.pbft_packets import Request

PATIENCE: Final = 500
"""The ticks that a request may take at first."""

VIEW: Final = "view"
"""The timer: of who waits for a request, or for a view."""

RELAY: Final = "relay"
"""The timer that runs out when half of the patience with a request is gone."""


@final
class Patience(Record):
    """The timer is about one request, or about one view that is to begin. The layer that it
    belongs to sets it."""

    ticks: int = PATIENCE
    """How long it is at present."""
    waits_for: MessageId = NO_MESSAGE
    """The request that it is about."""
    timed: int = 0
    """The last view whose beginning it was about: once each, or a liar who wants ever higher views
    would have it begin anew for ever."""

    suspected: set[int] = set()
    """Those that the world, or the layer below, takes for crashed: nobody waits for them."""

    @property
    def is_idle(self) -> bool:
        """Whether it is about no request."""
        return self.waits_for == NO_MESSAGE

    def is_lost(self, notice: Notice, primary: int) -> bool:
        """Take note of who is suspected, and tell whether a request waits for that primary."""
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            return notice.process == primary and self.waits_for != NO_MESSAGE
        if isinstance(notice, Trust):
            self.suspected.discard(notice.process)
        return False

    def wait_for(self, layer: Layer, m: MessageId) -> None:
        self.waits_for = m
        layer.set_timer(RELAY, self.ticks // 2)
        layer.set_timer(VIEW, self.ticks)

    def relay(
        self,
        layer: Layer,
        to: tuple[int, ...],
        waiting: dict[MessageId, Request],
        is_authentic: Callable[[Request], bool],
    ) -> None:
        """Tell others what is waited for, if they can see that it is asked for: perhaps its origin
        has not told them."""
        request = waiting.get(self.waits_for)
        if request is not None and to and is_authentic(request):
            layer.send(to, request)

    def wait_for_view(self, layer: Layer, view: int) -> None:
        if self.timed < view:
            self.timed = view
            layer.set_timer(VIEW, self.ticks)

    def stop(self, layer: Layer) -> None:
        if self.waits_for != NO_MESSAGE:
            layer.cancel_timer(RELAY)
        self.waits_for = NO_MESSAGE
        layer.cancel_timer(VIEW)

    def is_rewarded(self, layer: Layer, m: MessageId) -> None:
        """A request is delivered."""
        if m == self.waits_for:
            self.stop(layer)
            self.ticks = PATIENCE

    def is_disappointed(self) -> None:
        """A view does not begin."""
        self.ticks *= 2
