"""Listeners: functions that are called with what comes, for applications that cannot wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from flexgroup.client.message import Message, View
from flexgroup.core.errors import FlexGroupError

T = TypeVar("T")


class Listener(ABC, Generic[T]):
    """An application derives from this class; see `Group.listen`.

    Its functions are called as soon as something has come. What one raises goes to the exception
    handler of the event loop, and then the next is called.
    """

    __slots__ = ()

    @abstractmethod
    def delivered(self, messages: list[Message[T]]) -> None:
        """Take all messages that have come together, in order."""

    def changed(self, view: View) -> None:
        """Take the view that holds from here on, for the messages that follow."""

    def refused(self, error: FlexGroupError) -> None:
        """Take the reason why the server has refused a message; unless overridden, report it."""
        raise error

    def ended(self, error: FlexGroupError) -> None:
        """Take what `receive` would have raised; nothing more will come, and no other call."""
