"""The event loop of one virtual process.

It offers what servers and clients ask of asyncio's loops. A round of the loop costs virtual time,
so that what comes meanwhile is handled together in the next one, as in reality.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, cast

from flexgroup.virtual.world import World

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ROUND_SECONDS = 20e-6
HANDLE_SECONDS = 5e-6
"""What a round costs, and each thing that is done in it."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """The loop of a process on a machine that it may share with others."""

    def __init__(self, world: World, machine: str) -> None:
        self.machine = machine
        self.errors: list[str] = []
        """What the process did not catch; a server or client is not to let anything through."""
        self.is_stopped = False
        self.is_dead = False
        self._world = world
        self._ready: deque[asyncio.Handle] = deque()
        self._arrivals: deque[Callable[[], None]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_round_due = False
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
        self._arrivals.clear()

    def end(self) -> None:
        """The world ends. What tasks do last then finds everything as they left it."""
        self.is_dead = True
        _set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    cast(Coroutine[Any, Any, Any], task.get_coro()).close()
        finally:
            _set_running_loop(None)

    def _request_round(self) -> None:
        if not (self._is_round_due or self.is_stopped or self.is_dead):
            self._is_round_due = True
            self._world.at(self._is_busy_until, self._round)

    def _round(self) -> None:
        self._is_round_due = False
        if self.is_stopped or self.is_dead:
            return
        _set_running_loop(self)
        try:
            # What is asked for in this round is done in the next.
            arrivals, self._arrivals = self._arrivals, deque()
            for happening in arrivals:
                try:
                    happening()
                except Exception as error:
                    self.call_exception_handler({"message": "a connection", "exception": error})
            ready, self._ready = self._ready, deque()
            for handle in ready:
                if not handle.cancelled():
                    handle._run()
        finally:
            _set_running_loop(None)
        cost = ROUND_SECONDS + HANDLE_SECONDS * (len(arrivals) + len(ready))
        self._is_busy_until = self._world.now + cost * self._world.random.uniform(0.5, 1.5)
        if self._ready or self._arrivals:
            self._request_round()

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self._world.now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        self._request_round()
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._world.at(when, self._timer_ended, handle)
        return handle

    def _timer_ended(self, handle: asyncio.TimerHandle) -> None:
        if not (handle.cancelled() or self.is_dead):
            self._ready.append(handle)
            self._request_round()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        self._tasks.add(task)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Do it at once: what servers leave to threads takes no virtual time."""
        future: asyncio.Future[T] = self.create_future()
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
