"""A member of a group at a stand-in for a server, listeners, and what is reported of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from flexgroup import FlexGroupError, Group, Link, Listener, Message, View, connect
from flexgroup.wire import requests as r

from .stand_in import StandIn, stand_in

STACK = "RELIABLE CAUSAL"


class Deaf(Listener[Any]):
    """Does no more than it must."""

    def delivered(self, messages: list[Message[Any]]) -> None:
        pass


class Diary(Listener[Any]):
    """Writes down what it is told: bodies that came together, numbers of views, the end."""

    def __init__(self, then: Callable[[list[Any]], object] = lambda bodies: None) -> None:
        self.told: list[list[Any] | int | FlexGroupError] = []
        self._then = then
        """Done after each writing down of messages."""

    def delivered(self, messages: list[Message[Any]]) -> None:
        bodies = [message.body for message in messages]
        self.told.append(bodies)
        self._then(bodies)

    def changed(self, view: View) -> None:
        self.told.append(view.number)

    def ended(self, error: FlexGroupError) -> None:
        self.told.append(error)


@asynccontextmanager
async def in_chat(
    window: int = 64, sends: int = 1024, codec: Any = None
) -> AsyncIterator[tuple[StandIn, Link, Group[Any]]]:
    async with stand_in(window, sends) as server, connect(server.address, name="a") as link:
        yield server, link, await link.join("chat", STACK, codec=codec)


def deliveries(*bodies: bytes, handle: int = 1) -> r.Delivered:
    return r.Delivered([handle], 1, 0, [r.Sent("z", [body]) for body in bodies])


def sent_to(server: StandIn) -> list[bytes]:
    return [said.bodies[0] for said in server.client.told if isinstance(said, r.Send)]


def reports() -> list[tuple[str, BaseException]]:
    """What the exception handler of the loop is called with, from now on."""
    found: list[tuple[str, BaseException]] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: found.append((context["message"], context["exception"]))
    )
    return found
