"""The thread in which the connection of a program without async lives."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from flexgroup.client.errors import LinkClosed
from flexgroup.wire.event_loop import new_event_loop

R = TypeVar("R")

MOST_WAITING = 1024
"""How many messages may wait for the loop's thread; those of one call wait together."""


class Background:
    """A thread that runs an event loop."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self.is_stopped = False
        self._starting = threading.Lock()
        """Held so that nothing is started in a loop that will not run any more."""
        self._thread = threading.Thread(target=self._run, name="flexgroup-link", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Run the loop until it is stopped, and end it here as well: the thread that stops it may
        run a loop of its own, as a notebook does."""
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def wait_for(self, work: Coroutine[Any, Any, R]) -> R:
        """Run the work in the loop's thread, and return its result in this one."""
        future = self.start(work)
        try:
            return future.result()
        except CancelledError:
            raise LinkClosed from None
        except BaseException:
            future.cancel()  # Ctrl-C: nobody waits any more
            raise

    def start(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Have the work run in the loop's thread."""
        with self._starting:
            if self.is_stopped:
                work.close()
                raise LinkClosed
            return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        with self._starting:
            self.is_stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class SendQueue:
    """Hands what threads send over to the loop, in order and many messages at a time."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], Coroutine[Any, Any, None]]] = deque()
        self._messages = 0
        """How many messages the waiting calls send."""
        self._is_busy = False
        self._failed: Exception | None = None

    def put(self, send: Callable[[], Coroutine[Any, Any, None]], messages: int = 1) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._messages < MOST_WAITING or self._failed)
            self._raise_failure()
            if not self._is_busy:
                self._background.start(self._send_all())
                self._is_busy = True
            self._waiting.append(send)
            self._messages += messages

    def flush(self) -> None:
        """Wait until everything has been handed over to the connection."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_busy)
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed

    async def _send_all(self) -> None:
        try:
            while sends := self._take_waiting():
                for send in sends:
                    try:
                        await send()
                    except Exception as error:
                        self._failed = error
        except asyncio.CancelledError:
            self._failed = LinkClosed()
            self._waiting.clear()
            self._take_waiting()
            raise

    def _take_waiting(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """Return what waits; nothing is under way any more if that is nothing."""
        with self._changed:
            sends = list(self._waiting)
            self._waiting.clear()
            self._messages = 0
            self._is_busy = bool(sends)
            self._changed.notify_all()
        return sends
