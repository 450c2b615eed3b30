"""The event loop of one virtual process.

It offers what servers and clients ask of asyncio's loops. A round of the loop costs virtual time,
so that what comes meanwhile is handled together in the next one, as in reality.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, cast, final

from flexgroup.virtual.world import World

ROUND_SECONDS = 20e-6
HANDLE_SECONDS = 5e-6
"""What a round costs, and each thing that is done in it."""


@final
class Handle:
    """A call that a loop is to make, unless it is cancelled."""

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled


class VirtualLoop:
    """The loop of a process on a machine that it may share with others.

    It has the methods of an asyncio loop that are asked for, but is none: a base class that is not
    compiled would make every call slow.
    """

    def __init__(self, world: World, machine: str, name: str = "") -> None:
        self.machine = machine
        self.errors: list[str] = []
        """What the process did not catch; a server or client is not to let anything through."""
        self.is_stopped = False
        self.is_dead = False
        self._world = world
        self._random = world.chance(f"process {name or machine}")
        self._ready: list[Handle] = []
        self._arrivals: list[Callable[[], None]] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._is_round_due = False
        self._next_round: Callable[[], None] = self._round
        """Made once, since nothing is asked for more often."""
        self._is_busy_until = 0.0

    # What happens to the process.

    def arrive(self, happening: Callable[[], None]) -> None:
        """The machine tells the process something, which it hears of in its next round."""
        if not self.is_dead:
            self._arrivals.append(happening)
            self._request_round()

    def stop(self) -> None:
        """Do nothing until `resume`, as after SIGSTOP; the machine goes on."""
        self.is_stopped = True

    def resume(self) -> None:
        self.is_stopped = False
        self._request_round()

    def kill(self) -> None:
        """Do nothing ever again, as after SIGKILL.

        Tasks are kept: if they were forgotten, Python would run what they do last.
        """
        self.is_dead = True
        self._arrivals = []

    def end(self) -> None:
        """The world ends. What tasks do last then finds everything as they left it."""
        self.is_dead = True
        self._world.enter(self)
        try:
            for task in self._tasks:
                if not task.done():
                    cast(Coroutine[Any, Any, Any], task.get_coro()).close()
        finally:
            self._world.enter(None)

    def _request_round(self) -> None:
        if not (self._is_round_due or self.is_stopped or self.is_dead):
            self._is_round_due = True
            self._world.at(self._is_busy_until, self._next_round)

    def _round(self) -> None:
        self._is_round_due = False
        if self.is_stopped or self.is_dead:
            return
        self._world.enter(self)
        # What is asked for in this round is done in the next.
        arrivals, self._arrivals = self._arrivals, []
        for happening in arrivals:
            try:
                happening()
            except Exception as error:
                self.call_exception_handler({"message": "a connection", "exception": error})
        ready, self._ready = self._ready, []
        for handle in ready:
            if not handle.is_cancelled:
                self._call(handle)
        cost = ROUND_SECONDS + HANDLE_SECONDS * (len(arrivals) + len(ready))
        chance: float = self._random.random()
        self._is_busy_until = self._world.now + cost * (0.5 + chance)
        if self._ready or self._arrivals:
            self._request_round()

    def _call(self, handle: Handle) -> None:
        try:
            if handle.context is None:
                handle.callback(*handle.args)
            else:
                handle.context.run(handle.callback, *handle.args)
        except Exception as error:
            self.call_exception_handler({"message": "a callback", "exception": error})

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self._world.now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        self._request_round()
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._world.at(self._world.now + delay, self._timer_ended, handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._world.at(when, self._timer_ended, handle)
        return handle

    def _timer_ended(self, handle: Handle) -> None:
        if not (handle.is_cancelled or self.is_dead):
            self._ready.append(handle)
            self._request_round()

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast(asyncio.AbstractEventLoop, self))

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        loop = cast(asyncio.AbstractEventLoop, self)
        task = asyncio.Task(coro, loop=loop, name=name or "task", context=context)
        self._tasks[task] = None
        return task

    def run_in_executor(
        self, executor: object, func: Callable[..., object], *args: Any
    ) -> asyncio.Future[Any]:
        """Do it at once: what servers leave to threads takes no virtual time."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_dead:
            self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)
