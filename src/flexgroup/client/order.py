"""The one order in which a server delivers to a process, over all its groups.

Everything stands in the inbox of its group, with its position. Whoever reads by link takes, of what
is first in the inboxes, that with the lowest position, and waits for what the server holds back
because the window of a group is full. That comes: all that was before it has been taken, so the
server has been given credit.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import Any, final

from flexgroup.client.inbox import Inbox
from flexgroup.client.message import Listener, Message, View
from flexgroup.core.errors import FlexGroupError, UsageError


@final
class DeliveryOrder:
    """What is in the inboxes of a connection, in the order of its positions."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self.arrivals: list[Inbox] = []
        """Inboxes that have something, and have said so since somebody last looked."""
        self._refused: list[Inbox] = []
        """The inboxes of groups to which the server has refused messages."""
        self.held = 0
        """The position of the first thing that the server holds back; 0 if it has sent all."""
        self.keeps_views = False
        """Whether somebody wants to see every view of every group."""
        self.ended: FlexGroupError | None = None
        """The reason why nothing more will come."""
        self.listener: Listener[Any] | None = None
        self._firsts: list[tuple[int, int, Inbox]] = []
        """A heap of inboxes by the positions of their first items, or of what these once were."""
        self._waiters: list[Future[None]] = []
        """Those who wait and were not woken yet."""
        self._report = report

    def forget_empty(self) -> None:
        """Forget the inboxes of groups that have ended, and have nothing more to give."""
        self.arrivals[:] = [i for i in self.arrivals if i.items or i.ended is None]
        self._firsts = sorted(one for one in self._firsts if one[2].items or one[2].ended is None)

    def _first(self) -> Inbox | None:
        """Return the inbox that has what comes next, if that is here."""
        firsts = self._firsts
        arrivals = self.arrivals
        while arrivals:
            inbox = arrivals.pop()
            item = inbox.first()
            if item is not None:
                heappush(firsts, (item.position, inbox.number, inbox))
        while firsts:
            position, number, inbox = firsts[0]
            item = inbox.first()
            if item is None:
                heappop(firsts)
            elif item.position != position:
                heapreplace(firsts, (item.position, number, inbox))
            elif 0 < self.held <= position:
                return None
            else:
                return inbox
        return None

    def take(self) -> Message[Any] | View | None:
        """Return the next message or view, or None if there is none yet."""
        inbox = self._first()
        if inbox is None:
            self._check()
            return None
        return inbox.take_event()

    def take_message(self) -> Message[Any] | None:
        """Return the next message, whatever views come before it, or None."""
        while (item := self.take()) is not None:
            if not isinstance(item, View):
                return item
        return None

    def take_messages(self) -> list[Message[Any]]:
        """Return all messages that are here, up to one that cannot be read."""
        messages = self._take_until(False)
        if not messages:
            self._check()
        return messages

    def _take_until(self, view: bool) -> list[Message[Any]]:
        """Take all messages up to one that cannot be read, or to a view, if it should end there."""
        messages: list[Message[Any]] = []
        while (inbox := self._first()) is not None:
            item = inbox.items[0]
            if isinstance(item, View):
                if view:
                    break
                inbox.take()
                continue
            try:
                message = inbox.read(item)
            except Exception:  # whatever the application's codec raises
                if messages:
                    break
                inbox.take()
                raise
            inbox.take()
            messages.append(message)
        return messages

    def put_refusal(self, inbox: Inbox) -> None:
        """Remember that messages to this group were refused."""
        if inbox not in self._refused:
            self._refused.append(inbox)

    def _check(self) -> None:
        """Raise what stands against receiving, if anything does."""
        errors = self._refusals()
        if errors:
            raise errors[-1]
        if self.ended is not None:
            raise self.ended.with_traceback(None)

    def _refusals(self) -> list[FlexGroupError]:
        """Return why messages were refused, as far as no group has told of it."""
        errors: list[FlexGroupError] = []
        for inbox in self._refused:
            errors += inbox.refused
            inbox.refused = []
        self._refused = []
        return errors

    def waiter(self) -> Future[None]:
        """Return a future to wait for after `take` had nothing; then it may have something."""
        self.check_nobody_listens()
        waiter: Future[None] = Future()
        self._waiters.append(waiter)
        return waiter

    def give_up(self, waiter: Future[None]) -> None:
        """Nothing is lost: all who wait are woken together."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def wake(self) -> None:
        """Wake all who wait, since something has come; whoever finds nothing waits again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # A listener.

    def listen(self, listener: Listener[Any]) -> None:
        self.check_nobody_listens()
        if any(not waiter.done() for waiter in self._waiters):
            raise UsageError(
                "somebody waits for messages of all groups of the link; end that before listening"
            )
        self.listener = listener

    def check_nobody_listens(self) -> None:
        if self.listener is not None:
            raise UsageError(
                "the link has a listener, which gets all that comes; link.listen(None) ends that"
            )

    def notify_listener(self) -> None:
        """Hand everything that is here to the listener, as long as there is one."""
        while (listener := self.listener) is not None:
            for error in self._refusals():
                self._call(listener.refused, error)
            try:
                messages = self._take_until(True)
            except Exception as error:  # whatever the application's codec raises
                self._report("a message cannot be read", error)
                continue
            if messages:
                self._call(listener.delivered, messages)
                continue
            view = self.take() if self._first() is not None else None
            if view is not None:
                self._call(listener.changed, view)
                continue
            if self.ended is not None:
                self.listener = None
                self._call(listener.ended, self.ended)
            return

    def _call(self, function: Callable[[Any], None], argument: object) -> None:
        try:
            function(argument)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report("a listener of the link failed", error)
